"""A whole execution as one document that vouches for itself, to be carried to another store or machine (FR-27).

    {"schema": "treadle.frame", "version": 1, "digest": "sha256:…", "frame": {"kind": "export", …}}

It holds the loop's frame, every record, and the blobs that they name: enough to go on, and to look back.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import msgspec

from treadle.core import events as ev
from treadle.core.child_events import ChildWoken
from treadle.core.codec import decode, encode
from treadle.core.digests import blob_address
from treadle.core.errors import (
    BrokenInvariant,
    DanglingMessage,
    DigestMismatch,
    FrameError,
    InputError,
    InvalidField,
    LedgerTooNew,
    MalformedFrame,
    TreadleError,
    UnknownExecution,
    UnsupportedVersion,
    WrongKind,
)
from treadle.core.messages import BRANCHING, ToolsFinished
from treadle.kernel.continuation import frame_of, identity_of
from treadle.kernel.frame import SCHEMA, LoopFrame, dump_frame, load_frame
from treadle.kernel.grants import advance_proven
from treadle.kernel.loop import advance
from treadle.kernel.snapshot import SNAPSHOT_VERSION, freeze
from treadle.kernel.states import LoopState
from treadle.ports.ledger import Batch, Ledger, Ownership, Record, Snapshot, Summary
from treadle.runtime.document import summary_bytes
from treadle.runtime.journal import load_state

S = TypeVar("S")
T = TypeVar("T")
More = Callable[["Carried"], Awaitable[Iterable[ev.Event]]]
VERSION = 1
KIND = "export"


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    schema: str
    version: int
    digest: str
    frame: msgspec.Raw


class StoredRecord(msgspec.Struct, forbid_unknown_fields=True, array_like=True):
    """A record inside an export."""

    seq: int
    kind: str
    version: int
    parent: int | None
    at_us: int
    body: msgspec.Raw


class _Export(msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag=KIND):
    execution_id: str
    loop: str  # the sealed frame of the loop, to be read by itself
    records: list[StoredRecord]
    blobs: dict[str, str]  # address -> content in base 64
    children: list[str] = []  # exports of executions that its agent has forked, each sealed


class Carried(msgspec.Struct, frozen=True):
    """An export that has been checked: its records fold to the state that its frame describes."""

    execution_id: str
    frame: LoopFrame
    state: LoopState
    records: tuple[Record, ...]
    blobs: tuple[tuple[str, bytes], ...]
    children: tuple[Carried, ...] = ()


def is_export(data: bytes) -> bool:
    """Whether the bytes claim to be an export, and not the frame of a loop."""
    return b'"frame":{"kind":"export"' in data[:300]


async def export(ledger: Ledger, execution_id: str, state: LoopState) -> bytes:
    """The execution as a document. LedgerError where the store cannot be read."""
    records = await ledger.records(execution_id, to=state.seq)
    blobs = {
        address: base64.b64encode(await ledger.blob(address)).decode() for address in dict.fromkeys(_addresses(records))
    }
    whole = _Export(
        execution_id=execution_id,
        loop=dump_frame(frame_of(state), max_iterations=state.settings.max_rounds).decode(),
        records=[StoredRecord(*record[:-1], msgspec.Raw(record.body)) for record in records],
        blobs=blobs,
        children=[one.decode() for name, _ in state.children if (one := await _export_child(ledger, name)) is not None],
    )
    return seal(msgspec.json.encode(whole))


async def _export_child(ledger: Ledger, execution_id: str) -> bytes | None:
    """None for one that was announced and never begun."""
    try:
        row = await ledger.row(execution_id)
    except UnknownExecution:
        return None
    if row.execution_id != execution_id or not row.head:
        return None
    return await export(ledger, execution_id, (await load_state(ledger, execution_id)).state)


def _addresses(records: Iterable[Record]) -> Iterable[str]:
    for record in records:
        if record.kind == "tools.finished":
            event = decode(record.kind, record.version, record.body)
            assert isinstance(event, ToolsFinished)
            yield from (result.blob for result in event.results if result.blob)


def read_export(data: bytes) -> Carried:
    """The checked export. FrameError subclasses name what is wrong; nothing of it is used then."""
    whole = opened(data, _Export)
    records = tuple(Record(r.seq, r.kind, r.version, r.parent, r.at_us, bytes(r.body)) for r in whole.records)
    state = folded(records, LoopState(), advance_proven)
    frame = load_frame(
        whole.loop.encode(),
        max_iterations=state.settings.max_rounds,
        identity=identity_of(state),
        has_message=message_finder(records),
    )
    if frame != frame_of(state):
        raise BrokenInvariant("the frame does not describe what the records say", path="$.frame.loop")
    children = tuple(read_export(child.encode()) for child in whole.children)
    return Carried(whole.execution_id, frame, state, records, _blobs(whole, records), children)


def folded(records: Iterable[Record], state: S, fold: Callable[[S, Any], S]) -> S:
    """What these records make of a state. FrameError subclasses name the one that does not fit."""
    for seq, record in enumerate(records, 1):
        path = f"$.frame.records[{record.seq - 1}]"
        try:
            state = fold(state, decode(record.kind, record.version, record.body))
        except FrameError:
            raise
        except LedgerTooNew as error:
            raise UnsupportedVersion(str(error), path=path) from error
        except (TreadleError, KeyError, RecursionError) as error:
            raise InvalidField(str(error), path=path) from error
        if record.seq != seq:
            raise BrokenInvariant(f"number {record.seq} does not follow {seq - 1}", path=path)
    return state


def message_finder(records: Iterable[Record]) -> Callable[[str], bool]:
    """Says of a message id whether it is there."""
    known = {str(record.seq) for record in records if record.kind in ev.MESSAGE_KINDS}

    def found(message_id: str) -> bool:
        return message_id in known

    return found


def _blobs(whole: _Export, records: tuple[Record, ...]) -> tuple[tuple[str, bytes], ...]:
    found: dict[str, bytes] = {}
    for address, text in whole.blobs.items():
        try:
            content = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise InvalidField(f"is no base 64: {error}", path=f"$.frame.blobs[{address!r}]") from error
        if blob_address(content) != address:
            raise DigestMismatch("the content is not that of its address", path=f"$.frame.blobs[{address!r}]")
        found[address] = content
    for address in _addresses(records):
        if address not in found:
            raise DanglingMessage("a record names it, and it is not there", path=f"$.frame.blobs[{address!r}]")
    return tuple(found.items())


def seal(stored: bytes) -> bytes:
    """The document that vouches for it."""
    digest = f"sha256:{hashlib.sha256(stored).hexdigest()}"
    return msgspec.json.encode(_Envelope(SCHEMA, VERSION, digest, msgspec.Raw(stored)))


def opened(data: bytes, wanted: type[T]) -> T:
    """What the envelope holds, once it has been seen to be whole."""
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
    except msgspec.ValidationError as error:
        raise InvalidField(str(error)) from error
    except msgspec.DecodeError as error:
        raise MalformedFrame(str(error)) from error
    if envelope.schema != SCHEMA:
        raise WrongKind(f"is {envelope.schema!r}, expected {SCHEMA!r}", path="$.schema")
    if envelope.version != VERSION:
        text = f"version {envelope.version} is unknown here; this Treadle reads {VERSION}"
        raise UnsupportedVersion(text, path="$.version")
    stored = bytes(envelope.frame)
    if envelope.digest != f"sha256:{hashlib.sha256(stored).hexdigest()}":
        raise DigestMismatch(path="$.digest")
    if seal(stored) != data:
        raise MalformedFrame("not spelled as it was written: spaces, order of keys or escapes")
    try:
        return msgspec.json.decode(stored, type=wanted)
    except msgspec.ValidationError as error:
        raise InvalidField(str(error), path="$.frame") from error


async def import_family(ledger: Ledger, carried: Carried, more: More, *, owner: str, at_us: int) -> None:
    """Writes an execution and what it has forked, that first: killed half way, it is begun again. `more` gives the events that follow
    those of each. InputError where an id is taken."""
    for child in carried.children:
        if not await is_there(ledger, child.execution_id, child.records):
            await import_family(ledger, child, more, owner=owner, at_us=at_us)
    await import_into(ledger, carried, await more(carried), owner=owner, at_us=at_us)


async def as_it_is(_: Carried) -> tuple[ev.Event, ...]:
    """Nothing follows: it is carried whole."""
    return ()


async def is_there(ledger: Ledger, execution_id: str, records: tuple[Record, ...]) -> bool:
    """Whether the store has it already, record for record. InputError where what is there is another."""
    try:
        row = await ledger.row(execution_id)
    except UnknownExecution:
        return False
    if row.execution_id != execution_id or not row.head:
        return False
    if tuple(await ledger.records(execution_id, to=len(records))) != records:
        raise InputError(f"The store has another execution {execution_id}: nothing of it was changed.")
    return True


async def import_into(
    ledger: Ledger, carried: Carried, more: Iterable[ev.Event], *, owner: str, at_us: int
) -> LoopState:
    """Writes the execution into a store in one transaction, `more` events after its own. InputError where the id is taken."""
    ownership = await claim(ledger, carried.execution_id, "loop", owner, carried.state.started_us)
    try:
        state, records = carried.state, list(carried.records)
        for event in more:
            state = advance(state, event)
            kind, version, body = encode(event)
            parent = event.parent if isinstance(event, BRANCHING) else None
            records.append(Record(state.seq, kind, version, parent, at_us, body))
        await commit(ledger, _batch(ownership, carried, records, state))
        return state
    finally:
        await ledger.release(ownership)


async def claim(ledger: Ledger, execution_id: str, kind: str, owner: str, at_us: int) -> Ownership:
    """A new row, or the empty one that an import left behind when it was killed."""
    for row in await ledger.rows():
        if row.execution_id == execution_id and not row.head:
            return await ledger.acquire(execution_id, owner=owner)
    return await ledger.create(execution_id, kind=kind, owner=owner, at_us=at_us)


def _batch(ownership: Ownership, carried: Carried, records: list[Record], state: LoopState) -> Batch:
    receipts: list[tuple[str, str]] = []
    opened: list[tuple[str, str, bytes]] = []
    closed: list[tuple[str, bytes]] = []
    for record in records:
        event = decode(record.kind, record.version, record.body)
        if isinstance(event, ev.UsageReported) and event.receipt:
            receipts.append(("loop", event.receipt))
        elif isinstance(event, ev.Suspended):
            opened.append((event.id, event.kind, record.body))
        elif isinstance(event, ev.Answered | ChildWoken):
            closed.append((event.id, record.body))
    return Batch(
        ownership,
        records,
        receipts=receipts,
        blobs=carried.blobs,
        opened=opened,
        closed=closed,
        snapshot=Snapshot(state.seq, SNAPSHOT_VERSION, freeze(state)),
        summary=Summary(state.seq, summary_bytes(carried.execution_id, state)),
    )


async def commit(ledger: Ledger, batch: Batch) -> None:
    """Returns when it is durable."""
    future: asyncio.Future[TreadleError | None] = asyncio.get_running_loop().create_future()

    def done(error: TreadleError | None) -> None:
        if not future.done():
            future.set_result(error)

    ledger.submit(batch, done)
    if (error := await future) is not None:
        raise error
