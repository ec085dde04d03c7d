"""What people say to an execution: answer, approve, reject, cancel, extend."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import anyio

from .arguments import Namespace, Parser
from .person import user_name
from .values import cost, seconds, whole

if TYPE_CHECKING:
    from treadle.kernel.states import LoopState
    from treadle.kernel.steering import Steering

    from .place import Place


def parser(name: str) -> Parser:
    """Arguments of the one that is named."""
    made = _PARSERS[name](name)
    return made.actor().store().json().quiet()


def _answer_parser(name: str) -> Parser:
    made = Parser(
        name, answer, "Answer the question that it waits with. Then treadle resume, if no process is running it."
    )
    made.execution().add_argument("text", metavar="TEXT", help="the answer")
    return _request(made)


def _approve_parser(name: str) -> Parser:
    made = Parser(name, approve, "Say yes to what it waits with. Then treadle resume, if no process is running it.")
    return _request(made.execution()).reason("a word on why")


def _reject_parser(name: str) -> Parser:
    made = Parser(name, reject, "Say no. The reason of a rejected result is the feedback for the next round.")
    return _request(made.execution()).reason("why; of a result: what is to be done better")


def _cancel_parser(name: str) -> Parser:
    made = Parser(name, cancel, "End it for good. A process that runs it stops within a second.")
    return made.execution().reason("why")


def _extend_parser(name: str) -> Parser:
    made = Parser(
        name,
        extend,
        "Raise limits: each value is the new limit, counted from the start. Then treadle resume, if it was stopped.",
    ).execution()
    made.option("--max-rounds", metavar="N", type=whole("--max-rounds"), help="rounds of acting and checking")
    made.option("--max-turns", metavar="N", type=whole("--max-turns"), help="model calls that act may make")
    made.option("--max-cost", metavar="USD", type=cost("--max-cost"), help="US dollars, everything together")
    made.option("--max-time", metavar="DURATION", type=seconds("--max-time"), help="active time: 90s, 10m, 2h")
    return made.option("--max-tokens", metavar="N", type=whole("--max-tokens"), help="input and output together")


def _request(made: Parser) -> Parser:
    return made.option("--request", metavar="ID", help="the question that is meant, so that no later one is answered")


def answer(given: Namespace) -> int:
    """An answer to a question."""
    return _steer(given, _answer("answer", given.text, given))


def approve(given: Namespace) -> int:
    """Yes."""
    return _steer(given, _answer("approve", given.reason, given))


def reject(given: Namespace) -> int:
    """No."""
    return _steer(given, _answer("reject", given.reason, given))


def cancel(given: Namespace) -> int:
    """The end of it."""
    from treadle.kernel.steering import Cancel

    said = Cancel(actor=given.actor or user_name(), reason=given.reason)
    return _steer(given, lambda _: said)


def extend(given: Namespace) -> int:
    """More room."""
    from treadle.kernel.steering import Extend

    said = Extend(
        actor=given.actor or user_name(),
        max_rounds=given.max_rounds,
        max_turns=given.max_turns,
        max_cost_usd=given.max_cost,
        max_duration_us=None if given.max_time is None else int(given.max_time * 1e6),
        max_tokens=given.max_tokens,
    )
    return _steer(given, lambda _: said)


_PARSERS: dict[str, Callable[[str], Parser]] = {
    "answer": _answer_parser,
    "approve": _approve_parser,
    "reject": _reject_parser,
    "cancel": _cancel_parser,
    "extend": _extend_parser,
}


def _answer(
    decision: Literal["answer", "approve", "reject"], text: str, given: Namespace
) -> Callable[[LoopState], Steering]:
    """To the question that was named, or to the one that is open."""
    from treadle.core.errors import AnswerRefused
    from treadle.kernel.steering import Answer

    def made(state: LoopState) -> Steering:
        if given.request is None and state.pending is None:
            raise AnswerRefused("Nothing is waiting for an answer; it may have been answered already.")
        request_id = given.request or (state.pending.id if state.pending else "")
        return Answer(request_id=request_id, decision=decision, text=text, actor=given.actor or user_name())

    return made


def _steer(given: Namespace, said: Callable[[LoopState], Steering]) -> int:
    from .place import place

    anyio.run(partial(_give, place(given.store), given.execution, said, json=given.json, quiet=given.quiet))
    return 0


async def _give(
    where: Place, execution: str, said: Callable[[LoopState], Steering], *, json: bool, quiet: bool
) -> None:
    """To the process that runs it, or into the records where none does."""
    import sys

    from treadle.app.ending import rest_of
    from treadle.runtime.document import document

    from .drive import record_ending
    from .output import banner, print_json, warn
    from .place import found, running

    async with running(where) as runtime:
        row, before = await found(runtime.ledger, execution)
        state = await runtime.steer(row.execution_id, said(before))
        if state.seq > before.seq and state.status != "running":
            await record_ending(where, runtime.ledger, row.execution_id, state)
    if json:
        print_json(document(row.execution_id, state))
    if quiet:
        return
    if state.seq == before.seq:
        warn(f"{row.execution_id}: given to the process that runs it.")
    else:
        banner(row.execution_id, rest_of(row.execution_id, state, store=where.named_store), stream=sys.stderr)
