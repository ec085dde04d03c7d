"""How much a text weighs in tokens: an estimate that adds up over concatenation, so that a history is counted piece by piece."""

from __future__ import annotations

CHARACTERS = 4  # of ASCII in one token
FOREIGN = 4  # one character outside ASCII weighs as much as a whole token


def weight(text: str) -> int:
    """The text's length in quarter tokens. Adds up over concatenation, so a renderer can count piece by piece."""
    if text.isascii():
        return len(text)
    foreign = sum(character > "\x7f" for character in text)
    return len(text) + foreign * (FOREIGN - 1)


def estimate(text: str) -> int:
    """The tokens of a text, rounded up."""
    return -(-weight(text) // CHARACTERS)
