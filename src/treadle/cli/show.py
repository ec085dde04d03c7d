"""`treadle show`, `treadle why` and `treadle last`: one execution, one round, one turn, one output."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from .options import Execution, Json, Round, Store

if TYPE_CHECKING:
    from treadle.ports.ledger import Record

    from .place import Place

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def show(
    execution: Execution,
    turn: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="This turn, whole: calls, results, usage.")
    ] = None,
    round: Round = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Task, ending, accounts, limits and rounds; or one round, or one turn of it."""
    from .place import place

    anyio.run(partial(_show, place(store), execution, turn, round, json=json))


@app.command()
def why(execution: Execution, store: Store = None, json: Json = False) -> None:
    """Why it ended, or waits: outcome, evidence, advice, and the next command."""
    from .place import place

    anyio.run(partial(_why, place(store), execution, json=json))


@app.command()
def last(
    execution: Execution,
    call: Annotated[str | None, typer.Option("--call", metavar="ID", help="The call with this id.")] = None,
    store: Store = None,
) -> None:
    """The whole output of the last tool call, however long it is."""
    from .place import place

    anyio.run(partial(_last, place(store), execution, call))


async def _show(where: Place, execution: str, turn: int | None, number: int | None, *, json: bool) -> None:
    from treadle.app import history
    from treadle.core.errors import InputError
    from treadle.runtime.document import document

    from . import pages
    from .output import print_json
    from .place import found, opened

    async with opened(where) as runtime:
        row, state = await found(runtime, execution)
        records: list[Record] = []
        if turn is not None or number is not None or not json:
            records = await runtime.ledger.records(row.execution_id)
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

    async with opened(where) as runtime:
        row, state = await found(runtime, execution)
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
    from treadle.core.codec import decode
    from treadle.core.errors import InputError
    from treadle.core.messages import ToolsFinished

    from .place import found, opened

    async with opened(where) as runtime:
        row, _ = await found(runtime, execution)
        for record in reversed(await runtime.ledger.records(row.execution_id)):
            if record.kind != "tools.finished":
                continue
            event = decode(record.kind, record.version, record.body)
            assert isinstance(event, ToolsFinished)
            for result in reversed(event.results):
                if call in (None, result.id):
                    content = result.content.encode(errors="replace")
                    sys.stdout.buffer.write(await runtime.ledger.blob(result.blob) if result.blob else content)
                    sys.stdout.buffer.flush()
                    return
    raise InputError(f"There is no call {call!r} in it." if call else "It has no tool output yet.")
