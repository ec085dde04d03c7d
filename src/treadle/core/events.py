"""Everything that can happen to an execution of a loop. Events carry deltas, never totals; state changes only by folding them.

A fact that a rule decided (a limit, a guard, a wait) is an event as well: a later release may decide otherwise, and
folds old events as before.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from .child_events import CHILD_KINDS, ChildEvent
from .endings import Code, Status
from .errors import ProviderErrorKind
from .fork_events import Forked
from .lease_events import Held, LeaseChanged
from .lesson_events import LESSON_KINDS, LessonEvent
from .messages import Compacted, ModelResponded, Prompted, ToolsFinished
from .plans import PlanStep
from .scope_events import Isolation, ScopeClosed, ScopeRestored
from .settings import GuardName, LoopSettings
from .usage import Usage
from .values import Value
from .window_events import CompactionFailed, CompactionIntended, CompactionJudged, CompactionRequested, PromptFacts

Phase = Literal["act", "evaluate"]
SuspensionKind = Literal["question", "approval", "evaluation", "plan", "quota"]
StepStatus = Literal["pending", "in-progress", "done", "failed"]


class LoopStarted(Value, frozen=True, kw_only=True):
    """The first event. Everything that folding depends on is in it."""

    settings: LoopSettings
    step_exec_id: str
    input_json: str
    task: str  # the prompt of the first act, made from the input
    fingerprint: dict[str, str]  # part of the definition -> digest (FR-25)
    at_us: int
    workspace: str = ""
    definition: str = ""  # how to build it again, JSON (command line), or module:attribute
    scope: Isolation | None = None  # then the workspace is inside its folder (FR-16)
    forked_by: str = ""  # the execution whose agent forked it (FR-22)
    above: tuple[Held, ...] = ()  # what those above it may touch, from its parent outwards


class Interrupted(Value, frozen=True, kw_only=True):
    """A new owner, a cancelled effect, a signal or a lapsed deadline: whatever was in flight becomes in doubt."""

    epoch: int
    reason: Literal[
        "taken-over", "cancelled", "signal", "deadline", "step"
    ]  # step: one turn or round was asked for, and is done
    us: int = 0  # active time of the interrupted effect, where it is known


class BaselineTaken(Value, frozen=True, kw_only=True):
    """The workspace at the start of a round, as a git tree (AG-28); empty where there is no git."""

    tree: str
    note: str = ""  # why there is none, or what changed while nobody was looking


class ModelIntended(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A request is about to be sent. `reserve` is the most that it can cost (LG-04)."""

    call: str
    reserve: Usage
    request: str  # digest of what is sent (AG-27)
    model: str
    prompt: PromptFacts | None = None  # where it is not what it was at the request before (AG-14)


class ModelFailed(Value, frozen=True, kw_only=True):
    """The request ended without a response. `retry_at_us`: when the next one may be sent; None: not by itself."""

    call: str
    kind: ProviderErrorKind
    message: str
    us: int
    maybe_charged: bool
    retry_at_us: int | None = None


class Probe(Value, frozen=True, kw_only=True):
    """Digests of a file before and after a write, so that a doubt can be resolved by looking; empty: no such file."""

    path: str
    before: str
    after: str


class ToolIntended(Value, frozen=True, kw_only=True):
    """A mutating call is about to run, alone."""

    call: str
    probes: tuple[Probe, ...] = ()


class ToolProbed(Value, frozen=True, kw_only=True):
    """What a look at the workspace said of a call in doubt: it ran, it never started, or nobody can tell.

    `touches`: what it was to touch; it counts as an effect unless the call never started.
    """

    call: str
    found: Literal["done", "not-started", "unknown"]
    touches: tuple[str, ...] = ()


class ProcessStarted(Value, frozen=True, kw_only=True):
    """Interim: the process group of a running command, so that a later owner can make sure that it is gone."""

    call: str
    pgid: int
    birth: str  # start time of the leader, so that a reused number is not mistaken for it


class ActFinished(Value, frozen=True, kw_only=True):
    """Act has an output: evaluate is next. In the same commit as the output and receipt that evaluate will read (FR-07)."""

    output_json: str
    scope_receipt_json: str
    changed: tuple[str, ...]  # workspace-relative paths that this round's act changed
    deleted: tuple[str, ...] = ()  # ... and of these, which are gone
    us: int = 0


class ActFailed(Value, frozen=True, kw_only=True):
    """The act ended without finishing (out of turns, a command that failed); evaluate still runs."""

    reason: str
    output_json: str
    scope_receipt_json: str
    changed: tuple[str, ...]
    deleted: tuple[str, ...] = ()
    us: int = 0


class CallbackStarted(Value, frozen=True, kw_only=True):
    """A check, a function or a command actor is about to run under this key."""

    key: str


class CallbackRaised(Value, frozen=True, kw_only=True):
    """It raised, or could not be run."""

    key: str
    message: str
    us: int
    timeout: bool = False


class ChargeIntended(Value, frozen=True, kw_only=True):
    """Interim: a running callback is about to pay for something itself."""

    receipt: str
    reserve: Usage


class UsageReported(Value, frozen=True, kw_only=True):
    """Interim: a running callback has paid. With a receipt it counts once."""

    usage: Usage
    receipt: str = ""


class Judged(Value, frozen=True, kw_only=True):
    """The verdict on a round."""

    accept: bool
    feedback: str
    us: int
    evidence: str = ""  # for a command: its exit code and the tail of its output
    commit: str = ""  # of the scope's branch, with the work that was accepted
    conflicts: tuple[str, ...] = ()  # paths for which an acceptance became this rejection (FR-16)
    onto: str = ""  # the commit that they are in conflict with


class Suspended(Value, frozen=True, kw_only=True):
    """A durable wait. `until_us`: wall time at which it ends by itself."""

    id: str
    kind: SuspensionKind
    prompt: str
    choices: tuple[str, ...] = ()
    until_us: int | None = None
    child: str = ""  # the execution inside it that asks (FR-22)


class Answered(Value, frozen=True, kw_only=True):
    """A person's answer to one suspension, consumed once."""

    id: str
    decision: Literal["answer", "approve", "reject"]
    text: str
    actor: str
    at_us: int


class WaitEnded(Value, frozen=True, kw_only=True):
    """A back-off or a quota pause is over."""

    at_us: int


class Extended(Value, frozen=True, kw_only=True):
    """A person raised limits. Each value is the new limit; None leaves it as it was."""

    actor: str
    max_rounds: int | None = None
    max_turns: int | None = None
    max_cost_usd: Decimal | None = None
    max_duration_us: int | None = None
    max_tokens: int | None = None
    guards: dict[str, int] = {}  # noqa: RUF012 - msgspec copies it; thresholds by name
    warn_at: tuple[int, ...] | None = None  # act's warning bands
    compact_at: int | None = None  # per cent of act's window that make a compaction due
    priced: bool | None = None  # a price is known now (resume --price)


class Pinned(Value, frozen=True, kw_only=True):
    """A person marked this point, to come back to it: an execution may be forked there. It changes nothing."""

    actor: str
    label: str
    at_us: int


class Reopened(Value, frozen=True, kw_only=True):
    """A failed execution is tried again where it failed (resume --retry-incomplete)."""

    actor: str
    reason: str = ""


class Adopted(Value, frozen=True, kw_only=True):
    """A changed definition was taken on deliberately (resume --adopt)."""

    actor: str
    settings: LoopSettings
    fingerprint: dict[str, str]
    definition: str
    workspace: str = ""  # where it is from now on; empty: where it was


class WorkspaceChanged(Value, frozen=True, kw_only=True):
    """Somebody changed the workspace while nothing ran; the model is told (AG-28)."""

    paths: tuple[str, ...]


class WorkspaceMeasured(Value, frozen=True, kw_only=True):
    """The workspace as a tree, looked at because a guard was about to trip; empty where nobody can tell."""

    tree: str
    note: str = ""


class GuardTripped(Value, frozen=True, kw_only=True):
    """A guard fired (AG-11): it tells the model once, asks for one hard compaction, or ends what it guards."""

    guard: GuardName
    response: Literal["directive", "compact", "stop"]
    count: int
    evidence: str


class Escalated(Value, frozen=True, kw_only=True):
    """The actor of this phase goes on with the next model of its ladder, to the end of the loop (FR-21)."""

    rung: int  # 0 is the first model
    model: str
    reason: str


class PlanWritten(Value, frozen=True, kw_only=True):
    """The plan, whole: by the model's call, or by a person. Steps that are as they were keep their progress (AG-06)."""

    steps: tuple[PlanStep, ...]
    by: Literal["model", "person"]
    call: str = ""  # key of the model's call
    actor: str = ""
    withdraws: str = ""  # id of the open request to approve the plan that it replaces


class StepMoved(Value, frozen=True, kw_only=True):
    """A step has another status (AG-08). `by` says on whose word: only `check` makes it verified.

    work    a call was made while nothing was in progress: the next step is
    check   the step's own check succeeded or failed
    model   it started or gave a step up, or says that one without a check is done, its last call having succeeded
    person  a person's mark
    """

    step: str
    status: StepStatus
    by: Literal["work", "check", "model", "person"]
    reason: str = ""
    evidence: str = ""  # key of the tool call that showed it
    call: str = ""  # key of the model's call that asked for it
    actor: str = ""
    taken: int = 0  # results of the last batch that are dealt with now


class Stopped(Value, frozen=True, kw_only=True):
    """The loop ends, for good or until it is extended or reopened. `kind` is the outcome kind of AG-17."""

    status: Status
    code: Code
    kind: str
    evidence: str = ""
    advice: str = ""


Event = (
    LoopStarted
    | Interrupted
    | BaselineTaken
    | Prompted
    | ModelIntended
    | ModelResponded
    | ModelFailed
    | ToolIntended
    | ToolProbed
    | ToolsFinished
    | ProcessStarted
    | ActFinished
    | ActFailed
    | CallbackStarted
    | CallbackRaised
    | ChargeIntended
    | UsageReported
    | Judged
    | Suspended
    | Answered
    | WaitEnded
    | Extended
    | Pinned
    | Reopened
    | Adopted
    | WorkspaceChanged
    | LeaseChanged
    | WorkspaceMeasured
    | GuardTripped
    | Escalated
    | ScopeRestored
    | ScopeClosed
    | Forked
    | CompactionRequested
    | CompactionIntended
    | Compacted
    | CompactionFailed
    | CompactionJudged
    | PlanWritten
    | StepMoved
    | LessonEvent
    | ChildEvent
    | Stopped
)

KINDS: dict[str, type[Value]] = {
    "loop.started": LoopStarted,
    "interrupted": Interrupted,
    "baseline.taken": BaselineTaken,
    "prompted": Prompted,
    "model.intended": ModelIntended,
    "model.responded": ModelResponded,
    "model.failed": ModelFailed,
    "tool.intended": ToolIntended,
    "tool.probed": ToolProbed,
    "tools.finished": ToolsFinished,
    "process.started": ProcessStarted,
    "act.finished": ActFinished,
    "act.failed": ActFailed,
    "callback.started": CallbackStarted,
    "callback.raised": CallbackRaised,
    "charge.intended": ChargeIntended,
    "usage.reported": UsageReported,
    "judged": Judged,
    "suspended": Suspended,
    "answered": Answered,
    "wait.ended": WaitEnded,
    "extended": Extended,
    "pinned": Pinned,
    "reopened": Reopened,
    "adopted": Adopted,
    "workspace.changed": WorkspaceChanged,
    "lease.changed": LeaseChanged,
    "workspace.measured": WorkspaceMeasured,
    "guard.tripped": GuardTripped,
    "escalated": Escalated,
    "scope.restored": ScopeRestored,
    "scope.closed": ScopeClosed,
    "forked": Forked,
    "compaction.requested": CompactionRequested,
    "compaction.intended": CompactionIntended,
    "compacted": Compacted,
    "compaction.failed": CompactionFailed,
    "compaction.judged": CompactionJudged,
    "plan.written": PlanWritten,
    "step.moved": StepMoved,
    **LESSON_KINDS,
    **CHILD_KINDS,
    "stopped": Stopped,
}
MESSAGE_KINDS = ("prompted", "model.responded", "tools.finished", "compacted")
