"""Executions of either kind as a listing shows them: from their stored summaries where these are exact, folded where they are not."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple, cast

from treadle.core.codec import decode
from treadle.core.errors import LedgerDamaged, LedgerTooNew, TreadleError
from treadle.core.events import LoopStarted
from treadle.core.workflow_events import ChildStarted
from treadle.kernel.states import LoopState
from treadle.kernel.workflow_states import WorkflowState
from treadle.ports.ledger import ExecutionRow, Ledger
from treadle.runtime.document import document
from treadle.runtime.journal import load_state
from treadle.runtime.workflow_document import document as workflow_document
from treadle.runtime.workflow_journal import KIND, load_workflow

from .waits import with_waits

AnyState = LoopState | WorkflowState
UNREADABLE = (LedgerTooNew, LedgerDamaged)  # one execution's fault, a newer Treadle's perhaps; the others go on
CHILD_ID = 16  # characters; ids that were drawn by chance are shorter
PAGE = 5_000


class Parent(NamedTuple):
    """The workflow that an execution runs inside, or the loop that forked it, and by which name that calls it."""

    execution_id: str
    child: str


class Listed(NamedTuple):
    """One execution: its document (SV-03) and what only a listing needs. Where it runs, that says `owner_alive`.

    `parent` is the execution that it runs inside, empty where there is none; the document has it then, too.
    """

    document: dict[str, Any]
    created_us: int
    owner_alive: bool
    parent: str = ""


async def state_of(ledger: Ledger, row: ExecutionRow) -> AnyState:
    """The state now, of a loop or a workflow."""
    if row.kind == KIND:
        return await load_workflow(ledger, row.execution_id)
    return (await load_state(ledger, row.execution_id))[0]


def document_of(execution_id: str, state: AnyState, *, signal: str = "") -> dict[str, Any]:
    """Its document (SV-03), as far as a listing has it."""
    if isinstance(state, WorkflowState):
        return workflow_document(execution_id, state, signal=signal)
    return document(execution_id, state, signal=signal)


async def listing(ledger: Ledger, *, limit: int | None = None, status: str = "") -> list[Listed]:
    """Newest first, at most `limit`. One that was killed before its first record was never started and is left out."""
    found: list[Listed] = []
    seen: dict[str, dict[str, Any]] = {}  # what is filtered out may run inside what is not, and is newer
    rows = await ledger.rows(limit=None if status else limit)
    for row in rows:
        try:
            entry = await listed(ledger, row)
        except UNREADABLE as error:
            entry = _unreadable(row, error)
        if entry is not None:
            seen[entry.document["execution_id"]] = entry.document
        if entry is not None and status in ("", entry.document["status"]):
            found.append(entry)
        if limit is not None and len(found) >= limit:
            break
    parents = await parents_of(ledger, [one.document["execution_id"] for one in found])
    found = [one._replace(document=with_waits(one.document, seen.get)) for one in found]
    return [_inside(one, parents.get(one.document["execution_id"])) for one in found]


def _unreadable(row: ExecutionRow, error: TreadleError) -> Listed:
    """What its last summary says, and that it is no more than that."""
    bare: dict[str, Any] = {"execution_id": row.execution_id, "pending": None, "rounds": 0, "task": ""}
    bare |= dict.fromkeys(("cost_usd", "in_doubt_usd"), Decimal(0))
    known = summary_of(row) or {}
    told = {"status": "unreadable", "code": "", "fault": str(error)}
    return Listed({**bare, **known, **told}, row.created_us, row.owner_alive)


def _inside(one: Listed, parent: Parent | None) -> Listed:
    if parent is None:
        return one
    return one._replace(document={**one.document, "parent": parent.execution_id}, parent=parent.execution_id)


def summary_of(row: ExecutionRow) -> dict[str, Any] | None:
    """What is kept for listings; None where there is none, or none that can be read: then the records are folded."""
    try:
        found = json.loads(row.summary.body, parse_float=Decimal) if row.summary else None
    except ValueError:
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) and "status" in found else None


async def listed(ledger: Ledger, row: ExecutionRow) -> Listed | None:
    """One of them; None where it was never started."""
    if not row.head:
        return None
    found = summary_of(row) if row.summary is not None and row.summary.seq == row.head else None
    if found is None:
        found = document_of(row.execution_id, await state_of(ledger, row))
    if found["status"] == "running":
        found["owner_alive"] = row.owner_alive
    return Listed(found, row.created_us, row.owner_alive)


async def parents_of(ledger: Ledger, execution_ids: Iterable[str]) -> dict[str, Parent]:
    """Which of these run inside another execution, and inside which. Nothing is read where no id looks like that of a child."""
    wanted = {one for one in execution_ids if len(one) >= CHILD_ID}
    found: dict[str, Parent] = {}
    if not wanted:
        return found
    for row in await ledger.rows():
        if row.kind != KIND and row.execution_id in wanted and row.head:
            if parent := await _forked_by(ledger, row.execution_id):
                found[row.execution_id] = Parent(parent, row.execution_id)
        elif row.kind == KIND and row.head and wanted - found.keys():
            for child in await _children(ledger, row.execution_id):
                here = Parent(row.execution_id, child)
                found.update(dict.fromkeys((name for name in wanted if _is(name, child)), here))
    return found


async def _forked_by(ledger: Ledger, execution_id: str) -> str:
    """The loop whose agent forked it, as its first record says; empty: nobody's did."""
    (first,) = await ledger.records(execution_id, after=0, to=1)
    event: Any = decode(first.kind, first.version, first.body)
    return event.forked_by if isinstance(event, LoopStarted) else ""


def _is(name: str, child: str) -> bool:
    """Whether this is that child; one that was killed before its first record is run under the next name (see nesting)."""
    return name == child or (name.startswith(child) and not name[len(child) :].strip("0"))


async def children_of(ledger: Ledger, execution_id: str) -> dict[str, str]:
    """Executions that a workflow has run inside its tasks, or that a loop's agent has forked: oldest first, with task or name."""
    if (await ledger.row(execution_id)).kind != KIND:
        return dict((await load_state(ledger, execution_id)).state.children)
    named = await _children(ledger, execution_id)
    started = [row.execution_id for row in await ledger.rows() if row.head] if named else []
    return {name: task for child, task in named.items() for name in started if _is(name, child)}


async def _children(ledger: Ledger, execution_id: str) -> dict[str, str]:
    found: dict[str, str] = {}
    after = 0
    while page := await ledger.records(execution_id, after=after, limit=PAGE):
        for record in page:
            if record.kind == "child.started":
                event: Any = decode(record.kind, record.version, record.body)
                assert isinstance(event, ChildStarted)
                found[event.child] = event.task
        after = page[-1].seq
    return found
