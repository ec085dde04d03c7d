"""Events to stored form and back: (kind, version, JSON body). An unknown kind or version is refused, never guessed at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from .child_events import CHILD_USAGE
from .errors import LedgerDamaged, LedgerTooNew
from .events import KINDS, Event
from .usage import Usage
from .values import Value
from .workflow_events import USAGE_FIELDS, WORKFLOW_KINDS

VERSION = 1
_ALL = KINDS | WORKFLOW_KINDS
_KIND_OF = {struct: kind for kind, struct in _ALL.items()}
_encode = msgspec.json.Encoder(decimal_format="string").encode
_WITH_USAGE: dict[str, tuple[str, ...]] = {
    "model.responded": ("usage",),
    "model.intended": ("reserve",),
    "usage.reported": ("usage",),
    "charge.intended": ("reserve",),
    "compaction.intended": ("reserve",),
    "compacted": ("usage",),
    "compaction.failed": ("usage",),
    **CHILD_USAGE,
    **USAGE_FIELDS,
}
_Reader = tuple[Callable[[bytes | str], Any], tuple[str, ...]]
_READERS: dict[tuple[str, int], _Reader] = {}  # made when the first record of a kind is read: all take 20 ms


def encode(event: Value) -> tuple[str, int, bytes]:
    """(kind, version, body) of an event."""
    return _KIND_OF[type(event)], VERSION, _encode(event)


def decode(kind: str, version: int, body: bytes | str) -> Event:
    """The event. LedgerTooNew for a kind or version unknown here, LedgerDamaged for a body that is not one."""
    read, with_usage = _READERS.get((kind, version)) or _reader(kind, version)
    try:
        event = cast("Event", read(body))
    except msgspec.DecodeError as error:
        raise LedgerDamaged(f"Record of kind {kind!r} cannot be read: {error}") from error
    for name in with_usage:
        cast("Usage", getattr(event, name)).checked()  # Decimal lets "NaN" and "-1" through
    return event


def _reader(kind: str, version: int) -> _Reader:
    struct = _ALL.get(kind) if version == VERSION else None
    if struct is None:
        raise LedgerTooNew(f"Record of kind {kind!r}, version {version}, is unknown here. Update Treadle.")
    made = _READERS[kind, version] = msgspec.json.Decoder(struct).decode, _WITH_USAGE.get(kind, ())
    return made
