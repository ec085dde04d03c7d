"""Finding executions and messages, whatever the store: what is said of an id that is not there (SV-02), and walking a branch."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.errors import DanglingMessage, OwnerAlive, UnknownExecution
from treadle.ports.ledger import Record

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


def busy(execution_id: str, owner: str) -> OwnerAlive:
    """Somebody who lives has it."""
    return OwnerAlive(
        f"{execution_id} is being run by {owner}. Wait until it ends, or take it over: treadle resume {execution_id} --force."
    )


def walked(records: Sequence[Record], leaf: int) -> list[Record]:
    """Of messages newest first, those on the way from `leaf` towards the root, one at least. DanglingMessage where it is missing."""
    found: list[Record] = []
    wanted: int | None = leaf
    for record in records:
        if record.seq == wanted:
            found.append(record)
            wanted = record.parent
    if not found:
        raise DanglingMessage(f"Message {leaf} is not in the store.")
    if wanted is not None and wanted >= found[-1].seq:
        raise DanglingMessage(f"Message {wanted}, the parent of {found[-1].seq}, does not come before it.")
    return found
