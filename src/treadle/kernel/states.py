"""The folded state of a loop. Its size does not grow with turns: a leaf, counters and the batch in hand; never history, never receipts."""

from __future__ import annotations

from typing import Any, Literal

from treadle.core.endings import Code, Status
from treadle.core.events import Answered, Phase, Probe, StepStatus, Suspended
from treadle.core.lease_events import Held
from treadle.core.messages import Origin, ToolCall
from treadle.core.plans import PlanStep
from treadle.core.scope_events import Closing, Isolation
from treadle.core.settings import LoopSettings
from treadle.core.usage import NO_USAGE, Usage
from treadle.core.values import Value

from .carried import Carried
from .guard_state import GuardCounters
from .lesson_state import Memory
from .window_state import WindowState

AgentStateName = Literal["planning", "executing", "error_recovery", "completed", "failed"]

AGENT_TRANSITIONS: dict[AgentStateName, frozenset[AgentStateName]] = {
    "planning": frozenset({"planning", "executing", "error_recovery", "failed"}),
    "executing": frozenset({"executing", "error_recovery", "completed", "failed"}),
    "error_recovery": frozenset({"executing", "failed"}),
    "completed": frozenset(),
    "failed": frozenset(),
}
"""The one table (AG-01): the driver, the checks of a loop file, the API and the canvas read it."""

Step = Literal["prompt", "ready", "calling", "back-off", "tools", "compacting", "done"]


class AgentState(Value, frozen=True, kw_only=True):
    """One agent at work in one phase of one round."""

    state: AgentStateName = "planning"
    step: Step = "prompt"
    prompt: str = ""
    origin: Origin = "task"
    leaf: int | None = None
    iteration: int = 0  # execution turns of this act (AG-03)
    turn: int = 0  # number of the turn being made; a retried request keeps it
    tries: int = 0  # requests made for it: makes the call id unique
    call: str = ""  # request in flight
    reserve: Usage = NO_USAGE  # what it may cost
    calls: tuple[ToolCall, ...] = ()
    answered: int = 0  # calls of the batch that have their result
    errors: int = 0  # ... of which failed
    running: str = ""  # mutating call in flight
    probes: tuple[Probe, ...] = ()
    doubt: str = ""  # mutating call that was in flight when its owner died
    found: str = ""  # what a probe said of it
    touched: tuple[str, ...] = ()  # ... and what it may have touched
    band: int = 0  # wrap-up messages given (AG-04)
    guards: GuardCounters = GuardCounters()
    failures: int = 0  # requests in a row that failed
    failure: str = ""  # of the last one: kind and message
    retry_at_us: int | None = None
    output_json: str = ""
    reason: str = ""  # why it failed
    accept: bool | None = None  # an evaluator's verdict
    feedback: str = ""
    lessons: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it; what the verdict says of recalled ones


class Counters(Value, frozen=True, kw_only=True):
    """Totals since the start of the loop. Never reset (FR-08)."""

    turns: int = 0
    usage: Usage = NO_USAGE
    in_doubt: Usage = NO_USAGE  # most that requests without a known outcome can have cost
    us: int = 0  # active time


class Charge(Value, frozen=True, kw_only=True):
    """What a running callback has said that it is about to pay."""

    receipt: str
    reserve: Usage


class ChildAccount(Value, frozen=True, kw_only=True):
    """What a loop knows of the child that its agent has forked last (FR-22)."""

    call: str = ""  # key of the call that waits for it
    child: str = ""  # its execution
    name: str = ""
    reserve: Usage = NO_USAGE  # what it may still add, while it runs
    running: bool = False  # it was let go, and has not been counted since
    asks: str = ""  # the request that this agent is to answer
    turns: int = 0  # counted so far, as the rest
    usage: Usage = NO_USAGE
    in_doubt: Usage = NO_USAGE


class StepState(Value, frozen=True, kw_only=True):
    """A step of the plan and how far it is. `by` is on whose word: `check` alone is verified."""

    step: PlanStep
    status: StepStatus = "pending"
    by: str = ""
    reason: str = ""
    evidence: str = ""
    actor: str = ""


class Outcome(Value, frozen=True, kw_only=True):
    """How one call of the last batch ended, until it is held against the plan."""

    key: str
    tool: str
    args: dict[str, Any] | str
    passed: bool
    said: str = ""  # the end of what a failed one said


class PlanState(Value, frozen=True, kw_only=True):
    """The plan of act, kept through rounds. Its size is that of the plan."""

    steps: tuple[StepState, ...] = ()
    digest: str = ""  # of the steps as written; empty: there is no plan
    written: int = 0  # how often it has been written: makes the id of a request to approve it unique
    approved: str = ""  # the digest that a person has approved
    approved_by: str = ""
    asked: bool = False  # this writing has been put before the person
    applied: str = ""  # key of the model's call that was carried out and is still to be answered
    outcomes: tuple[Outcome, ...] = ()
    last: str = ""  # key of the last call since a step was begun
    last_passed: bool = False
    refused: int = 0  # times in a row that finish was refused for what is open (AG-06)


NO_PLAN = PlanState()


class ScopeState(Value, frozen=True, kw_only=True):
    """The isolated scope of a loop. `onto` and `conflicts` say what the last accepted work was in conflict with."""

    isolation: Isolation
    onto: str = ""  # still to be brought in
    conflicts: tuple[str, ...] = ()
    commit: str = ""  # what was accepted
    closed: Closing | Literal[""] = ""
    note: str = ""


class LoopState(Value, frozen=True, kw_only=True):
    """Everything that decides what comes next."""

    seq: int = 0
    epoch: int = 0
    settings: LoopSettings = LoopSettings(loop_id="", role_key="")
    step_exec_id: str = ""
    input_json: str = ""
    task: str = ""
    fingerprint: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    workspace: str = ""
    definition: str = ""
    started_us: int = 0
    status: Status = "running"
    code: Code = ""
    outcome: str = ""  # outcome kind of AG-17
    evidence: str = ""
    advice: str = ""
    iteration: int = 0  # zero-based; people see rounds, from 1
    phase: Phase = "act"
    agent: AgentState = AgentState()
    total: Counters = Counters()
    act: Counters = Counters()
    unmetered: int = 0  # responses without usage
    baseline: str | None = None  # tree at the start of this round; None: not taken yet
    first_baseline: str = ""
    note: str = ""  # to be told to the model with the next prompt
    callback: str = ""  # key of the running callback
    attempt: int = 1  # of this phase; +1 for each replay
    processes: tuple[tuple[int, str], ...] = ()  # process groups of the effect in flight
    charges: tuple[Charge, ...] = ()
    preserved_leaf: int | None = None
    last_output_json: str | None = None
    last_receipt_json: str | None = None
    last_changed: tuple[str, ...] = ()
    act_failure: str = ""  # why this round's act did not finish
    touched: bool = False  # whether a tool of act said that it changed something
    changed: bool | None = None  # whether any act changed the workspace; None: nobody can tell
    last_rejected_json: str | None = None
    last_act_model: str = ""
    act_guards: GuardCounters = GuardCounters()  # act's, while evaluate runs
    fires: tuple[tuple[str, int], ...] = ()  # guard -> how often it has tripped
    rung: int = 0  # of the ladder that act's model stands on (FR-21)
    evaluate_rung: int = 0
    rejections: int = 0  # since the last change of act's model
    feedback: str | None = None
    accepted: bool = False
    window: WindowState = WindowState()  # act's
    judge_window: WindowState = WindowState()  # an evaluating agent's
    carried: Carried = Carried()
    plan: PlanState = NO_PLAN
    scope: ScopeState | None = None  # where act has an isolated one
    memory: Memory = Memory()
    forked: str = ""  # execution@record that it goes on from; empty: it was started
    child: ChildAccount | None = None
    children: tuple[tuple[str, str], ...] = ()  # execution and name of all that it has forked, oldest first
    parent: str = ""  # the execution that forked it
    above: tuple[Held, ...] = ()  # what those above it may touch, from its parent outwards
    pending: Suspended | None = None
    answer: Answered | None = None

    @property
    def round(self) -> int:
        """One-based number of the pass."""
        return self.iteration + 1
