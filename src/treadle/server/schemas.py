"""What the API takes and gives, as OpenAPI describes it: the page's types are generated from this."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from .wire import LiveState, LogEvent
from .wishes import Given


class UsageOut(BaseModel):
    """Tokens and requests, all that were counted."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    requests: int = 0
    in_doubt_requests: int = 0


class PendingOut(BaseModel):
    """What it waits for."""

    request_id: str
    kind: str
    prompt: str
    choices: list[str] = []
    until_us: int | None = None
    child: str = ""  # the execution inside it that asks


class ChildOut(BaseModel):
    """An execution that this one's agent has forked. `open`: it is at work, or waits for whoever `waits_for` names."""

    execution_id: str
    name: str
    open: bool = False
    waits_for: str | None = None


class WaitOut(BaseModel):
    """What a workflow waits for although it runs: a task of it, or what runs inside that task, however deep."""

    what: Literal["answer", "decision", "quota", "time", "resume"] = Field(alias="for")
    task: str
    child: str = Field("", description="the execution inside it that waits")
    request_id: str = ""
    prompt: str = ""
    until_us: int | None = None


class OutcomeOut(BaseModel):
    """Why it has come to rest."""

    kind: str
    evidence: str = ""
    advice: str = ""


class ExecutionOut(BaseModel):
    """The document of SV-03, and what a list needs besides."""

    model_config = ConfigDict(extra="allow")

    execution_id: str
    kind: str = "loop"
    status: str
    code: str
    colour: str = "blue"
    pending: PendingOut | None = None
    rounds: int = 0
    phase: str = ""
    turns_taken: int = 0
    act_turns_taken: int = 0
    cost_usd: float = 0.0
    in_doubt_usd: float = 0.0
    usage: UsageOut = UsageOut()
    output: Any = None
    outcome: OutcomeOut | None = None
    started_at: str = ""
    created_us: int = 0
    elapsed_ms: int = 0
    act_elapsed_ms: int = 0
    task: str = ""
    workspace: str = ""
    owner_alive: bool = False
    parent: str = ""
    forked: str = Field("", description="execution@record whose past it shares")
    children: list[ChildOut] = []
    waits: list[WaitOut] = []


class ExecutionsOut(BaseModel):
    """Newest first. `counts`: how many there are of each status."""

    executions: list[ExecutionOut]
    counts: dict[str, int]
    spent_usd: float


class CallOut(BaseModel):
    """A tool call."""

    index: int
    id: str
    name: str
    args: Any = None
    kind: str = "read"
    problem: str = ""
    status: str = "pending"  # pending, running, ok, error, unknown, not-run
    preview: str = ""
    stored: str = ""  # content address of the whole output, where it was clipped
    changed: list[str] = []


class StepOut(BaseModel):
    """A step of the plan. `by_person`: a person's mark, never counted as verified."""

    id: str
    text: str
    status: str = "pending"
    check: str = ""
    reason: str = ""
    by_person: bool = False
    by: str = ""  # on whose word: check, model, work, person
    actor: str = ""
    after: list[str] = []
    call: dict[str, Any] | None = None  # the check as it is written: tool and args


class PlanOut(BaseModel):
    """The plan, and whether it may be carried out."""

    digest: str = ""
    approved: bool = False
    approved_by: str = ""
    request_id: str = ""  # of the gate that waits with it
    done: int = 0
    verified: int = 0  # by their checks alone
    needs_approval: bool = False
    steps: list[StepOut] = []


class BudgetOut(BaseModel):
    """A limit and how far it has been used. `None`: no limit."""

    name: str
    scope: Literal["loop", "act", "evaluate", "rounds", "run"]
    unit: Literal["count", "usd", "ms", "tokens"]
    used: float
    limit: float | None = None


class GuardOut(BaseModel):
    """A guard's counter against its threshold."""

    name: str
    label: str
    count: int
    threshold: int
    warned: bool = False  # it has told the model; at twice its threshold it stops


class LogPage(BaseModel):
    """Events in order. `head` is the number of the last record there is."""

    events: list[LogEvent]
    head: int


class RoundOut(BaseModel):
    """One pass of act and evaluate."""

    round: int
    verdict: str | None = None
    feedback: str = ""
    evidence: str = ""
    turns: int = 0
    changed: list[str] = []
    failure: str | None = None
    output: Any = None
    baseline: str | None = None
    head: str | None = None


class TurnOut(BaseModel):
    """A turn, summarised for charts and rows."""

    turn: int
    seq: int
    round: int
    phase: str
    at_us: int
    finish: str
    calls: list[str]
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cost_usd: float = 0.0
    elapsed_ms: int = 0


class SuspensionOut(BaseModel):
    """A question or gate, and its answer."""

    id: str
    kind: str
    prompt: str
    decision: str = ""
    text: str = ""
    actor: str = ""


class RestOut(BaseModel):
    """How it rests, in words, and what to do next."""

    label: str
    colour: str
    why: str
    next: str
    artifact: str | None = None


class DetailOut(BaseModel):
    """One execution, whole."""

    execution: ExecutionOut
    head: int
    owner: str
    here: bool  # this very service runs it
    live: LiveState
    rest: RestOut
    budgets: list[BudgetOut]
    guards: list[GuardOut]
    calls: list[CallOut]
    plan: PlanOut | None = None
    suspensions: list[SuspensionOut]
    settings: dict[str, Any]
    definition: dict[str, Any] | None = None
    can: list[str]  # what may be asked of it now: pause, resume, cancel, approve, ...


class MachineOut(BaseModel):
    """The one table of AG-02, and the table of endings."""

    start: str
    states: list[str]
    transitions: dict[str, list[str]]
    endings: list[dict[str, Any]]


class EdgeIn(Given):
    """An edge that somebody wants to draw."""

    source: str = Field(max_length=64)
    target: str = Field(max_length=64)


class EdgeOut(BaseModel):
    """Whether the table has it."""

    legal: bool
    reason: str = ""


class OutputOut(BaseModel):
    """A part of a stored output. `bytes` is what is stored, `preview_bytes` what the model was shown."""

    call_id: str
    start: int
    end: int
    bytes: int
    preview_bytes: int
    text: str


class CompactionOut(BaseModel):
    """One that was done, or failed."""

    at: str
    depth: str
    by: str
    before: int
    after: int
    cost_usd: float
    failure: str = ""


class FilledOut(BaseModel):
    """What filled the window of the request that the response `seq` answers, as tokens by kind."""

    seq: int
    kinds: dict[str, int]


class WindowOut(BaseModel):
    """What fills the context window. Counts are tokens; `compact_at`: per cent of the budget that make a compaction due."""

    window: int
    budget: int
    used: int
    free: int
    counted_by: str
    kinds: dict[str, int]
    turns: list[FilledOut]  # of its conversation; of a long one every second, or fourth, …
    static_tokens: int
    tools_tokens: int
    cache_key: str
    cache_read_tokens: int
    changed: list[str] = []  # what of the static part is not as it was in the request before
    compactions: list[CompactionOut]
    breaker: Literal["open", "closed"]
    failures: int
    tokens_saved: int
    requested: str = ""
    depth: str
    compact_at: int


class MapEntryOut(BaseModel):
    """A file of the map: full, skeleton, or only in the tree."""

    path: str
    level: Literal["tree", "skeleton", "full"]
    definitions: int = 0


class MapOut(BaseModel):
    """What of the workspace the model is shown before it plans, as it would be made now."""

    modality: str
    tokens: int
    budget: int
    on: bool  # this loop is given one
    entries: list[MapEntryOut]
    files_left: int


class ActedOut(BaseModel):
    """What came of a wish. `given`: it lies with the process that runs the execution, which takes it at its next boundary."""

    execution_id: str
    seq: int
    status: str
    code: str
    given: bool


class FindingOut(BaseModel):
    """Something wrong in a loop file, or something risky that it is let do (a warning)."""

    line: int
    column: int
    path: str
    message: str
    severity: Literal["error", "warning"] = "error"


class LoopRow(BaseModel):
    """A loop file of the workspace."""

    name: str
    title: str
    bytes: int
    valid: bool


class LoopsOut(BaseModel):
    """All of them."""

    workspace: str
    loops: list[LoopRow]


class LoopOut(BaseModel):
    """A loop file: its text, what it says, and what is wrong with it."""

    name: str
    text: str
    digest: str
    spec: dict[str, Any] | None
    findings: list[FindingOut]


class LoopIn(Given):
    """A loop file to save: as text, or as what it shall say (comments and order are kept then)."""

    text: str | None = Field(None, max_length=262_144)
    spec: dict[str, Any] | None = None
    digest: str = Field("", max_length=64, description="of the text last seen; empty: it must not exist yet")


class ValidateIn(Given):
    """A loop file to look at."""

    text: str | None = Field(None, max_length=262_144)
    spec: dict[str, Any] | None = None


class HealthOut(BaseModel):
    """That it lives."""

    status: Literal["ok"]
    version: str


class LeaseOut(BaseModel):
    """Something granted or revoked, and by whom."""

    id: str
    op: Literal["grant", "revoke"]
    capability: str
    scope: str
    by: str
    expires_at: str | None = None
    expired: bool = False


class LeasesOut(BaseModel):
    """In order: of those that match, the last decides. `ceiling`: what may be granted; null: everything."""

    ceiling: list[str] | None
    leases: list[LeaseOut]


class ComparisonOut(BaseModel):
    """Where two executions part (the first record by which they differ), and how their files differ, as a unified diff."""

    parted_at: int
    diff: str
    cut: bool = False  # there is more of it
    note: str = ""  # why there is none


class SinkOut(BaseModel):
    """A sink of this service."""

    name: str
    where: str
    attached: bool


class SinkIn(Given):
    """Attach it, or detach it."""

    attached: StrictBool


class StudioOut(BaseModel):
    """Where the studio works."""

    version: str
    store: str
    workspace: str
    actor: str
    example: str  # an execution that was started to try things out; empty: none
