"""Events to stored form and back: (kind, version, JSON body). An unknown kind or version is refused, never guessed at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

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
    **USAGE_FIELDS,
}
_READERS: dict[tuple[str, int], tuple[Callable[[bytes | str], Any], tuple[str, ...]]] = {
    (kind, VERSION): (msgspec.json.Decoder(struct).decode, _WITH_USAGE.get(kind, ())) for kind, struct in _ALL.items()
}


def encode(event: Value) -> tuple[str, int, bytes]:
    """(kind, version, body) of an event."""
    return _KIND_OF[type(event)], VERSION, _encode(event)


def decode(kind: str, version: int, body: bytes | str) -> Event:
    """The event. LedgerTooNew for a kind or version unknown here, LedgerDamaged for a body that is not one."""
    reader = _READERS.get((kind, version))
    if reader is None:
        raise LedgerTooNew(f"Record of kind {kind!r}, version {version}, is unknown here. Update Treadle.")
    read, with_usage = reader
    try:
        event = cast("Event", read(body))
    except msgspec.DecodeError as error:
        raise LedgerDamaged(f"Record of kind {kind!r} cannot be read: {error}") from error
    for name in with_usage:
        cast("Usage", getattr(event, name)).checked()  # Decimal lets "NaN" and "-1" through
    return event
