"""The main job for real, without a key: a tiny model writes the missing functions of a module (SV-06)."""
