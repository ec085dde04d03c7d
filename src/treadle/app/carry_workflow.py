"""A workflow as one document that vouches for itself: its frame, its records, and the executions inside it, each an export of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from treadle.core import workflow_events as ev
from treadle.core.codec import decode
from treadle.core.errors import (
    BrokenInvariant,
    UnknownExecution,
    WrongKind,
)
from treadle.kernel.workflow import advance
from treadle.kernel.workflow_states import SNAPSHOT_VERSION, WorkflowState, freeze
from treadle.ports.ledger import Batch, Ledger, Ownership, Record, Snapshot, Summary
from treadle.runtime.journal import load_state
from treadle.runtime.workflow_document import summary_bytes
from treadle.runtime.workflow_journal import KIND as WORKFLOW
from treadle.runtime.workflow_journal import load_workflow

from .carry import (
    Carried,
    StoredRecord,
    as_it_is,
    claim,
    commit,
    export,
    folded,
    import_family,
    is_export,
    is_there,
    opened,
    read_export,
    seal,
)

FRAME_KIND, KIND = "workflow-frame", "workflow-export"


class WorkflowFrame(msgspec.Struct, forbid_unknown_fields=True, rename="camel", tag_field="kind", tag=FRAME_KIND):
    """What a workflow goes on from: its state after record `seq`, as folded from its records."""

    execution_id: str
    name: str
    version: str
    seq: int
    state_version: int
    state: msgspec.Raw


class _Export(msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag=KIND):
    execution_id: str
    workflow: str  # the sealed frame
    records: list[StoredRecord]
    children: list[str]  # exports of executions that were started inside it, each sealed


class CarriedWorkflow(msgspec.Struct, frozen=True):
    """An export that has been checked: its records fold to the state that its frame describes."""

    execution_id: str
    state: WorkflowState
    records: tuple[Record, ...]
    children: tuple[Carried | CarriedWorkflow, ...]


def frame_of_workflow(execution_id: str, state: WorkflowState) -> bytes:
    """Its frame, sealed."""
    settings = state.settings
    frame = WorkflowFrame(
        execution_id, settings.name, settings.version, state.seq, SNAPSHOT_VERSION, msgspec.Raw(freeze(state))
    )
    return seal(msgspec.json.encode(frame))


def kind_in(data: bytes) -> str:
    """The kind that a document claims to be; empty where it claims none."""
    head, _, rest = data[:300].partition(b'"frame":{"kind":"')
    return rest.partition(b'"')[0].decode(errors="replace") if head and rest else ""


def read_workflow_frame(data: bytes) -> WorkflowFrame:
    """The checked frame. FrameError subclasses name what is wrong."""
    if (kind := kind_in(data)) != FRAME_KIND:
        raise WrongKind(f"is {kind or 'no kind'!r}, expected the frame of a workflow", path="$.frame.kind")
    return opened(data, WorkflowFrame)


async def export_workflow(ledger: Ledger, execution_id: str, state: WorkflowState) -> bytes:
    """The execution and all inside it as a document. LedgerError where the store cannot be read."""
    records = await ledger.records(execution_id, to=state.seq)
    started = [decode(r.kind, r.version, r.body) for r in records if r.kind == "child.started"]
    names = dict.fromkeys(event.child for event in started if isinstance(event, ev.ChildStarted))
    children = [found.decode() for name in names if (found := await _export_child(ledger, name)) is not None]
    whole = _Export(
        execution_id,
        frame_of_workflow(execution_id, state).decode(),
        [StoredRecord(*record[:-1], msgspec.Raw(record.body)) for record in records],
        children,
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
    if row.kind == WORKFLOW:
        return await export_workflow(ledger, execution_id, await load_workflow(ledger, execution_id))
    return await export(ledger, execution_id, (await load_state(ledger, execution_id)).state)


def read_any(data: bytes) -> Carried | CarriedWorkflow:
    """The checked export, of a loop or of a workflow. FrameError subclasses name what is wrong; nothing of it is used then."""
    if is_export(data):
        return read_export(data)
    if (kind := kind_in(data)) != KIND:
        raise WrongKind(f"is {kind or 'no kind'!r}, expected an export", path="$.frame.kind")
    whole = opened(data, _Export)
    records = tuple(Record(r[0], r[1], r[2], r[3], r[4], bytes(r[5])) for r in map(_fields, whole.records))
    state = folded(records, WorkflowState(), advance)
    if not records or whole.workflow.encode() != frame_of_workflow(whole.execution_id, state):
        raise BrokenInvariant("the frame does not describe what the records say", path="$.frame.workflow")
    children = tuple(read_any(child.encode()) for child in whole.children)
    return CarriedWorkflow(whole.execution_id, state, records, children)


def _fields(record: StoredRecord) -> tuple[int, str, int, int | None, int, msgspec.Raw]:
    return record.seq, record.kind, record.version, record.parent, record.at_us, record.body


async def import_workflow(ledger: Ledger, carried: CarriedWorkflow, *, owner: str) -> None:
    """Writes it into a store, what is inside it first: killed half way, it is begun again. InputError where its id is taken."""
    for child in carried.children:
        if await is_there(ledger, child.execution_id, child.records):
            continue
        if isinstance(child, CarriedWorkflow):
            await import_workflow(ledger, child, owner=owner)
        else:
            await import_family(ledger, child, as_it_is, owner=owner, at_us=child.records[-1].at_us)
    ownership = await claim(ledger, carried.execution_id, WORKFLOW, owner, carried.state.started_us)
    try:
        await commit(ledger, _batch(ownership, carried))
    finally:
        await ledger.release(ownership)


def _batch(ownership: Ownership, carried: CarriedWorkflow) -> Batch:
    receipts: list[tuple[str, str]] = []
    asked: list[tuple[str, str, bytes]] = []
    answered: list[tuple[str, bytes]] = []
    for record in carried.records:
        event: Any = decode(record.kind, record.version, record.body)
        match event:
            case ev.UsageCharged() if event.receipt:
                receipts.append((event.task, event.receipt))
            case ev.TaskSuspended():
                asked += [
                    (question.id, question.kind, record.body) for question in event.questions if not question.child
                ]
            case ev.TaskAnswered() if event.id.startswith(f"{event.task}.q"):
                answered.append((event.id, record.body))
            case _:
                pass
    state = carried.state
    records: Sequence[Record] = carried.records
    return Batch(
        ownership,
        records,
        receipts=receipts,
        opened=asked,
        closed=answered,
        snapshot=Snapshot(state.seq, SNAPSHOT_VERSION, freeze(state)),
        summary=Summary(state.seq, summary_bytes(carried.execution_id, state)),
    )
