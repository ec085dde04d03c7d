"""The folded state as bytes and back. A snapshot only saves time, so one of another version is dropped, not upgraded."""

from __future__ import annotations

import msgspec

from treadle.core.errors import LedgerDamaged

from .states import LoopState

SNAPSHOT_VERSION = 1
_encode = msgspec.json.Encoder(decimal_format="string").encode
_decode = msgspec.json.Decoder(LoopState).decode


def freeze(state: LoopState) -> bytes:
    """The state as JSON."""
    return _encode(state)


def thaw(body: bytes, version: int) -> LoopState:
    """The state; an empty one where the snapshot is of another version, so that everything is refolded. LedgerDamaged."""
    if version != SNAPSHOT_VERSION:
        return LoopState()
    try:
        return _decode(body)
    except msgspec.DecodeError as error:
        raise LedgerDamaged(f"A snapshot cannot be read: {error}") from error
