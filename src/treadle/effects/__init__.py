"""The only I/O of a loop: each effect performs one action and returns one event."""
