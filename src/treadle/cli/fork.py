"""`treadle fork`: a new execution from any record of an old one (FR-22)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio

from .arguments import Namespace, Parser
from .person import speaker
from .values import whole

if TYPE_CHECKING:
    from .place import Place


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name,
        fork,
        "Make a new execution that goes on from a record of this one; then treadle resume. What was counted until then counts.\n\n"
        "In a git repository it works in a scope of its own (treadle scope), with the files as they were when that round's act\n"
        "began, or ended; what is accepted is left there as a branch. Elsewhere the files stay as they are.",
    ).execution()
    made.option(
        "--at", metavar="SEQ", type=whole("--at"), help="the record, as treadle log numbers them (default: the last)"
    )
    return made.actor().store().json()


def fork(given: Namespace) -> int:
    """Makes it, and prints its id."""
    from .place import place

    anyio.run(partial(_fork, place(given.store), given.execution, given.at, speaker(given.actor), json=given.json))
    return 0


async def _fork(where: Place, execution: str, at: int | None, actor: str, *, json: bool) -> None:
    from treadle.app.forking import fork as forked

    from .output import print_json, warn
    from .place import found_loop, running

    async with running(where) as runtime:
        row, _ = await found_loop(runtime.ledger, execution)
        made = await forked(runtime, row.execution_id, at=at, actor=actor)
    if json:
        print_json(made._asdict())
        return
    files = f"its files are in {made.workspace}" if made.isolated else "the files were left as they are"
    warn(f"{made.execution_id} goes on from record {made.at} of {made.source}; {files}.")
    warn(f"Next: treadle resume {made.execution_id}{where.flag}")
