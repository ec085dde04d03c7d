"""Tools that an agent may call: the built-in ones, functions as tools, validation, and wrappers around toolsets."""
