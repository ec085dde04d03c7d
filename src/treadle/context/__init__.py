"""What a model sees: the map of the workspace, and the system prompt."""
