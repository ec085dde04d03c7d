"""The composition root: settings become adapters, definitions become what runs. The only place that names adapters."""
