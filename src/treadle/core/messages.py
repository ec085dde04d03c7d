"""What a conversation is made of. A message is a record: its id is its sequence number, `parent` the message before it (a tree).

What every turn stores leaves out fields that are at their defaults: they would be a tenth of a store.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from .usage import NO_USAGE, Usage
from .values import Value

CallKind = Literal["read", "idempotent", "mutating", "ask", "plan", "fork", "finish", "verdict", "invalid"]
"""What the toolset says of a call when the response arrives; the model has no say in it.

read        changes nothing: may run beside others, and again after a crash
idempotent  changes something, but twice is as once: runs alone, may run again after a crash
mutating    runs alone behind a durable intent; after a crash its outcome is unknown unless a probe tells
ask         suspends until a person answers
plan        changes the plan, and nothing else
fork        begins a child execution, or goes on with it, and waits for what comes of it
finish      ends act;  verdict  ends evaluate
invalid     failed validation: never runs (AG-15)
"""

ResultStatus = Literal["ok", "error", "unknown", "not-run"]
Origin = Literal["task", "feedback", "wrap-up", "directive", "person", "summary"]
Depth = Literal["micro", "auto", "full", "clamp"]
"""How deep a compaction goes.

micro  old tool outputs become stubs that say how to read them back
auto   early turns become a summary
full   only what is pinned, a summary and the last turns stay
clamp  early turns are left out without a summary: the last resort before a request that would not fit
"""
Cause = Literal["pressure", "person", "guard", "overflow"]


class ToolCall(Value, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a response. It is known by `(turn, index)`, since providers' ids are not unique."""

    id: str
    name: str
    args: dict[str, Any] | str  # a string where the model's JSON was malformed
    kind: CallKind = "read"
    problem: str = ""  # of an invalid call: what is wrong, with the path


class ToolResult(Value, frozen=True, kw_only=True, omit_defaults=True):
    """What the model is told of one call. A large output is clipped here and kept whole in `blob` (AG-16)."""

    id: str
    content: str
    status: ResultStatus = field(default_factory=lambda: "ok")  # from a factory: it is always written
    changed: tuple[str, ...] = ()  # workspace-relative paths that the call changed
    blob: str = ""  # content address of the whole output, where it was clipped
    error: str = ""  # class of a failure, one of ToolErrorKind (AG-09)
    transient: bool = False  # whether the same call may succeed later
    mark: str = ""  # digest of call and result, what merely tells the time left out; empty: no guard looks (AG-11)
    effects: tuple[str, ...] = ()  # what it touched, as `kind target` (FR-14)
    passed: bool = True  # false: it ran and shows nothing good: an exit code other than 0, nothing found


class MapGiven(Value, frozen=True, kw_only=True):
    """The map of the workspace that stands in a prompt, or why there is none (AG-05)."""

    budget: int  # tokens that it might take
    tokens: int = 0
    modality: str = ""
    files: int = 0
    files_left: int = 0
    definitions_left: int = 0
    us: int = 0  # active time that it took
    none: str = ""  # why there is none


class Prompted(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A message to the model that is no tool result."""

    parent: int | None
    text: str
    origin: Origin = "task"
    map: MapGiven | None = None
    mounts: tuple[str, ...] = ()  # `skill:NAME` and `rule:ID` whose bodies it holds


class ModelResponded(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A response with its usage. Durable before any result of its calls is awaited (LG-03)."""

    parent: int
    call: str
    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage
    finish: str  # the provider's finish reason, normalised: stop, length, tool_call, content_filter, error
    us: int  # active time of the request
    extra: str = ""  # provider-specific parts as JSON (reasoning, signatures), given back to the same model only


class ToolsFinished(Value, frozen=True, kw_only=True):
    """Results of the next calls of the batch, in call order. A batch may be answered in pieces."""

    parent: int
    results: tuple[ToolResult, ...]
    us: int


class Compacted(Value, frozen=True, kw_only=True):
    """The conversation goes on on a new branch: nothing is rewritten. What it holds is told in terms of the old one.

    Messages of the old branch, up to its leaf `base`, in order: those before `cut` are folded but for `keep`; the summary stands
    between them and the rest. Tool outputs before `trim_before` that are longer than `trim_over` characters are cut to
    `trim_to`; all others to `clip_to` where it is given. `kernel.compress.compacted` makes the view of it.
    """

    parent: int | None  # where the new branch leaves the old one: up to here both are the same
    base: int
    depth: Depth
    by: Cause
    cut: int = 0  # 0: nothing is folded
    keep: tuple[int, ...] = ()
    summary: str = ""
    trim_before: int = 0  # 0: none
    trim_over: int = 0
    trim_to: int = 0
    clip_to: int | None = None
    before: int  # tokens of the window, measured
    after: int  # ... and estimated with the same calibration
    calibration: int  # provider's count per estimated token, in thousandths
    call: str = ""
    usage: Usage = NO_USAGE  # what the summary cost
    us: int = 0


Message = Prompted | ModelResponded | ToolsFinished
MESSAGES = (Prompted, ModelResponded, ToolsFinished)
BRANCHING = (*MESSAGES, Compacted)
"""Records with a parent: the nodes of the tree."""
