"""Whole executions under a virtual clock with seeded faults: a seed is a trial that anyone can make again."""
