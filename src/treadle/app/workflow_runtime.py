"""Starts executions of workflows, takes them over, and drives them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from treadle.core import workflow_events as ev
from treadle.core.endings import RETRY, ending, is_final
from treadle.core.errors import InputError, InvalidOutput, WorkflowMismatch
from treadle.core.redaction import Redactor, redact_json, secrets_of
from treadle.core.strict_json import from_json, to_json
from treadle.core.values import Value
from treadle.effects.tasks import TaskEffect
from treadle.kernel.steering import Steering, encode
from treadle.kernel.workflow_states import WorkflowState
from treadle.kernel.workflow_steering import extension, to_events
from treadle.ports.clock import NO_CRASH_POINTS, Clock, CrashPoints
from treadle.ports.ledger import Ledger
from treadle.ports.observer import Observer
from treadle.runtime.clock import SystemClock
from treadle.runtime.contexts import Shared
from treadle.runtime.journal import create_execution, given_up_on_failure
from treadle.runtime.workflow_document import document, final_tasks, with_tasks
from treadle.runtime.workflow_driver import WorkflowDriver
from treadle.runtime.workflow_journal import KIND, WorkflowJournal, load_workflow
from treadle.settings import Settings
from treadle.spec.workflows import Budget, Workflow
from treadle.telemetry.hub import Hub

from .identity import adoptable, refused
from .nesting import Nesting
from .runtime import Reopening, Runtime
from .task_history import outputs_of, whole_document
from .workflow_build import BuiltWorkflow, budget_settings, build_workflow, provider_fault


class WorkflowSession:
    """One execution in this process."""

    def __init__(self, journal: WorkflowJournal, driver: WorkflowDriver) -> None:
        self.journal, self.driver = journal, driver

    @property
    def execution_id(self) -> str:
        """The execution's id."""
        return self.journal.execution_id

    @property
    def state(self) -> WorkflowState:
        """The state as of now."""
        return self.journal.state

    async def run(self) -> dict[str, Any]:
        """Drives it until it rests; its document, with what of its output is JSON."""
        await self.driver.run()
        found = with_tasks(document(self.execution_id, self.state), self.state)
        output = {key: await self._output(key) for key in final_tasks(self.state) if not self._held(key)}
        return found | {"output": output or None}

    async def outputs(self) -> dict[str, Any]:
        """What the tasks that are done gave, in the order in which they ended."""
        return {key: await self._output(key) for key in self.state.done}

    async def _output(self, key: str) -> Any:
        at = self.state.done[key].at
        held = self.journal.held(at)
        return from_json(await self.journal.text(at)) if held is None else held

    def _held(self, key: str) -> bool:
        return self.journal.held(self.state.done[key].at) is not None

    async def steer(self, steering: Steering) -> None:
        """An answer or an extension from this very process. AnswerRefused, InputError."""
        for event in to_events(self.state, [steering], self.journal.clock.wall_us()):
            self.journal.emit(event)
        await self.journal.flush()

    async def close(self) -> None:
        """Gives the execution up."""
        await self.journal.close()


class WorkflowRuntime:
    """Executions of workflows in one store. Whoever opened the store closes it. `durable`: it outlives the process."""

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        *,
        clock: Clock | None = None,
        points: CrashPoints = NO_CRASH_POINTS,
        observers: tuple[Observer, ...] = (),
        hub: Hub | None = None,
        quota_wait_s: float | None = None,
        durable: bool = True,
    ) -> None:
        self.ledger, self.settings, self.points, self.observers = ledger, settings, points, observers
        self.clock = clock or SystemClock()
        self.hub = hub or Hub(self.clock.wall_us)
        self.quota_wait_s, self.durable = quota_wait_s, durable
        self.owner = f"{socket.gethostname()}:{os.getpid()}"
        self.redact = Redactor(secrets_of(settings.environ)).redact
        self.nest = Nesting(self)

    async def start(
        self, workflow: Workflow, value: Any = None, *, execution_id: str | None = None, definition: str = ""
    ) -> WorkflowSession:
        """A new execution, durable when this returns; nothing has run yet. InputError for anything that is wrong."""
        built = build_workflow(workflow, self.settings, self.clock, store=self.ledger.url)
        try:
            input_json = redact_json(to_json(value, "input"), self.redact)
        except InvalidOutput as error:
            raise InputError(f"The input is no JSON value: {error}") from error
        started = ev.WorkflowStarted(
            settings=built.settings,
            input_json=input_json,
            fingerprint=built.fingerprint,
            at_us=self.clock.wall_us(),
            definition=definition,
        )
        # Made by hand, since the hub must be there before the first event is emitted.
        execution_id = execution_id or self.clock.new_id()
        ownership = await create_execution(self.ledger, execution_id, kind=KIND, owner=self.owner, at_us=started.at_us)
        journal = WorkflowJournal(self.ledger, ownership, self.clock, self.observers, WorkflowState(), 0)
        journal.hub = self.hub
        async with given_up_on_failure(self.ledger, ownership):
            journal.emit(started)
            await journal.flush()
        return self._session(journal, workflow, built)

    async def resume(
        self, execution_id: str, workflow: Workflow, how: Reopening, *, definition: str = ""
    ) -> WorkflowSession:
        """Takes an execution over and makes it ready to run. Ask `resting` first: a finished execution needs no session.

        WorkflowMismatch, DefinitionChanged, OwnerAlive, UnknownExecution: nothing has run then.
        """
        built = build_workflow(workflow, self.settings, self.clock, store=self.ledger.url)
        state = await load_workflow(self.ledger, execution_id)
        check_identity(execution_id, state, built, adopt=how.adopt)
        journal = await WorkflowJournal.open(
            self.ledger,
            execution_id,
            clock=self.clock,
            owner=self.owner,
            observers=self.observers,
            force=how.force,
        )
        journal.hub = self.hub
        session = self._session(journal, workflow, built, adopt=how.adopt)
        try:
            self._go_on(journal, built, how, definition)
            await session.driver.take_over()
            await journal.flush()
        except BaseException:
            await session.close()
            raise
        return session

    def _go_on(self, journal: WorkflowJournal, built: BuiltWorkflow, how: Reopening, definition: str) -> None:
        state = journal.state
        if how.adopt and state.fingerprint != built.fingerprint:
            journal.emit(_adopted(state, built, how.actor, definition))
        if state.status in ("failed", "stopped") and state.failed and how.retry_incomplete:
            journal.emit(ev.WorkflowReopened(actor=how.actor))
        elif state.code == "usage-unavailable" and (how.price or built.price is not None):
            journal.emit(ev.WorkflowExtended(actor=how.actor, budget=ev.BudgetSettings(), priced=True))
        if state.quota is not None and state.quota.reset_at_us is None:
            journal.emit(ev.QuotaEnded(at_us=self.clock.wall_us()))  # a person says that it is worth another try

    def _session(
        self, journal: WorkflowJournal, workflow: Workflow, built: BuiltWorkflow, *, adopt: bool = False
    ) -> WorkflowSession:
        wait_s = workflow.on_quota.max_wait_s if self.quota_wait_s is None else self.quota_wait_s
        shared = Shared(
            journal,
            self.nest.under(workflow.guards, wait_s, adopt=adopt),
            self.hub,
            price=built.price,
            durable=self.durable,
            redact=self.redact,
        )
        effects = TaskEffect(
            built.callbacks,
            self.clock,
            self.points,
            durable=self.durable,
            keep_conversation=workflow.on_quota.conversation == "continue",
            provider_fault=provider_fault(self.clock.wall_us),
            redact=self.redact,
        )
        driver = WorkflowDriver(shared, effects, self.clock, self.points, quota_wait_s=wait_s)
        return WorkflowSession(journal, driver)

    # ---- looking and steering

    async def state(self, execution_id: str, *, at: int | None = None) -> WorkflowState:
        """The state now, or as it was after record `at`."""
        return await load_workflow(self.ledger, execution_id, at=at)

    async def outputs(self, execution_id: str, state: WorkflowState) -> dict[str, Any]:
        """What the tasks that are done gave, read from the store in one pass."""
        return await outputs_of(self.ledger, execution_id, state)

    async def document(self, execution_id: str, state: WorkflowState) -> dict[str, Any]:
        """The document with tasks and output, read from the store."""
        return await whole_document(self.ledger, execution_id, state)

    async def steer(self, execution_id: str, steering: Sequence[Steering]) -> WorkflowState:
        """Gives the requests to whoever owns the execution, or carries them out at once where nobody does: all, or none.

        AnswerRefused and InputError against the state as it is now.
        """
        row = await self.ledger.row(execution_id)
        state = await load_workflow(self.ledger, row.execution_id)
        to_events(state, steering, self.clock.wall_us())
        if row.owner_alive:
            for one in steering:
                kind, body = encode(one)
                await self.ledger.post(row.execution_id, kind, body, at_us=self.clock.wall_us())
            return state
        return await self._alone(row.execution_id, lambda found: to_events(found, steering, self.clock.wall_us()))

    async def extend(self, execution_id: str, budget: Budget, *, actor: str) -> WorkflowState:
        """Raises limits of an execution that nobody runs. InputError where one would not be raised."""
        by = budget_settings(budget)
        extension(await load_workflow(self.ledger, execution_id), actor, by)
        return await self._alone(execution_id, lambda found: [extension(found, actor, by)])

    async def _alone(self, execution_id: str, events: Callable[[WorkflowState], Sequence[Value]]) -> WorkflowState:
        journal = await WorkflowJournal.open(
            self.ledger, execution_id, clock=self.clock, owner=self.owner, observers=self.observers
        )
        journal.hub = self.hub
        try:
            for event in events(journal.state):
                children = [c for task in journal.state.active.values() for c in task.children]
                journal.emit(event)
                if isinstance(event, ev.WorkflowStopped):
                    for child in children:
                        await self.nest.cancel(child, event.evidence)
            await journal.flush()
        finally:
            await journal.close()
        return journal.state

    @staticmethod
    def resting(state: WorkflowState, how: Reopening, *, priced: bool = False) -> str:
        """Why an execution does not go on by itself, in words; empty where a session may be opened."""
        if state.status in ("running", "paused"):
            return ""
        if is_final(state.status, state.code):
            return "it has ended"
        if state.status == "stopped" and state.failed and how.retry_incomplete:
            return ""  # what ran inside was stopped, and has more room now
        if state.code == "usage-unavailable":
            return "" if how.price or priced else "it needs a price, or whole usage"
        if state.status == "stopped":
            return "it needs more room: extend its budget"
        if RETRY in ending(state.status, state.code).goes_on_by:
            return "" if how.retry_incomplete else "it failed: resume with retry_incomplete"
        return "it has ended"


def workflows_of(runtime: Runtime) -> WorkflowRuntime:
    """The same store and manner for workflows."""
    return WorkflowRuntime(
        runtime.ledger,
        runtime.settings,
        clock=runtime.clock,
        points=runtime.points,
        observers=runtime.observers,
        quota_wait_s=float("inf") if runtime.quota_wait_s is None else runtime.quota_wait_s,
        durable=runtime.ledger.url != "memory:",
    )


def _adopted(state: WorkflowState, built: BuiltWorkflow, actor: str, definition: str) -> ev.WorkflowAdopted:
    if not adoptable(state.fingerprint, built.fingerprint):
        raise InputError("Another set of tasks or dependencies cannot be adopted by a stored execution: start it anew.")
    settings = msgspec.structs.replace(built.settings, budget=state.settings.budget)
    return ev.WorkflowAdopted(actor=actor, fingerprint=built.fingerprint, settings=settings, definition=definition)


def check_identity(execution_id: str, state: WorkflowState, built: BuiltWorkflow, *, adopt: bool = False) -> None:
    """WorkflowMismatch for another workflow, DefinitionChanged with the parts that differ for another version of this one."""
    if state.settings.name != built.settings.name:
        raise WorkflowMismatch(f"It was started as {state.settings.name!r}, and this is {built.settings.name!r}.")
    if not adopt and state.fingerprint != built.fingerprint:
        raise refused(execution_id, state.fingerprint, built.fingerprint)
