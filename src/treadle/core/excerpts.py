"""Shortening an output so that its end stays: that is where a command says what went wrong."""

from __future__ import annotations


def both_ends(text: str, limit: int) -> str:
    """At most about `limit` characters: the beginning, three times as much of the end, and between them how much is missing."""
    if len(text) <= limit:
        return text
    head = limit // 4
    tail = limit - head
    return f"{text[:head]}\n[... {len(text) - limit:,} characters left out ...]\n{text[len(text) - tail :]}"
