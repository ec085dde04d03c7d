"""Everything that can happen to an execution of a workflow. Events carry deltas; folding them is the only way state changes.

Their kinds are their own, so that a record says of itself which machine folds it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from .endings import Code, Status
from .usage import NO_USAGE, Usage
from .values import Value

TaskKind = Literal["task", "loop", "approval", "pause"]
TaskPhase = Literal["perform", "attempt", "check"]
QuestionKind = Literal["question", "approval", "pause", "evaluation", "plan"]
Decision = Literal["answer", "approve", "reject"]

# ---- the definition, as far as the machine must know it


class RetrySettings(Value, frozen=True, kw_only=True):
    """When a task that failed is tried again (TC-20)."""

    attempts: int = 1
    delay_us: int = 0
    backoff: Literal["fixed", "exponential"] = "exponential"
    max_delay_us: int | None = None
    jitter: float = 0.0  # share of the delay that chance may add


class TaskSettings(Value, frozen=True, kw_only=True):
    """One node."""

    key: str
    kind: TaskKind = "task"
    after: tuple[str, ...] = ()
    max_rounds: int = 1
    retry: RetrySettings = RetrySettings()
    timeout_us: int | None = None
    conditional: bool = False
    interactive: bool = False
    prompt: str = ""  # of a gate
    actors: tuple[str, ...] = ()  # who may decide; empty: anybody with a name
    for_us: int | None = None  # of a pause that ends by itself


class BudgetSettings(Value, frozen=True, kw_only=True):
    """Limits of the whole workflow. Each trips at >= and is asked before the next phase and the next announced charge (TC-21)."""

    max_attempts: int | None = None
    max_requests: int | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    max_cache_read_tokens: int | None = None
    max_cache_write_tokens: int | None = None
    max_tokens: int | None = None
    max_cost_usd: Decimal | None = None
    max_duration_us: int | None = None  # of active time


class WorkflowSettings(Value, frozen=True, kw_only=True):
    """The whole graph."""

    name: str
    version: str
    tasks: tuple[TaskSettings, ...]
    concurrency: int = 4
    on_error: Literal["stop", "continue"] = "stop"
    budget: BudgetSettings = BudgetSettings()
    priced: bool = False  # a price was given: usage without a cost is priced by it


# ---- events


class WorkflowStarted(Value, frozen=True, kw_only=True):
    """The first event. Everything that folding depends on is in it."""

    settings: WorkflowSettings
    input_json: str
    fingerprint: dict[str, str]
    at_us: int
    definition: str = ""


class WorkflowInterrupted(Value, frozen=True, kw_only=True):
    """A new owner, a signal or a cancelled driver: every running phase is replayed, every open charge is in doubt."""

    epoch: int
    reason: Literal["taken-over", "cancelled", "signal"]
    us: int = 0


class ConditionAsked(Value, frozen=True, kw_only=True):
    """A condition is about to be asked whether its task runs."""

    task: str


class ConditionDecided(Value, frozen=True, kw_only=True):
    """Whether a conditional task runs."""

    task: str
    go: bool


class PhaseStarted(Value, frozen=True, kw_only=True):
    """The intent: durable before the callback runs."""

    task: str
    round: int
    phase: TaskPhase
    attempt: int


class PhaseStopped(Value, frozen=True, kw_only=True):
    """A phase was cancelled because the workflow stops; it replays when that goes on."""

    task: str
    us: int = 0


class PhaseFailed(Value, frozen=True, kw_only=True):
    """The callback raised or took too long. What comes of that is decided next."""

    task: str
    code: Code
    message: str
    at_us: int
    retryable: bool = True
    jitter: float = 0.0  # drawn by chance, 0 <= x < 1
    retry_after_us: int | None = None  # wall time that the server named
    us: int = 0


class RetryScheduled(Value, frozen=True, kw_only=True):
    """The task is tried again, not before that wall time."""

    task: str
    until_us: int


class TaskDue(Value, frozen=True, kw_only=True):
    """A retry delay or a timed pause is over."""

    task: str
    at_us: int


class CandidateSaved(Value, frozen=True, kw_only=True):
    """An attempt has a candidate; check is next, with exactly this (TC-17)."""

    task: str
    json: str
    us: int = 0


class RoundJudged(Value, frozen=True, kw_only=True):
    """The verdict on a round. `json`: the output of an accepted one, as the check left it."""

    task: str
    round: int
    accept: bool
    feedback: str
    evidence: str = ""
    json: str = ""
    us: int = 0


class TaskFinished(Value, frozen=True, kw_only=True):
    """The task is done. `json` is empty where the output stands in the accepted round."""

    task: str
    json: str = ""
    us: int = 0


class TaskFailed(Value, frozen=True, kw_only=True):
    """The task has failed for good, or until the workflow is reopened."""

    task: str
    code: Code
    message: str


class TaskSkipped(Value, frozen=True, kw_only=True):
    """The task will not run. `because`: the task that it depends on, or empty where its own condition said no."""

    task: str
    because: str = ""


class Question(Value, frozen=True, kw_only=True):
    """What somebody is asked. `child`: the execution in which it is asked, and `request` its id there."""

    id: str
    kind: QuestionKind
    prompt: str
    choices: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    child: str = ""
    request: str = ""


class TaskSuspended(Value, frozen=True, kw_only=True):
    """A durable wait for answers, with the state saved at its beginning; `until_us`: it ends by itself then."""

    task: str
    questions: tuple[Question, ...] = ()
    state_json: str | None = None
    until_us: int | None = None
    us: int = 0


class TaskAnswered(Value, frozen=True, kw_only=True):
    """One answer to one question, consumed once."""

    task: str
    id: str
    decision: Decision
    text: str
    actor: str
    at_us: int


class StateSaved(Value, frozen=True, kw_only=True):
    """Interim: what an interactive task wants to find again."""

    task: str
    json: str


class ChargeAnnounced(Value, frozen=True, kw_only=True):
    """Interim: a running callback is about to pay."""

    task: str
    receipt: str
    reserve: Usage


class UsageCharged(Value, frozen=True, kw_only=True):
    """Interim: a running callback has paid. With a receipt it counts once. `incomplete`: not all counters are known."""

    task: str
    usage: Usage
    receipt: str = ""
    incomplete: str = ""


class ChildStarted(Value, frozen=True, kw_only=True):
    """Interim: an execution inside this one. Until it has rested, `reserve` is held for it."""

    task: str
    child: str
    key: str
    reserve: Usage = NO_USAGE


class ChildCharged(Value, frozen=True, kw_only=True):
    """Interim: what the child has spent since it was charged last. Settles its reserve."""

    task: str
    child: str
    usage: Usage
    in_doubt: Usage = NO_USAGE
    incomplete: str = ""


class QuotaPaused(Value, frozen=True, kw_only=True):
    """A provider's quota is used up: no phase starts until that is over (TC-24)."""

    task: str
    message: str
    requested_at_us: int
    reset_at_us: int | None = None
    conversation_json: str = ""
    branch: str = ""
    us: int = 0


class QuotaEnded(Value, frozen=True, kw_only=True):
    """The quota may be there again."""

    at_us: int


class WorkflowExtended(Value, frozen=True, kw_only=True):
    """A person raised limits; each value is the new limit."""

    actor: str
    budget: BudgetSettings
    priced: bool | None = None


class WorkflowReopened(Value, frozen=True, kw_only=True):
    """Failed tasks are tried again where they failed, and what depended on them waits anew."""

    actor: str


class WorkflowAdopted(Value, frozen=True, kw_only=True):
    """A changed definition was taken on deliberately."""

    actor: str
    fingerprint: dict[str, str]
    settings: WorkflowSettings
    definition: str = ""


class WorkflowStopped(Value, frozen=True, kw_only=True):
    """The workflow ends, for good or until it is extended or reopened."""

    status: Status
    code: Code
    kind: str
    evidence: str = ""
    advice: str = ""


WORKFLOW_KINDS: dict[str, type[Value]] = {
    "workflow.started": WorkflowStarted,
    "workflow.interrupted": WorkflowInterrupted,
    "condition.asked": ConditionAsked,
    "condition.decided": ConditionDecided,
    "phase.started": PhaseStarted,
    "phase.stopped": PhaseStopped,
    "phase.failed": PhaseFailed,
    "retry.scheduled": RetryScheduled,
    "task.due": TaskDue,
    "candidate.saved": CandidateSaved,
    "round.judged": RoundJudged,
    "task.finished": TaskFinished,
    "task.failed": TaskFailed,
    "task.skipped": TaskSkipped,
    "task.suspended": TaskSuspended,
    "task.answered": TaskAnswered,
    "state.saved": StateSaved,
    "charge.announced": ChargeAnnounced,
    "usage.charged": UsageCharged,
    "child.started": ChildStarted,
    "child.charged": ChildCharged,
    "quota.paused": QuotaPaused,
    "quota.ended": QuotaEnded,
    "workflow.extended": WorkflowExtended,
    "workflow.reopened": WorkflowReopened,
    "workflow.adopted": WorkflowAdopted,
    "workflow.stopped": WorkflowStopped,
}
USAGE_FIELDS: dict[str, tuple[str, ...]] = {
    "charge.announced": ("reserve",),
    "usage.charged": ("usage",),
    "child.started": ("reserve",),
    "child.charged": ("usage", "in_doubt"),
}
"""Which fields of which kinds hold usage, so that it is checked when read back."""
