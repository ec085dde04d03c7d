"""`treadle resume`: goes on where it can, and prints how it rests where it cannot."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from .arguments import Namespace, Parser
from .person import user_name

if TYPE_CHECKING:
    from treadle.app.runtime import Reopening, Runtime, Session
    from treadle.app.workflow_runtime import WorkflowSession
    from treadle.kernel.states import LoopState
    from treadle.kernel.workflow_states import WorkflowState

    from .drive import Manner
    from .place import Place


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name,
        resume,
        "Go on with an execution that was interrupted, killed, paused, answered or extended.\n\n"
        "One that has ended is printed as it is stored, with its exit code; nothing is called. A failed one needs\n"
        "--retry-incomplete, a stopped one treadle extend, one that waits an answer.",
    ).execution()
    made.flag("--retry-incomplete", help="try a failed execution again where it failed")
    made.flag("--adopt", help="go on although the definition has changed")
    made.option(
        "--step",
        metavar="turn|round",
        nargs="?",
        const="turn",
        choices=("turn", "round"),
        help="do one turn (or one check), or what is left of the round, then hold it",
    )
    made.option("--price", metavar="IN,OUT[,..]", help="USD per million tokens, where no price was known")
    made.guard()
    made.flag("--force", help="take it from an owner that seems to live; that one is fenced off")
    return made.notify().sinks().store().json().quiet()


def resume(given: Namespace) -> int:
    """Goes on, or says how it rests."""
    from treadle.app.runtime import Reopening
    from treadle.core.errors import DefinitionChanged

    from .drive import Manner
    from .notify import notifier
    from .place import place
    from .values import sink_names

    where = place(given.store)
    target = given.notify if given.notify is not None else where.settings.defaults.get("notify")
    actor = user_name()
    manner = Manner(
        json=given.json,
        quiet=given.quiet,
        actor=actor,
        notifier=notifier(target, where.settings.environ),
        sinks=sink_names(given.sinks, where.settings),
    )
    how = Reopening(
        retry_incomplete=given.retry_incomplete,
        adopt=given.adopt,
        price=given.price is not None,
        force=given.force,
        actor=actor,
        guards=given.guard or {},
        step=given.step,
    )
    try:
        return anyio.run(partial(go_on, where, given.execution, how, given.price, manner))
    except DefinitionChanged as refusal:
        raise refusal.with_store(where.named_store) from refusal


async def go_on(where: Place, execution: str, how: Reopening, price: str | None, manner: Manner) -> int:
    """Where nothing can be done the stored document is printed, and nothing is called (FR-26)."""
    from treadle.app.leftovers import clear_leftovers
    from treadle.app.runtime import resting
    from treadle.app.task_history import whole_document
    from treadle.core.endings import is_final
    from treadle.core.errors import InputError
    from treadle.kernel.states import LoopState

    from .drive import drive, report
    from .place import found, opened, parent_of

    async with opened(where) as ledger:
        row, state = await found(ledger, execution)
        parent = await parent_of(ledger, row.execution_id)
        answered = bool(await ledger.posted(row.execution_id))
        await clear_leftovers(ledger, where.settings)
        stored = await whole_document(ledger, row.execution_id, state)
    if parent and not is_final(state.status, state.code):
        raise InputError(
            f"{row.execution_id} runs inside {parent.execution_id}: treadle resume {parent.execution_id}{where.flag} goes on with both."
        )
    if not isinstance(state, LoopState):
        return await _go_on_with_workflow(where, stored, state, how, manner, answered=answered)
    if resting(state, how):
        return report(where, row.execution_id, state, manner, stored)
    return await drive(
        where, partial(_reopen, execution_id=row.execution_id, state=state, how=how, price=price), manner
    )


async def _go_on_with_workflow(
    where: Place, found: dict[str, Any], state: WorkflowState, how: Reopening, manner: Manner, *, answered: bool
) -> int:
    """`found` is the document as stored. `answered`: a request lies there that nobody has read."""
    from treadle.app.definition import workflow_of
    from treadle.app.workflow_runtime import WorkflowRuntime
    from treadle.core.endings import is_final
    from treadle.core.errors import ConfigurationError

    from .drive import drive, report
    from .place import workflows

    if how.step is not None:
        raise ConfigurationError(
            "A workflow has no turns or rounds of its own to step through: resume it without --step."
        )
    if how.price:
        raise ConfigurationError("A workflow's price is in its definition: Workflow(..., price=...), without --price.")
    execution_id: str = found["execution_id"]
    if is_final(state.status, state.code) or (found["status"] == "waiting-input" and not answered):
        return report(where, execution_id, state, manner, found)
    workflow = workflow_of(state.definition, execution_id)
    if WorkflowRuntime.resting(state, how, priced=workflow.price is not None):
        return report(where, execution_id, state, manner, found)

    async def reopen(runtime: Runtime) -> WorkflowSession:
        return await workflows(runtime).resume(execution_id, workflow, how, definition=state.definition)

    return await drive(where, reopen, manner)


async def _reopen(
    runtime: Runtime, *, execution_id: str, state: LoopState, how: Reopening, price: str | None
) -> Session:
    from treadle.app.definition import defined

    from .preflight import reachable

    loop, definition, base_url = defined(state.definition, price)
    await reachable(base_url, runtime.settings.environ)
    return await runtime.resume(execution_id, loop, how, definition=definition)
