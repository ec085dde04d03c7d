"""`treadle show`, `treadle why` and `treadle last`: one execution, one round, one turn, one output."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import anyio

from .arguments import Namespace, Parser
from .values import whole

if TYPE_CHECKING:
    from treadle.ports.ledger import Record

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
        made = Parser(name, last, "The whole output of the last tool call, however long it is.").execution()
        return made.option("--call", metavar="ID", help="the call with this id").store()
    made = Parser(name, show, "Task, ending, accounts, limits and rounds; or one round, or one turn of it.").execution()
    made.option("--turn", metavar="N", type=whole("--turn"), help="this turn, whole: calls, results, usage")
    return made.round().store().json()


def show(given: Namespace) -> int:
    """Prints the page, or its part."""
    from .place import place

    anyio.run(partial(_show, place(given.store), given.execution, given.turn, given.round, json=given.json))
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


async def _show(where: Place, execution: str, turn: int | None, number: int | None, *, json: bool) -> None:
    from treadle.app import history
    from treadle.core.errors import InputError
    from treadle.runtime.document import document

    from . import pages
    from .output import print_json
    from .place import found, opened

    async with opened(where) as ledger:
        row, state = await found(ledger, execution)
        records: list[Record] = []
        if turn is not None or number is not None or not json:
            records = await ledger.records(row.execution_id)
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
        print_json(document(row.execution_id, state))
    else:
        pages.print_execution(row, state, known, where.named_store)


async def _why(where: Place, execution: str, *, json: bool) -> None:
    from treadle.app.ending import artifact_path, rest_of
    from treadle.runtime.document import document

    from . import pages
    from .output import print_json
    from .place import found, opened

    async with opened(where) as ledger:
        row, state = await found(ledger, execution)
    page = artifact_path(where.settings.state_dir, row.execution_id)
    artifact = str(page) if page.exists() else None
    rest = rest_of(row.execution_id, state, store=where.named_store)
    if json:
        said = document(row.execution_id, state)
        keys = ("execution_id", "status", "code", "pending", "outcome")
        print_json({**{key: said[key] for key in keys}, "next": rest.next, "artifact": artifact})
    else:
        pages.print_why(state, rest, artifact)


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
