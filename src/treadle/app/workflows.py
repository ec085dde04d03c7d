"""The library's door to workflows: run one, go on with one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from treadle.core.endings import ending
from treadle.core.errors import (
    AnswerRefused,
    ChildFailed,
    LoopExhausted,
    NoneAccepted,
    TaskError,
    UnknownDependency,
    UnknownExecution,
)
from treadle.kernel.steering import Answer
from treadle.kernel.workflow_budget import standing
from treadle.kernel.workflow_states import WorkflowState
from treadle.ports.clock import NO_CRASH_POINTS, Clock, CrashPoints
from treadle.ports.ledger import Ledger
from treadle.ports.observer import Observer
from treadle.ports.speculation import Candidate, Lost, Select, Speculated, Validate
from treadle.ports.task import Sink, TaskContext, TaskRef
from treadle.runtime.clock import SystemClock
from treadle.settings import load_settings
from treadle.spec.workflows import Budget, Task, Workflow
from treadle.telemetry.hub import Hub

from . import speculation
from .runtime import Reopening
from .stores import open_store
from .workflow_build import build_workflow
from .workflow_runtime import WorkflowRuntime, WorkflowSession, check_identity

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A person's word on one question or gate. It binds the execution, the task, the request and who says it (TC-22)."""

    execution_id: str
    task: str
    request_id: str
    decision: str  # answer, approve or reject
    actor: str
    text: str = ""  # the answer, or the reason


@dataclass(frozen=True, slots=True)
class WorkflowResult:
    """How an execution rests, and what its tasks gave."""

    document: dict[str, Any]
    state: WorkflowState
    outputs: dict[str, Any]

    @property
    def execution_id(self) -> str:
        """What to resume it by."""
        return self.document["execution_id"]

    @property
    def status(self) -> str:
        """done, failed, stopped, paused, waiting-input, rejected or cancelled."""
        return self.document["status"]

    @property
    def code(self) -> str:
        """Which ending of that status."""
        return self.document["code"]

    @property
    def questions(self) -> list[dict[str, Any]]:
        """What is asked, with `task` and `request_id`."""
        return self.document["questions"]

    @property
    def is_success(self) -> bool:
        """Every task is done, or was not to run."""
        status, code = standing(self.state)
        return status != "running" and ending(status, code).success is True

    def value(self, task: TaskRef[T]) -> T:
        """A task's output. UnknownDependency where it is not done."""
        if task.key not in self.outputs:
            raise UnknownDependency(f"{task.key} is not done")
        return cast("T", self.outputs[task.key])

    def error(self, key: str) -> TaskError | None:
        """Why a task failed: LoopExhausted, or what it raised in its own words. None where it did not."""
        failed = self.state.failed.get(key)
        if failed is None:
            return None
        if failed.code == "exhausted" and self.state.task(key).kind == "loop":
            return LoopExhausted(key, self.state.task(key).max_rounds, failed.feedback or "")
        return TaskError(f"{key}: {failed.message}")


@asynccontextmanager
async def _runtime(
    store: str | Ledger | None,
    clock: Clock | None,
    points: CrashPoints,
    observers: Sequence[Observer],
    sinks: Sequence[Sink],
    quota_wait_s: float | None,
) -> AsyncGenerator[WorkflowRuntime]:
    settings = load_settings()
    clock = clock or SystemClock()
    url = store if isinstance(store, str | None) else ""
    ledger = await open_store(url or settings.store_url, points) if isinstance(store, str | None) else store
    hub = Hub(clock.wall_us)
    for sink in sinks:
        hub.subscribe(sink)
    try:
        yield WorkflowRuntime(
            ledger,
            settings,
            clock=clock,
            points=points,
            observers=tuple(observers),
            hub=hub,
            quota_wait_s=quota_wait_s,
            durable=url != "memory:",
        )
    finally:
        hub.close()
        if ledger is not store:
            await ledger.close()


async def run_workflow(
    workflow: Workflow,
    input: Any = None,
    *,
    store: str | Ledger | None = None,
    execution_id: str | None = None,
    definition: str = "",
    clock: Clock | None = None,
    points: CrashPoints = NO_CRASH_POINTS,
    observers: Sequence[Observer] = (),
    sinks: Sequence[Sink] = (),
    quota_wait_s: float | None = None,
) -> WorkflowResult:
    """Starts the workflow and drives it until it rests.

    `store` is a store address or a ledger (default: the user's own store). With "memory:" there is no store: nothing outlives the
    process, outputs need not be JSON, and `ctx.checkpoint()` does nothing. `quota_wait_s` replaces `on_quota.max_wait_s`.
    InputError where nothing was started; LedgerError where the store failed: `resume_workflow` goes on when that is mended.
    """
    async with _runtime(store, clock, points, observers, sinks, quota_wait_s) as runtime:
        session = await runtime.start(workflow, input, execution_id=execution_id, definition=definition)
        return await _driven(session)


async def resume_workflow(
    workflow: Workflow,
    execution_id: str,
    *,
    store: str | Ledger | None = None,
    decisions: Sequence[Decision] = (),
    extend: Budget | None = None,
    retry_incomplete: bool = False,
    adopt: bool = False,
    force: bool = False,
    actor: str = "python",
    clock: Clock | None = None,
    points: CrashPoints = NO_CRASH_POINTS,
    observers: Sequence[Observer] = (),
    sinks: Sequence[Sink] = (),
    quota_wait_s: float | None = None,
) -> WorkflowResult:
    """Goes on with an execution; one that has ended gives its stored result and calls nothing.

    All `decisions` are checked before any is applied. UnknownExecution, WorkflowMismatch, DefinitionChanged, OwnerAlive,
    AnswerRefused: nothing has run then.
    """
    async with _runtime(store, clock, points, observers, sinks, quota_wait_s) as runtime:
        row = await runtime.ledger.row(execution_id)
        state = await runtime.state(row.execution_id)
        built = build_workflow(workflow, runtime.settings, runtime.clock, store=runtime.ledger.url)
        check_identity(row.execution_id, state, built, adopt=adopt)
        if decisions:
            answers = [_answer(row.execution_id, state, decision) for decision in decisions]
            state = await runtime.steer(row.execution_id, answers)
        if extend is not None:
            state = await runtime.extend(row.execution_id, extend, actor=actor)
        how = Reopening(retry_incomplete=retry_incomplete, adopt=adopt, force=force, actor=actor)
        if runtime.resting(state, how, priced=built.price is not None):
            found = await runtime.document(row.execution_id, state)
            return WorkflowResult(found, state, await runtime.outputs(row.execution_id, state))
        return await _driven(await runtime.resume(row.execution_id, workflow, how))


async def speculate(
    candidates: Sequence[Candidate | Any],
    validate: Validate,
    *,
    select: Select = "first",
    workspace: str | Path | None = None,
    input: Any = None,
    budget: Budget | None = None,
    store: str | Ledger | None = None,
    execution_id: str | None = None,
    clock: Clock | None = None,
    points: CrashPoints = NO_CRASH_POINTS,
    quota_wait_s: float | None = None,
) -> Speculated:
    """As `ctx.speculate`, in an execution of its own; called again with the same `execution_id`, it goes on with that one.

    DefinitionError before anything runs; NoneAccepted, or TaskError where it failed otherwise; ChildFailed where it rests unfinished:
    it waits for an answer, a quota or more budget.
    """
    speculation.check(candidates, validate, select, workspace)
    raised: list[Exception] = []

    async def perform(ctx: TaskContext) -> dict[str, Any]:
        try:
            taken = await ctx.speculate(candidates, validate, select=select, workspace=workspace)
        except NoneAccepted as error:
            raised.append(error)
            raise
        return taken._asdict() | {"paths": list(taken.paths), "lost": [list(one) for one in taken.lost]}

    task = Task("speculate", perform)
    workflow = Workflow("speculation", [task], budget=budget or Budget())
    async with _runtime(store, clock, points, (), (), quota_wait_s) as runtime:
        result = await _started_or_resumed(runtime, workflow, input, execution_id)
    if result.is_success:
        value: Any = result.value(task)
        return Speculated(
            **value | {"paths": tuple(value["paths"]), "lost": tuple(Lost(*one) for one in value["lost"])}
        )
    failed = raised[0] if raised else result.error("speculate")
    raise failed or ChildFailed(result.execution_id, result.status, result.code, result.state.evidence)


async def _started_or_resumed(
    runtime: WorkflowRuntime, workflow: Workflow, input: Any, execution_id: str | None
) -> WorkflowResult:
    if execution_id is None or not await _known(runtime.ledger, execution_id):
        return await _driven(await runtime.start(workflow, input, execution_id=execution_id))
    state, how = await runtime.state(execution_id), Reopening(actor="python")
    built = build_workflow(workflow, runtime.settings, runtime.clock, store=runtime.ledger.url)
    check_identity(execution_id, state, built)
    if not runtime.resting(state, how):
        return await _driven(await runtime.resume(execution_id, workflow, how))
    found = await runtime.document(execution_id, state)
    return WorkflowResult(found, state, await runtime.outputs(execution_id, state))


async def _known(ledger: Ledger, execution_id: str) -> bool:
    try:
        row = await ledger.row(execution_id)
    except UnknownExecution:
        return False
    return row.execution_id == execution_id and row.head > 0


async def _driven(session: WorkflowSession) -> WorkflowResult:
    try:
        return WorkflowResult(await session.run(), session.state, await session.outputs())
    finally:
        await session.close()


def _answer(execution_id: str, state: WorkflowState, decision: Decision) -> Answer:
    if decision.execution_id != execution_id:
        raise AnswerRefused(f"This decision is on {decision.execution_id!r}, not on {execution_id!r}.")
    if decision.decision not in ("answer", "approve", "reject"):
        raise AnswerRefused(f"A decision is answer, approve or reject, not {decision.decision!r}.")
    task = state.active.get(decision.task)
    if task is not None and task.questions and decision.request_id not in {q.id for q in task.questions}:
        raise AnswerRefused(f"{decision.task} does not ask {decision.request_id!r}.")
    if task is None:
        raise AnswerRefused(f"{decision.task!r} asks nothing.")
    return Answer(
        request_id=decision.request_id,
        decision=cast("Any", decision.decision),
        text=decision.text,
        actor=decision.actor,
    )
