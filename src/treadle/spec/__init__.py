"""Loops as people define them, and their checks; the composition root builds what runs."""
