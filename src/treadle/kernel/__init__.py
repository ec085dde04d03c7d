"""The pure machines and rules: no I/O, clock, randomness or environment.

`next_actions(state)` says what is ready, `advance(state, event)` folds what happened.
"""
