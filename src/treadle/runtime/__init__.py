"""Drives the machine: decide, perform, commit, advance."""
