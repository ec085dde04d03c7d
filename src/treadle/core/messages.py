"""What a conversation is made of. A message is a record: its id is its sequence number, `parent` the message before it (a tree)."""

from __future__ import annotations

from typing import Any, Literal

from .usage import Usage
from .values import Value

CallKind = Literal["read", "idempotent", "mutating", "ask", "finish", "verdict", "invalid"]
"""What the toolset says of a call when the response arrives; the model has no say in it.

read        changes nothing: may run beside others, and again after a crash
idempotent  changes something, but twice is as once: runs alone, may run again after a crash
mutating    runs alone behind a durable intent; after a crash its outcome is unknown unless a probe tells
ask         suspends until a person answers
finish      ends act;  verdict  ends evaluate
invalid     failed validation: never runs (AG-15)
"""

ResultStatus = Literal["ok", "error", "unknown", "not-run"]


class ToolCall(Value, frozen=True, kw_only=True):
    """One call of a response. It is known by `(turn, index)`, since providers' ids are not unique."""

    id: str
    name: str
    args: dict[str, Any] | str  # a string where the model's JSON was malformed
    kind: CallKind = "read"
    problem: str = ""  # of an invalid call: what is wrong, with the path


class ToolResult(Value, frozen=True, kw_only=True):
    """What the model is told of one call. A large output is clipped here and kept whole in `blob` (AG-16)."""

    id: str
    content: str
    status: ResultStatus = "ok"
    changed: tuple[str, ...] = ()  # workspace-relative paths that the call changed
    blob: str = ""  # content address of the whole output, where it was clipped
    error: str = ""  # class of a failure, one of ToolErrorKind (AG-09)
    transient: bool = False  # whether the same call may succeed later
    mark: str = ""  # digest of call and result, what merely tells the time left out; empty: no guard looks (AG-11)


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


class Prompted(Value, frozen=True, kw_only=True):
    """A message to the model that is no tool result."""

    parent: int | None
    text: str
    origin: Literal["task", "feedback", "wrap-up", "directive", "person"] = "task"
    map: MapGiven | None = None


class ModelResponded(Value, frozen=True, kw_only=True):
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


Message = Prompted | ModelResponded | ToolsFinished
MESSAGES = (Prompted, ModelResponded, ToolsFinished)
