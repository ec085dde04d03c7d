"""`treadle plan`: the plan of an execution, to be read, changed, approved, rejected, and marked where a person knows better."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import anyio

from .arguments import Namespace, Parser, Words
from .person import speaker

if TYPE_CHECKING:
    from treadle.app.listing import AnyState
    from treadle.kernel.states import LoopState
    from treadle.kernel.steering import Answer, Steering

    from .place import Place


def parser(name: str) -> Parser:
    """Arguments of the one that is named: plan show, plan edit, plan approve, plan reject, plan mark."""
    return _PARSERS[name](name)


def _show_parser(name: str) -> Parser:
    text = "The plan: each step with its status, its check, and on whose word it is done."
    return Parser(name, show, text).execution().store().json()


def _edit_parser(name: str) -> Parser:
    text = (
        "Change the plan: in $VISUAL or $EDITOR, or from a file of steps as YAML or JSON. Steps that stay as they were keep\n"
        "their progress. In plan mode the changed plan waits for an approval of its own."
    )
    made = Parser(name, edit, text).execution()
    made.add_argument(
        "file", metavar="FILE", nargs="?", help="the steps; '-' reads them from stdin (default: an editor)"
    )
    return _said(made)


def _approve_parser(name: str) -> Parser:
    made = Parser(name, approve, "Approve the plan as it stands. Then treadle resume, if no process is running it.")
    return _said(_request(made.execution()).reason("a word for the model"))


def _reject_parser(name: str) -> Parser:
    text = "Reject the plan: the reason goes back to the model, which plans anew; with --end it ends there."
    made = Parser(name, reject, text)
    made.execution().flag("--end", help="end the execution as rejected")
    return _said(_request(made).reason("what is wrong with it"))


def _mark_parser(name: str) -> Parser:
    text = "Set a step done or failed on your word: act may finish with it, and it is never counted as verified."
    made = Parser(name, mark, text).execution()
    made.add_argument("step", metavar="STEP", help="the id of the step")
    made.add_argument("status", metavar="done|failed", choices=("done", "failed"), help="what it is to be")
    return _said(made.reason("why; it is shown with the step"))


_PARSERS: dict[str, Callable[[str], Parser]] = {
    "plan show": _show_parser,
    "plan edit": _edit_parser,
    "plan approve": _approve_parser,
    "plan reject": _reject_parser,
    "plan mark": _mark_parser,
}


def _said(made: Parser) -> Parser:
    return made.actor().store().json().quiet()


def _request(made: Parser) -> Parser:
    return made.option(
        "--request", metavar="ID", action=Words, help="the request that is meant, so that no later plan is decided"
    )


def show(given: Namespace) -> int:
    """Prints the plan."""
    from .place import place

    anyio.run(partial(_show, place(given.store), given.execution, json=given.json))
    return 0


def edit(given: Namespace) -> int:
    """Another plan."""
    from treadle.kernel.steering import EditPlan

    from .place import place
    from .plan_file import edited, read_file
    from .steering import steer

    if given.file is not None:
        steps, digest = read_file(given.file), ""
    else:
        where = place(given.store)
        state = anyio.run(partial(_state, where, given.execution))
        steps, digest = edited(state, where.settings.environ), state.plan.digest
    said = EditPlan(actor=speaker(given.actor), steps=steps, digest=digest)
    return steer(given, lambda _: said)


def approve(given: Namespace) -> int:
    """Yes."""
    from .steering import steer

    return steer(given, partial(_answer, given, "approve"))


def reject(given: Namespace) -> int:
    """No."""
    from .steering import steer

    return steer(given, partial(_answer, given, "reject"))


def mark(given: Namespace) -> int:
    """A step on a person's word."""
    from treadle.kernel.steering import MarkStep

    from .steering import steer

    said = MarkStep(actor=speaker(given.actor), step=given.step, status=given.status, reason=given.reason)
    return steer(given, lambda _: said)


def _answer(given: Namespace, decision: str, state: AnyState) -> Steering:
    from treadle.core.errors import AnswerRefused
    from treadle.kernel.steering import Answer

    asked = _asked(state)
    if asked is None:
        raise AnswerRefused("No plan waits for approval: treadle plan show says how it stands.")
    made: Answer = Answer(
        request_id=given.request or asked,
        decision="approve" if decision == "approve" else "reject",
        text=given.reason,
        actor=speaker(given.actor),
        end=decision == "reject" and given.end,
    )
    return made


def _asked(state: AnyState) -> str | None:
    """The id of the request to approve the plan, of a loop or of the one inside a workflow."""
    from treadle.kernel.states import LoopState

    if isinstance(state, LoopState):
        return state.pending.id if state.pending is not None and state.pending.kind == "plan" else None
    asked = [question.id for key in state.asking for question in state.active[key].questions if question.kind == "plan"]
    return asked[0] if len(asked) == 1 else None


async def _state(where: Place, execution: str) -> LoopState:
    from .place import found_loop, opened

    async with opened(where) as ledger:
        return (await found_loop(ledger, execution))[1]


async def _show(where: Place, execution: str, *, json: bool) -> None:
    from treadle.kernel.plan_words import as_document

    from .output import print_json
    from .pages import print_plan
    from .place import found_loop, opened

    async with opened(where) as ledger:
        row, state = await found_loop(ledger, execution)
    if json:
        print_json({"execution_id": row.execution_id, "plan": as_document(state.plan)})
    elif state.plan.steps:
        print_plan(state)
    else:
        sys.stdout.write(f"{row.execution_id} has no plan.\n")
