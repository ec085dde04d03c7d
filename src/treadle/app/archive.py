"""Whole stores, or some executions with all that ran inside them, as a file: an export a line, each of which vouches for itself (LG-09)."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from treadle.core.errors import FrameError, LedgerDamaged, OwnerAlive, TreadleError, UnknownExecution
from treadle.kernel.states import LoopState
from treadle.ports.ledger import ExecutionRow, Ledger
from treadle.runtime.journal import LOOP
from treadle.runtime.workflow_journal import WORKFLOW

from .carry import Carried, as_it_is, export, import_family, is_there
from .carry_workflow import CarriedWorkflow, export_workflow, import_workflow, read_any
from .listing import parents_of, state_of, summary_of


class Took(NamedTuple):
    """What became of an import."""

    executions: int
    known: int  # which the store has already, record for record


async def whole(ledger: Ledger, names: Iterable[str]) -> list[ExecutionRow]:
    """The executions with these ids, or all of the store but those that ran inside another: these come along with it. Oldest first."""
    if wanted := list(names):
        rows = [await ledger.row(name) for name in wanted]
        if never := next((row for row in rows if not row.head), None):
            raise UnknownExecution(f"{never.execution_id} was never started.")
        return list({row.execution_id: row for row in rows}.values())
    rows = [row for row in reversed(await ledger.rows()) if row.head]
    inside = await parents_of(ledger, [row.execution_id for row in rows])
    return [row for row in rows if row.execution_id not in inside]


async def documents(ledger: Ledger, rows: Iterable[ExecutionRow]) -> AsyncGenerator[bytes]:
    """One document each. OwnerAlive while one runs: it would go on in two places."""
    for row in rows:
        if row.owner_alive:
            raise OwnerAlive(f"{row.execution_id} is being run by {row.owner}: stop it first, or leave it out.")
        yield await _document(ledger, row)


async def _document(ledger: Ledger, row: ExecutionRow) -> bytes:
    state = await state_of(ledger, row)
    if isinstance(state, LoopState):
        return await export(ledger, row.execution_id, state)
    return await export_workflow(ledger, row.execution_id, state)


async def write(file: Path, ledger: Ledger, rows: list[ExecutionRow]) -> None:
    """The file, whole or not at all. OSError; see `documents`."""
    beside = file.with_name(f"{file.name}.part")
    try:
        with beside.open("wb") as out:
            async for document in documents(ledger, rows):
                await to_thread.run_sync(out.write, document + b"\n")
            out.flush()
            await to_thread.run_sync(os.fsync, out.fileno())
        beside.replace(file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def read(file: Path) -> Iterator[Carried | CarriedWorkflow]:
    """Each execution of the file, checked. FrameError names the line; OSError."""
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield read_any(line.removesuffix(b"\n"))
            except FrameError as error:
                error.args = (f"{file}:{number}: {error}",)
                raise


async def take_in(ledger: Ledger, file: Path, *, owner: str, at_us: int) -> Took:
    """Every execution of the file, once all of it has been checked; run again after a kill, it goes on.

    FrameError; InputError where the store has another execution of that name.
    """
    if not sum(1 for _ in read(file)):  # all of it is read before anything is written
        raise FrameError(f"{file} holds no execution: it is empty.")
    taken = known = 0
    for carried in read(file):
        if await is_there(ledger, carried.execution_id, carried.records):
            known += 1
            continue
        if isinstance(carried, CarriedWorkflow):
            await import_workflow(ledger, carried, owner=owner)
        else:
            await import_family(ledger, carried, as_it_is, owner=owner, at_us=at_us)
        taken += 1
    return Took(taken, known)


async def _derived(ledger: Ledger, row: ExecutionRow) -> list[str]:
    """What was folded and cannot be read: it is made anew from the records, at each use."""
    found: list[str] = []
    snapshot = await ledger.snapshot(row.execution_id)
    if snapshot is not None:
        try:
            (WORKFLOW if row.kind == WORKFLOW.kind else LOOP).thaw(snapshot.body, snapshot.version)
        except LedgerDamaged as error:
            found.append(f"the snapshot of record {snapshot.seq} is not used: {error}")
    if row.summary is not None and summary_of(row) is None:
        found.append("its summary cannot be read and is not used")
    return found


async def unsound(ledger: Ledger) -> list[str]:
    """What is wrong with a store, a line each: its rows, its blobs, and executions whose records do not fold."""
    found = await ledger.verify()
    for row in await whole(ledger, ()):
        found += [f"{row.execution_id}: {line}" for line in await _derived(ledger, row)]
        if not any(line.startswith(f"{row.execution_id}: ") for line in found):
            try:
                read_any(await _document(ledger, row))
            except TreadleError as error:
                found.append(f"{row.execution_id}: {error}")
    return found
