"""What the callbacks of a workflow are given, and how they are left early.

Suspend, QuotaReached and BudgetReached are control flow that `except Exception` must not catch, so they derive from BaseException.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, NoReturn, TypeVar

from treadle.core.usage import Usage
from treadle.core.workflow_events import Question

from .speculation import Candidate, Select, Speculated, Validate

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class TaskRef(Generic[T_co]):
    """A task of a workflow, known by its key; its output is a T_co."""

    key: str


# ---- control flow


class ControlFlow(BaseException):
    """A callback is left because of something that is no fault of it."""


class Suspend(ControlFlow):
    """The task waits for answers; its phase replays with them."""

    def __init__(self, questions: tuple[Question, ...], state_json: str | None) -> None:
        self.questions, self.state_json = questions, state_json
        super().__init__(", ".join(question.id for question in questions))


class QuotaReached(ControlFlow):
    """A provider's quota is used up: the execution pauses, durably. Any callback may raise it.

    `reset_at_us`: wall time at which it is there again, where that is known. `conversation` (a JSON value) and `branch` are
    given back as `ctx.quota` when the task goes on.
    """

    def __init__(
        self, message: str, *, reset_at_us: int | None = None, conversation: Any = None, branch: str = ""
    ) -> None:
        self.message, self.reset_at_us = message, reset_at_us
        self.conversation, self.branch = conversation, branch
        super().__init__(message)


class ChildPaused(ControlFlow):
    """A person has paused the execution inside: this one pauses with it, and both go on when it is resumed."""


class BudgetReached(ControlFlow):
    """The workflow's budget has no room for this charge: the workflow stops, and the phase replays when it is extended."""


# ---- what a context is made of


class QuotaPause(NamedTuple):
    """The quota pause that this attempt resumes (TC-03)."""

    requested_at_us: int
    message: str
    reset_at_us: int | None
    conversation: Any
    branch: str


class Answer(NamedTuple):
    """What a person said."""

    decision: Literal["answer", "approve", "reject"]
    text: str
    actor: str
    at_us: int


class ChildResult(NamedTuple):
    """What an execution inside a task came to. One that did not end well is raised as ChildFailed."""

    execution_id: str
    output: Any
    usage: Usage


class Signal(ABC):
    """Says that the callback should end: the workflow stops, or the round's time is over. It is cancelled besides."""

    @property
    @abstractmethod
    def aborted(self) -> bool:
        """Whether it has been said."""

    @abstractmethod
    async def wait(self) -> None:
        """Returns when it has been said."""


class Interaction(ABC):
    """Questions to people, and state that outlives the process (TC-04). Only for tasks that declare one."""

    @property
    @abstractmethod
    def state(self) -> Any:
        """What was saved last; None where nothing was."""

    @property
    @abstractmethod
    def answer(self) -> Answer | None:
        """The answer that this replay goes on with; None in a phase that has not asked."""

    @abstractmethod
    async def save(self, state: Any) -> None:
        """Keeps a JSON value, durably. InvalidOutput."""

    @abstractmethod
    async def suspend(self, question: str, state: Any = None, *, choices: tuple[str, ...] = ()) -> NoReturn:
        """Asks. Does not return: raises Suspend, and the phase replays with `answer` and `state` set. InvalidOutput."""
        raise NotImplementedError


class Observation(NamedTuple):
    """One thing that happened.

    `kind`: start, resume, task, attempt, retry, loop, usage, checkpoint, gate, decision, question, answer, quota, budget, finish,
    or a kind of the caller's own.
    """

    execution_id: str
    task: str  # empty: of the whole workflow
    attempt: int
    kind: str
    seq: int  # of the record; 0 where there is none
    data: dict[str, Any]
    at_us: int


Sink = Callable[[Observation], None]


class ObservationHub(ABC):
    """Hands observations to sinks, each from a bounded queue of its own. What a sink does can neither slow down nor change a task."""

    @abstractmethod
    def observe(self, kind: str, data: dict[str, Any] | None = None) -> None:
        """Returns at once. May be called from any thread."""

    @abstractmethod
    def publish(self, observation: Observation) -> None:
        """Hands it to every sink, as it is."""

    @abstractmethod
    def scoped(self, *, execution_id: str = "", task: str = "", attempt: int = 0) -> ObservationHub:
        """The same hub for something narrower."""


class TaskContext(ABC):
    """What a callback is given. Reports are synchronous, thread-safe and refused once the phase is over (OutsideRound)."""

    execution_id: str
    task: str
    input: Any  # of the workflow
    attempt: int  # cumulative: +1 for each retry, round and replayed phase
    idempotency_key: str  # from execution, task, round and phase: the same on replay and retry
    quota: QuotaPause | None
    interaction: Interaction | None
    observation: ObservationHub
    signal: Signal
    workspace: Path | None = None  # of a candidate in `speculate`: a folder of its own

    @abstractmethod
    def key_for(self, call: str) -> str:
        """The idempotency key of one call in this phase, from the caller's own name for it."""

    @abstractmethod
    def report_usage(self, usage: Usage) -> None:
        """Adds to the workflow's budget. InvalidUsage, OutsideRound. Durable at the next checkpoint, suspension or end of the phase."""

    @abstractmethod
    def report_usage_once(self, receipt: str, usage: Usage) -> None:
        """The same, once a receipt in the whole task. InvalidUsage, InvalidReceipt, OutsideRound; a duplicate is silent."""

    @abstractmethod
    async def intend(self, receipt: str, reserve: Usage) -> bool:
        """Durable before the callback pays: a kill then leaves the charge in doubt and not unseen.

        Waits while other tasks hold so much in reserve that this would not fit. False: this receipt is accounted for already.
        BudgetReached where the budget is used up.
        """

    @abstractmethod
    async def checkpoint(self) -> None:
        """Makes everything reported so far durable. Does nothing without a store."""

    @abstractmethod
    def value(self, task: TaskRef[T]) -> T:
        """The output of a dependency. UnknownDependency where it is not declared or has none."""

    @abstractmethod
    async def run(self, what: Any, input: Any = None, *, key: str) -> ChildResult:
        """Runs a Loop or a Workflow inside this phase, as an execution of its own that a replay finds again by `key`.

        Its usage is charged here, once; its questions are asked here. ChildFailed where it does not end well.
        """

    @abstractmethod
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
        """Runs up to 8 candidates side by side and takes the first that `validate` accepts, or the best (TC-28).

        A candidate is an async function of its context, a Loop or a Workflow. With a `workspace` each works in a folder of
        its own, made from one pinned baseline, and the changes of the one that is taken are put into the workspace. What all
        of them cost is charged here. A replay finds by `key` what has been done, and does not pay for it again.
        DefinitionError before anything runs; NoneAccepted; ChildFailed; ScopeError where the workspace has changed meanwhile.
        """


class LoopTaskContext(TaskContext):
    """The same for a round."""

    round: int  # from 1; unchanged when an interrupted phase is replayed
    phase: Literal["attempt", "check"]


# ---- what nests


class ChildState(NamedTuple):
    """How an execution inside a task stands."""

    status: str
    code: str
    evidence: str
    output: Any
    usage: Usage
    in_doubt: Usage
    questions: tuple[Question, ...] = ()
    reset_at_us: int | None = None


class Nest(ABC):
    """Runs executions inside others. The composition root has one for loops and workflows."""

    @abstractmethod
    def check(self, what: Any, *, capped: bool) -> Decimal | None:
        """What it can cost at most by its own limit, None where it has none.

        DefinitionError where it cannot be run; with `capped`, where the price of a model of it is unknown.
        """

    @abstractmethod
    async def run(
        self,
        what: Any,
        input: Any,
        child: str,
        *,
        answers: tuple[tuple[str, Answer], ...],
        max_cost_usd: Decimal | None,
        max_tokens: int | None,
        retry: bool,
    ) -> ChildState:
        """Starts the execution, or goes on with it, until it rests. `answers`: (request, answer) to questions of it."""

    @abstractmethod
    async def speculate(
        self,
        ctx: TaskContext,
        candidates: Sequence[Candidate | Any],
        validate: Validate,
        *,
        select: Select,
        workspace: str | Path | None,
        input: Any,
        key: str,
        child: str,
    ) -> Speculated:
        """As TaskContext.speculate, in an execution with the id `child`."""

    @abstractmethod
    async def state(self, child: str) -> ChildState | None:
        """How it stands; None where it was never started."""

    @abstractmethod
    async def cancel(self, child: str, actor: str) -> None:
        """Ends it for good, where it has not ended."""
