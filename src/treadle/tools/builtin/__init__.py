"""The tools that work on one workspace."""
