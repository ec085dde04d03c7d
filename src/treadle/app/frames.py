"""How the frame of a loop came to be what it is: which record changed which field (FR-27)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from treadle.core.codec import decode
from treadle.core.errors import InputError
from treadle.kernel.continuation import frame_of
from treadle.kernel.frame import LoopFrame
from treadle.kernel.loop import advance
from treadle.kernel.states import LoopState
from treadle.ports.ledger import Record


class Change(NamedTuple):
    """One field, as record `seq` left it. Values are as in the frame's JSON; None where the frame leaves the field out."""

    seq: int
    at_us: int
    event: str  # kind of the record
    field: str
    before: Any
    after: Any


def changes(records: Iterable[Record]) -> list[Change]:
    """Every change of every field, oldest first; the first record gives all that are there from the start."""
    found: list[Change] = []
    state = LoopState()
    before: dict[str, Any] = {}
    last: LoopFrame | None = None
    for record in records:
        state = advance(state, decode(record.kind, record.version, record.body))
        frame = frame_of(state)
        if frame == last:
            continue
        last, after = frame, plain(frame)
        found += [
            Change(record.seq, record.at_us, record.kind, field, old, new)
            for field in dict.fromkeys((*before, *after))
            if (old := before.get(field)) != (new := after.get(field))
        ]
        before = after
    return found


def plain(frame: LoopFrame) -> dict[str, Any]:
    """Its fields as JSON has them, money as numbers."""
    return msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(frame, builtin_types=())))


def state_at(execution_id: str, records: list[Record], at: int) -> LoopState:
    """The state after record `at`. InputError where there is no such record."""
    if not 1 <= at <= len(records):
        raise InputError(f"{execution_id} has no record {at}: it has {len(records)}. treadle log numbers them.")
    state = LoopState()
    for record in records[:at]:
        state = advance(state, decode(record.kind, record.version, record.body))
    return state
