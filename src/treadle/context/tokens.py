"""How many tokens a text is taken for. An estimate that leans to too many, since the budgets measured by it are hard."""

from __future__ import annotations

from collections.abc import Callable

CHARACTERS = 4  # of ASCII in one token
FOREIGN = 4  # one character outside ASCII weighs as much as a whole token

Measure = Callable[[str], int]
"""The tokens of a text. It must not shrink when text is appended."""


def weight(text: str) -> int:
    """The text's length in quarter tokens. Adds up over concatenation, so a renderer can count piece by piece."""
    if text.isascii():
        return len(text)
    foreign = sum(character > "\x7f" for character in text)
    return len(text) + foreign * (FOREIGN - 1)


def estimate(text: str) -> int:
    """The tokens of a text, rounded up. A provider's own count, where it is known, may serve as `Measure` instead."""
    return -(-weight(text) // CHARACTERS)
