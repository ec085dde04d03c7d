"""What people say to an execution: answer, approve, reject, cancel, extend."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from .options import Actor, Execution, Json, Quiet, Reason, Store
from .values import cost, seconds, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from treadle.kernel.states import LoopState
    from treadle.kernel.steering import Steering

    from .place import Place

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
Request = Annotated[
    str | None,
    typer.Option("--request", metavar="ID", help="The question that is meant, so that no later one is answered."),
]


@app.command()
def answer(
    execution: Execution,
    text: Annotated[str, typer.Argument(metavar="TEXT", show_default=False, help="The answer.")],
    request: Request = None,
    actor: Actor = "",
    store: Store = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer the question that it waits with. Then treadle resume, if no process is running it."""
    _steer(store, execution, _answer("answer", text, request, actor), json=json, quiet=quiet)


@app.command()
def approve(
    execution: Execution,
    request: Request = None,
    actor: Actor = "",
    reason: Reason = "",
    store: Store = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say yes to what it waits with. Then treadle resume, if no process is running it."""
    _steer(store, execution, _answer("approve", reason, request, actor), json=json, quiet=quiet)


@app.command()
def reject(
    execution: Execution,
    request: Request = None,
    actor: Actor = "",
    reason: Reason = "",
    store: Store = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say no. The reason of a rejected result is the feedback for the next round."""
    _steer(store, execution, _answer("reject", reason, request, actor), json=json, quiet=quiet)


@app.command()
def cancel(
    execution: Execution,
    actor: Actor = "",
    reason: Reason = "",
    store: Store = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """End it for good. A process that runs it stops within a second."""
    from treadle.kernel.steering import Cancel

    from .person import user_name

    said = Cancel(actor=actor or user_name(), reason=reason)
    _steer(store, execution, lambda _: said, json=json, quiet=quiet)


@app.command()
def extend(
    execution: Execution,
    max_rounds: Annotated[int | None, typer.Option(parser=whole("--max-rounds"), metavar="N")] = None,
    max_turns: Annotated[int | None, typer.Option(parser=whole("--max-turns"), metavar="N")] = None,
    max_cost: Annotated[str | None, typer.Option(parser=cost("--max-cost"), metavar="USD", help="US dollars.")] = None,
    max_time: Annotated[
        str | None, typer.Option(parser=seconds("--max-time"), metavar="DURATION", help="90s, 10m, 2h.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(parser=whole("--max-tokens"), metavar="N")] = None,
    actor: Actor = "",
    store: Store = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Raise limits: each value is the new limit, counted from the start. Then treadle resume, if it was stopped."""
    from decimal import Decimal

    from treadle.kernel.steering import Extend

    from .person import user_name

    said = Extend(
        actor=actor or user_name(),
        max_rounds=max_rounds,
        max_turns=max_turns,
        max_cost_usd=None if max_cost is None else Decimal(max_cost),
        max_duration_us=None if max_time is None else int(float(max_time) * 1e6),
        max_tokens=max_tokens,
    )
    _steer(store, execution, lambda _: said, json=json, quiet=quiet)


def _answer(decision: str, text: str, request: str | None, actor: str) -> Callable[[LoopState], Steering]:
    """The answer to the question that was named, or to the one that is open."""
    from treadle.core.errors import AnswerRefused
    from treadle.kernel.steering import Answer

    from .person import user_name

    def made(state: LoopState) -> Steering:
        if request is None and state.pending is None:
            raise AnswerRefused("Nothing is waiting for an answer; it may have been answered already.")
        request_id = request or (state.pending.id if state.pending else "")
        return Answer(request_id=request_id, decision=decision, text=text, actor=actor or user_name())  # pyright: ignore[reportArgumentType]

    return made


def _steer(
    store: str | None, execution: str, said: Callable[[LoopState], Steering], *, json: bool, quiet: bool
) -> None:
    from .place import place

    anyio.run(partial(_give, place(store), execution, said, json=json, quiet=quiet))


async def _give(
    where: Place, execution: str, said: Callable[[LoopState], Steering], *, json: bool, quiet: bool
) -> None:
    """To the process that runs it, or into the records where none does."""
    import sys

    from treadle.app.ending import rest_of
    from treadle.runtime.document import document

    from .drive import record_ending
    from .output import banner, print_json, warn
    from .place import found, opened

    async with opened(where) as runtime:
        row, before = await found(runtime, execution)
        state = await runtime.steer(row.execution_id, said(before))
        if state.seq > before.seq and state.status != "running":
            await record_ending(where, runtime, row.execution_id, state)
    if json:
        print_json(document(row.execution_id, state))
    if quiet:
        return
    if state.seq == before.seq:
        warn(f"{row.execution_id}: given to the process that runs it.")
    else:
        banner(row.execution_id, rest_of(row.execution_id, state, store=where.named_store), stream=sys.stderr)
