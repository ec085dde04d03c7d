"""Adapters to language models. `registry.model_from_name` makes one; everything heavy is imported when one is made."""
