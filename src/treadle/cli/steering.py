"""What people say to an execution: answer, approve, reject, cancel, extend."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import anyio

from .arguments import Namespace, Parser, Words
from .person import speaker
from .values import cost, seconds, whole

if TYPE_CHECKING:
    from treadle.app.listing import AnyState
    from treadle.app.runtime import Runtime
    from treadle.kernel.steering import Answer, Steering
    from treadle.ports.ledger import Ledger

    from .place import Place


WORKFLOW_LIMITS = {
    "max_attempts": "attempts of all its tasks",
    "max_requests": "model requests",
    "max_input_tokens": "input tokens",
    "max_output_tokens": "output tokens",
    "max_cache_read_tokens": "tokens read from a cache",
    "max_cache_write_tokens": "tokens written to a cache",
}


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
    made.option("--max-tokens", metavar="N", type=whole("--max-tokens"), help="input and output together")
    made.guard()
    for name, words in WORKFLOW_LIMITS.items():
        flag = f"--{name.replace('_', '-')}"
        made.option(flag, metavar="N", type=whole(flag), help=f"of a workflow: {words}")
    return made


def _request(made: Parser) -> Parser:
    return made.option(
        "--request", metavar="ID", action=Words, help="the question that is meant, so that no later one is answered"
    )


def answer(given: Namespace) -> int:
    """An answer to a question."""
    return steer(given, _answer("answer", given.text, given))


def approve(given: Namespace) -> int:
    """Yes."""
    return steer(given, _answer("approve", given.reason, given))


def reject(given: Namespace) -> int:
    """No."""
    return steer(given, _answer("reject", given.reason, given))


def cancel(given: Namespace) -> int:
    """The end of it."""
    from treadle.kernel.steering import Cancel

    said = Cancel(actor=speaker(given.actor), reason=given.reason)
    return steer(given, lambda _: said)


def extend(given: Namespace) -> int:
    """More room."""
    from treadle.core.errors import ConfigurationError
    from treadle.kernel.states import LoopState
    from treadle.kernel.steering import Extend

    more = {name: value for name in WORKFLOW_LIMITS if (value := getattr(given, name)) is not None}
    said = Extend(
        actor=speaker(given.actor),
        max_rounds=given.max_rounds,
        max_turns=given.max_turns,
        max_cost_usd=given.max_cost,
        max_duration_us=None if given.max_time is None else int(given.max_time * 1e6),
        max_tokens=given.max_tokens,
        guards=given.guard or {},
    )

    def made(state: AnyState) -> Steering | WorkflowLimits:
        if isinstance(state, LoopState):
            if more:
                raise ConfigurationError(
                    f"--{next(iter(more)).replace('_', '-')} is a limit of workflows; this is a loop."
                )
            return said
        names = ("max_rounds", "max_turns", "guard")
        if foreign := next((n for n in names if getattr(given, n) is not None), None):
            raise ConfigurationError(f"--{foreign.replace('_', '-')} is a limit of loops; this is a workflow.")
        return WorkflowLimits(
            said.actor,
            {
                **more,
                "max_tokens": given.max_tokens,
                "max_cost_usd": given.max_cost,
                "max_time_s": given.max_time,
            },
        )

    return steer(given, made)


_PARSERS: dict[str, Callable[[str], Parser]] = {
    "answer": _answer_parser,
    "approve": _approve_parser,
    "reject": _reject_parser,
    "cancel": _cancel_parser,
    "extend": _extend_parser,
}


class WorkflowLimits(NamedTuple):
    """New limits of a workflow, by the names of its budget."""

    actor: str
    limits: dict[str, Any]


Said = Callable[["AnyState"], "Steering | WorkflowLimits"]


def _answer(
    decision: Literal["answer", "approve", "reject"], text: str, given: Namespace
) -> Callable[[AnyState], Steering]:
    """To the question that was named, or to the one that is open."""
    from treadle.kernel.steering import Answer

    def made(state: AnyState) -> Answer:
        request_id = given.request or _only_open(state)
        return Answer(request_id=request_id, decision=decision, text=text, actor=speaker(given.actor))

    return made


def _only_open(state: AnyState) -> str:
    """The id of the one question that is open. AnswerRefused where there is none, or several could be meant."""
    from treadle.core.errors import AnswerRefused
    from treadle.kernel.states import LoopState

    if isinstance(state, LoopState):
        open_ids = [state.pending.id] if state.pending is not None else []
    else:
        open_ids = [question.id for key in state.asking for question in state.active[key].questions]
    if not open_ids:
        raise AnswerRefused("Nothing is waiting for an answer; it may have been answered already.")
    if len(open_ids) > 1:
        raise AnswerRefused(f"{len(open_ids)} questions are open: say which, --request ID. {', '.join(open_ids[:10])}.")
    return open_ids[0]


def steer(given: Namespace, said: Said) -> int:
    """Gives it what was said, and prints how it stands."""
    from .place import place

    anyio.run(partial(_give, place(given.store), given.execution, said, json=given.json, quiet=given.quiet))
    return 0


async def _outermost(ledger: Ledger, execution_id: str, answer: Answer) -> tuple[str, Answer]:
    """The execution that asks on behalf of one inside it, and the answer as that knows it."""
    from treadle.core.values import replace
    from treadle.kernel.states import LoopState

    from .place import found, parent_of

    while parent := await parent_of(ledger, execution_id):
        asked = f"{parent.child}.{answer.request_id}"
        state = (await found(ledger, parent.execution_id))[1]
        if answer.end or (isinstance(state, LoopState) and (state.pending is None or state.pending.id != asked)):
            break  # it is not parked for that: its agent is to answer, or it was killed before it was
        answer = replace(answer, request_id=asked)
        execution_id = parent.execution_id
    return execution_id, answer


async def _granted(runtime: Runtime, execution_id: str, before: AnyState, said: Said) -> tuple[str, AnyState, AnyState]:
    """(the execution that was told, its state before and after)."""
    from treadle.kernel.states import LoopState
    from treadle.kernel.steering import Answer
    from treadle.spec.workflows import Budget

    from .place import found, workflows

    wish = said(before)
    if isinstance(wish, Answer):
        outer, wish = await _outermost(runtime.ledger, execution_id, wish)
        if outer != execution_id:
            execution_id, before = outer, (await found(runtime.ledger, outer))[1]
    if isinstance(wish, WorkflowLimits):
        after = await workflows(runtime).extend(execution_id, Budget(**wish.limits), actor=wish.actor)
        return execution_id, before, after
    if isinstance(before, LoopState):
        return execution_id, before, await runtime.steer(execution_id, wish)
    return execution_id, before, await workflows(runtime).steer(execution_id, [wish])


async def _give(where: Place, execution: str, said: Said, *, json: bool, quiet: bool) -> None:
    """To the process that runs it, or into the records where none does."""
    import sys

    from treadle.app.ending import rest_of
    from treadle.app.task_history import whole_document

    from .drive import record_ending
    from .engine import rung
    from .output import banner, print_json, warn
    from .place import found, running

    async with running(where) as runtime:
        row, before = await found(runtime.ledger, execution)
        execution_id, before, state = await _granted(runtime, row.execution_id, before, said)
        if state.seq > before.seq and state.status != "running":
            await record_ending(where, runtime.ledger, execution_id, state)
        await rung(runtime, execution_id)
        if json:
            print_json(await whole_document(runtime.ledger, execution_id, state))
    if quiet:
        return
    if state.seq == before.seq:
        warn(f"{execution_id}: given to the process that runs it.")
    else:
        rest = rest_of(execution_id, state, store=where.named_store)
        banner(
            execution_id,
            rest._replace(label="running, ready to go on") if state.status == "running" else rest,
            stream=sys.stderr,
        )
