"""What the callbacks of a workflow hold in their hands: contexts whose reports become events of the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import anyio

from treadle.core import workflow_events as ev
from treadle.core.digests import child_id as digest_id
from treadle.core.errors import ChildFailed, InvalidOutput, OutsideRound, UnknownDependency
from treadle.core.receipts import accounted_for
from treadle.core.redaction import redact_json
from treadle.core.strict_json import from_json, to_json
from treadle.core.usage import NO_USAGE, Usage, checked
from treadle.core.values import replace
from treadle.effects.tasks import Given
from treadle.kernel.workflow import Condition, Perform
from treadle.kernel.workflow_budget import admission, may_settle, room
from treadle.kernel.workflow_states import TaskState
from treadle.ports.speculation import Candidate, Select, Speculated, Validate
from treadle.ports.task import (
    Answer,
    BudgetReached,
    ChildPaused,
    ChildResult,
    ChildState,
    Interaction,
    LoopTaskContext,
    Nest,
    ObservationHub,
    QuotaPause,
    QuotaReached,
    Signal,
    Suspend,
    TaskRef,
)

from .workflow_journal import WorkflowJournal

T = TypeVar("T")


def child_id(execution_id: str, task: str, round: int, phase: str, key: str) -> str:
    """The id of an execution inside a phase."""
    return digest_id(execution_id, task, str(round), phase, key)


class EventSignal(Signal):
    """Set by the driver."""

    def __init__(self) -> None:
        self._aborted = False
        self._event: anyio.Event | None = None  # made for whoever waits: most callbacks never do

    @property
    def aborted(self) -> bool:
        return self._aborted

    async def wait(self) -> None:
        if self._event is None:
            self._event = anyio.Event()
            if self._aborted:
                self._event.set()
        await self._event.wait()

    def abort(self) -> None:
        """Says it."""
        self._aborted = True
        if self._event is not None:
            self._event.set()


class Shared:
    """What all contexts of a workflow share."""

    def __init__(
        self,
        journal: WorkflowJournal,
        nest: Nest,
        hub: ObservationHub,
        *,
        price: Callable[[Usage], Decimal] | None,
        durable: bool,
        redact: Callable[[str], str],
    ) -> None:
        self.journal, self.nest, self.hub, self.price, self.durable = journal, nest, hub, price, durable
        self.redact = redact
        self.receipts: dict[str, set[str]] = {}
        self.waiters: set[str] = set()  # tasks that wait for room in the budget
        self.settled = anyio.Event()  # replaced each time something is no longer reserved

    def wake(self) -> None:
        """Something has been settled."""
        if self.waiters:
            self.settled.set()
            self.settled = anyio.Event()


class HostedContext(LoopTaskContext):
    """The context of one phase. Every report is an interim event."""

    def __init__(
        self,
        shared: Shared,
        action: Perform | Condition,
        state: TaskState,
        *,
        input: Any,
        values: Mapping[str, Callable[[], Any]],
        quota: QuotaPause | None = None,
        saved: str = "",
    ) -> None:
        journal = shared.journal
        self._shared, self.journal, self.begun = shared, journal, state
        self.open = True
        self.execution_id, self.task, self.input = journal.execution_id, action.task, input
        self.round, self.phase = state.round, state.phase  # type: ignore[assignment] - a plain task has no use for them
        self.attempt = state.attempt
        self.idempotency_key = f"{self.execution_id}:{self.task}:r{state.round}:{state.phase}"
        self.quota = quota
        self.abort = EventSignal()
        self.signal = self.abort
        self.observation = shared.hub.scoped(
            execution_id=self.execution_id, task=self.task, attempt=max(1, state.attempt)
        )
        settings = journal.state.task(self.task)
        self.interaction = HostedInteraction(self, saved) if settings.interactive else None
        self._values = values
        self.given = Given(context=self)

    def redact(self, text: str) -> str:
        """Without the secrets that this process knows: what is stored is what anybody is shown (SE-01)."""
        return self._shared.redact(text)

    def key_for(self, call: str) -> str:
        return f"{self.idempotency_key}:{call}"

    # ---- accounts

    def inside(self) -> None:
        """OutsideRound once the phase is over."""
        if not self.open:
            raise OutsideRound

    def _priced(self, usage: Usage) -> Usage:
        price = self._shared.price
        return usage if price is None or usage.cost_usd or not usage.tokens else replace(usage, cost_usd=price(usage))

    def report_usage(self, usage: Usage) -> None:
        checked(usage)
        self.inside()
        self.journal.emit(ev.UsageCharged(task=self.task, usage=self._priced(usage)))

    def report_usage_once(self, receipt: str, usage: Usage) -> None:
        checked(usage)
        self.inside()
        if self._known(receipt):
            return
        self._shared.receipts.setdefault(self.task, set()).add(receipt)
        self.journal.emit(ev.UsageCharged(task=self.task, usage=self._priced(usage), receipt=receipt))

    def _known(self, receipt: str) -> bool:
        return accounted_for(receipt, self._shared.receipts.get(self.task, set()))

    async def intend(self, receipt: str, reserve: Usage) -> bool:
        checked(reserve)
        self.inside()
        if self._known(receipt):
            return False
        await self._admitted(reserve)
        self.journal.emit(ev.ChargeAnnounced(task=self.task, receipt=receipt, reserve=reserve))
        await self.journal.barrier()
        return True

    async def _admitted(self, reserve: Usage, *, some: bool = False) -> None:
        """Returns when the budget has room for it, and with `some` for anything at all. BudgetReached where it never will."""
        while True:
            state = self.journal.state
            answer = admission(state, reserve)
            if answer == "no":
                raise self.leave(BudgetReached("the budget is used up"))
            if answer == "yes" and not (some and 0 in room(state)):
                return
            await self._settled()
            self.inside()

    async def _settled(self) -> None:
        """Returns when something is no longer reserved."""
        shared = self._shared
        if not may_settle(self.journal.state, self.task, shared.waiters):
            raise self.leave(BudgetReached("what is left of the budget is reserved"))
        shared.waiters.add(self.task)
        try:
            await shared.settled.wait()
        finally:
            shared.waiters.discard(self.task)

    def leave(self, control: Any) -> Any:
        """Noted, so that code which swallows it is left all the same."""
        self.given.control = self.given.control or control
        return control

    # ---- the rest

    async def checkpoint(self) -> None:
        self.inside()
        if self._shared.durable:
            await self.journal.barrier()
            self.observation.observe("checkpoint")

    def value(self, task: TaskRef[T]) -> T:
        if task.key not in self._values:  # a task starts when all that it declares are done
            raise UnknownDependency(f"{self.task} does not declare {task.key!r} in after")
        return self._values[task.key]()

    # ---- executions inside this one

    async def run(self, what: Any, input: Any = None, *, key: str) -> ChildResult:
        self.inside()
        child = child_id(self.execution_id, self.task, self.round, self.phase, key)
        budget = self.journal.state.settings.budget
        capped = budget.max_cost_usd is not None
        cost = self._shared.nest.check(what, capped=capped)
        usd, tokens = await self._reserve(child, key, cost)
        prefix = f"{child}."
        answers = tuple(
            (a.id.removeprefix(prefix), Answer(a.decision, a.text, a.actor, a.at_us))
            for a in self.begun.answers
            if a.id.startswith(prefix)
        )
        retry = self.begun.replay and not self.begun.answers
        try:
            found = await self._shared.nest.run(
                what, input, child, answers=answers, max_cost_usd=usd, max_tokens=tokens, retry=retry
            )
        except BaseException:
            with anyio.CancelScope(shield=True):
                self._charge(child, await self._shared.nest.state(child))
            raise
        self._charge(child, found)
        return self._came_to(child, found)

    async def speculate(
        self,
        candidates: Sequence[Candidate | Any],
        validate: Validate,
        *,
        select: Select = "first",
        workspace: str | Path | None = None,
        input: Any = None,
        key: str = "speculate",
    ) -> Speculated:
        self.inside()
        child = child_id(self.execution_id, self.task, self.round, self.phase, key)
        return await self._shared.nest.speculate(
            self, candidates, validate, select=select, workspace=workspace, input=input, key=key, child=child
        )

    async def _reserve(self, child: str, key: str, cost: Decimal | None) -> tuple[Decimal | None, int | None]:
        """(USD, tokens) that the child may have used in all, reserved for it from now on."""
        own = self.journal.state.active[self.task].children.get(child)
        spent = NO_USAGE if own is None else own.usage + own.in_doubt
        left = None if cost is None else max(Decimal(0), cost - spent.cost_usd)
        await self._admitted(NO_USAGE if left is None else Usage(cost_usd=left), some=True)
        usd, tokens = room(self.journal.state)
        if usd is not None and left is not None:
            usd = min(usd, left)
        reserve = Usage(cost_usd=usd if usd is not None else left or Decimal(0), input_tokens=tokens or 0)
        self.journal.emit(ev.ChildStarted(task=self.task, child=child, key=key, reserve=reserve))
        await self.journal.barrier()
        return (
            None if usd is None else usd + spent.cost_usd,
            None if tokens is None else tokens + spent.tokens,
        )

    def _charge(self, child: str, found: ChildState | None) -> None:
        if (event := charge(self.task, child, self.journal.state.active.get(self.task), found)) is not None:
            self.journal.emit(event)
        self._shared.wake()

    def _came_to(self, child: str, found: ChildState) -> ChildResult:
        if found.status == "done":
            return ChildResult(child, found.output, found.usage)
        if found.status == "waiting-input":
            questions = tuple(
                replace(question, id=f"{child}.{question.id}", child=child, request=question.id)
                for question in found.questions
            )
            raise self.leave(Suspend(questions, None))
        if found.code == "quota":
            raise self.leave(QuotaReached(found.evidence, reset_at_us=found.reset_at_us))
        if found.status == "paused":
            raise self.leave(ChildPaused(found.evidence))
        if found.status == "stopped" and admission(self.journal.state, NO_USAGE) == "no":
            raise self.leave(BudgetReached(found.evidence))
        raise ChildFailed(child, found.status, found.code, found.evidence)


def charge(task: str, child: str, state: TaskState | None, found: ChildState | None) -> ev.ChildCharged | None:
    """What a child has spent beyond what was charged; None where nothing changes."""
    if state is None or child not in state.children:
        return None
    known = state.children[child]
    usage = NO_USAGE if found is None else found.usage - known.usage
    doubt = NO_USAGE if found is None else found.in_doubt - known.in_doubt
    if usage == doubt == known.reserve == NO_USAGE:
        return None
    return ev.ChildCharged(task=task, child=child, usage=usage, in_doubt=doubt)


class HostedInteraction(Interaction):
    """Questions of one phase."""

    def __init__(self, context: HostedContext, saved: str) -> None:
        self._context, self._saved = context, saved

    @property
    def state(self) -> Any:
        return from_json(self._saved)

    @property
    def answer(self) -> Answer | None:
        mine = f"{self._context.task}.q"
        own = [a for a in self._context.begun.answers if a.id.startswith(mine)]
        return Answer(own[-1].decision, own[-1].text, own[-1].actor, own[-1].at_us) if own else None

    async def save(self, state: Any) -> None:
        context = self._context
        context.inside()
        self._saved = redact_json(to_json(state, "state"), context.redact)
        context.journal.emit(ev.StateSaved(task=context.task, json=self._saved))
        await context.journal.barrier()

    async def suspend(self, question: str, state: Any = None, *, choices: tuple[str, ...] = ()) -> NoReturn:
        context = self._context
        context.inside()
        if not question.strip():
            raise InvalidOutput("a question has some text")
        text = None if state is None else redact_json(to_json(state, "state"), context.redact)
        asks = ev.Question(
            id=f"{context.task}.q{context.begun.asked + 1}",
            kind="question",
            prompt=context.redact(question),
            choices=tuple(choices),
            actors=context.journal.state.task(context.task).actors,
        )
        raise context.leave(Suspend((asks,), text))
