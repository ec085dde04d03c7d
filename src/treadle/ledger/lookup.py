"""What is said of an execution that cannot be found: close or ambiguous ids (SV-02)."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.errors import UnknownExecution

PREFIX_MIN = 4  # characters; a shorter one would name something else tomorrow
NEWEST = "last"
NAMED = 5  # ids that a message lists at most


def unknown(wanted: str, known: Sequence[str]) -> UnknownExecution:
    """No execution has this id or prefix; `known` are some that there are, newest first."""
    if not known:
        return UnknownExecution(f"There is no execution {wanted!r}: the store is empty.")
    from difflib import get_close_matches

    close = get_close_matches(wanted, known, NAMED) or known[:NAMED]
    return UnknownExecution(f"There is no execution {wanted!r} in this store. Close to it: {', '.join(close)}.")


def ambiguous(prefix: str, matches: Sequence[str]) -> UnknownExecution:
    """Several executions have this prefix."""
    more = ", …" if len(matches) > NAMED else ""
    return UnknownExecution(f"{prefix!r} is ambiguous: {', '.join(matches[:NAMED])}{more}. Give more of the id.")
