"""`treadle show`, `treadle why` and `treadle last`: one execution, one round, one turn, one output."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from .arguments import Namespace, Parser
from .values import whole

if TYPE_CHECKING:
    from treadle.app.listing import AnyState
    from treadle.kernel.states import LoopState
    from treadle.kernel.workflow_states import WorkflowState
    from treadle.ports.ledger import ExecutionRow, Ledger, Record

    from .place import Place


def parser(name: str) -> Parser:
    """Arguments of the one that is named."""
    if name == "why":
        return (
            Parser(name, why, "Why it ended, or waits: outcome, evidence, advice, and the next command.")
            .execution()
            .store()
            .json()
        )
    if name == "last":
        made = Parser(
            name,
            last,
            "The output of the last tool call as it was kept: whole up to 4 MiB for a command, of more its beginning and end.",
        ).execution()
        return made.option("--call", metavar="ID", help="the call with this id").store()
    made = Parser(
        name,
        show,
        "Task, ending, accounts, limits and rounds, or the task graph of a workflow; or one round, one turn or one task of it.",
    ).execution()
    made.option("--turn", metavar="N", type=whole("--turn"), help="this turn, whole: calls, results, usage")
    made.option("--task", metavar="KEY", help="this task of a workflow, whole: rounds, answers, output")
    return made.round().store().json()


def show(given: Namespace) -> int:
    """Prints the page, or its part."""
    from .place import place

    anyio.run(partial(_show, place(given.store), given.execution, given.turn, given.round, given.task, json=given.json))
    return 0


def why(given: Namespace) -> int:
    """Prints the reasons."""
    from .place import place

    anyio.run(partial(_why, place(given.store), given.execution, json=given.json))
    return 0


def last(given: Namespace) -> int:
    """Prints the output as it is."""
    from .place import place

    anyio.run(partial(_last, place(given.store), given.execution, given.call))
    return 0


async def _show(
    where: Place, execution: str, turn: int | None, number: int | None, task: str | None, *, json: bool
) -> None:
    from treadle.app import history
    from treadle.core.errors import InputError
    from treadle.kernel.plan_words import as_document
    from treadle.kernel.states import LoopState
    from treadle.runtime.document import document

    from . import pages
    from .output import print_json
    from .place import found, opened, parent_of

    async with opened(where) as ledger:
        row, state = await found(ledger, execution)
        if not isinstance(state, LoopState):
            if turn is not None or number is not None:
                raise InputError(
                    f"{row.execution_id} is a workflow: turns and rounds are those of the loops inside it."
                )
            if task is not None:
                await _show_task(ledger, row.execution_id, state, task, json=json)
            else:
                await _show_workflow(where, ledger, row, state, json=json)
            return
        if task is not None:
            raise InputError(f"{row.execution_id} is a loop: it has rounds and turns, but no tasks.")
        parent = await parent_of(ledger, row.execution_id)
        records: list[Record] = []
        if turn is not None or number is not None or not json:
            records = await ledger.records(row.execution_id)
        answered = await _answered(ledger, row.execution_id, state)
        children = {} if json else await _documents(ledger, [child for child, _ in state.children])
    if turn is not None:
        one_turn = history.turn(records, turn)
        print_json(history.turn_document(one_turn)) if json else pages.print_turn(one_turn)
        return
    known = history.rounds(records)
    if number is not None:
        one = next((one for one in known if one.round == number), None)
        if one is None:
            raise InputError(f"There is no round {number}: it has had {len(known)}. Rounds count from 1.")
        print_json(history.round_document(one)) if json else pages.print_round(one)
        return
    if json:
        plan = {"plan": as_document(state.plan)} if state.plan.steps else {}
        print_json(document(row.execution_id, state) | plan | ({"parent": parent.execution_id} if parent else {}))
    else:
        above = parent.execution_id if parent else ""
        pages.print_execution(row, state, known, where.named_store, above, children, answered)


async def _answered(ledger: Ledger, execution_id: str, state: LoopState) -> str:
    """Who has answered what a child waits with, to the one that forked it: the child hears of it when that one goes on."""
    from treadle.core.errors import UnknownExecution
    from treadle.runtime.journal import load_state

    if not state.parent or state.pending is None:
        return ""
    try:
        answer = (await load_state(ledger, state.parent)).state.answer
    except UnknownExecution:
        return ""
    return answer.actor if answer is not None and answer.id == f"{execution_id}.{state.pending.id}" else ""


async def _documents(ledger: Ledger, children: list[str]) -> dict[str, dict[str, Any]]:
    """Of those that are there: a child may have been removed, or never have got as far as its first record."""
    from treadle.app.listing import listed
    from treadle.core.errors import UnknownExecution

    found: dict[str, dict[str, Any]] = {}
    for child in children:
        try:
            one = await listed(ledger, await ledger.row(child))
        except UnknownExecution:
            continue
        if one is not None:
            found[child] = one.document
    return found


async def _show_workflow(where: Place, ledger: Ledger, row: ExecutionRow, state: WorkflowState, *, json: bool) -> None:
    from treadle.app.listing import children_of
    from treadle.app.task_history import whole_document

    from . import pages
    from .output import print_json
    from .place import parent_of

    children = await children_of(ledger, row.execution_id)
    parent = await parent_of(ledger, row.execution_id)
    document = await _waiting(ledger, row.execution_id, state)
    waits: list[dict[str, Any]] = document.get("waits", [])
    if json:
        inside = [{"execution_id": child, "task": key} for child, key in children.items()]
        found = await whole_document(ledger, row.execution_id, state)
        print_json(
            found
            | ({"waits": waits} if waits else {})
            | {"children": inside}
            | ({"parent": parent.execution_id} if parent else {})
        )
    else:
        pages.print_workflow(row, state, children, where.named_store, parent.execution_id if parent else "", waits)


async def _waiting(ledger: Ledger, execution_id: str, state: AnyState) -> dict[str, Any]:
    """Its document, with what it waits for inside."""
    from treadle.app.listing import document_of
    from treadle.app.waits import documents_inside, with_waits

    document = document_of(execution_id, state)
    return with_waits(document, (await documents_inside(ledger, document)).get)


async def _show_task(ledger: Ledger, execution_id: str, state: WorkflowState, key: str, *, json: bool) -> None:
    from treadle.app.task_history import task_history

    from . import pages
    from .output import print_json

    found = await task_history(ledger, execution_id, state, key)
    print_json(found) if json else pages.print_task(found)


async def _why(where: Place, execution: str, *, json: bool) -> None:
    from treadle.app.ending import artifact_path, rest_of
    from treadle.kernel.states import LoopState

    from . import pages
    from .output import print_json
    from .place import found, opened

    async with opened(where) as ledger:
        row, state = await found(ledger, execution)
        said = await _waiting(ledger, row.execution_id, state)
    page = artifact_path(where.settings.state_dir, row.execution_id)
    artifact = str(page) if page.exists() else None
    rest = rest_of(row.execution_id, state, store=where.named_store, owned=row.owner_alive)
    if json:
        keys = ("execution_id", "status", "code", "pending", "waits", "outcome", "guards")
        print_json({**{key: said[key] for key in keys if key in said}, "next": rest.next, "artifact": artifact})
    elif isinstance(state, LoopState):
        pages.print_why(state, rest, artifact)
    else:
        pages.print_why_workflow(state, rest, artifact, said.get("waits", []))


async def _last(where: Place, execution: str, call: str | None) -> None:
    from treadle.app.history import last_output
    from treadle.core.errors import InputError

    from .place import found, opened

    async with opened(where) as ledger:
        row, _ = await found(ledger, execution)
        result = last_output(await ledger.records(row.execution_id), call)
        if result is None:
            raise InputError(f"There is no call {call!r} in it." if call else "It has no tool output yet.")
        content = result.content.encode(errors="replace")
        sys.stdout.buffer.write(await ledger.blob(result.blob) if result.blob else content)
        sys.stdout.buffer.flush()
