"""What happens to the context window of an agent: what a request consists of, and the life of a compaction (AG-12 to AG-14)."""

from __future__ import annotations

from typing import Literal

from .errors import ProviderErrorKind
from .messages import Cause, Depth
from .usage import NO_USAGE, Usage
from .values import Value


class PromptFacts(Value, frozen=True, kw_only=True):
    """What stays the same in an agent's requests, and the window that they must fit. Recorded where it changed.

    `key` names the prefix that a provider may cache: model, static prompt and tools. Sizes are tokens, estimated.
    """

    key: str
    static: str  # digest of the static prompt
    tools: str  # digest of the tool list
    window: int  # tokens that the model reads and writes at once
    reserved: int  # ... of which are kept for its answer
    static_tokens: int
    tools_tokens: int
    changed: tuple[str, ...] = ()  # which of model, static prompt, tools, window differ from those before


class CompactionRequested(Value, frozen=True, kw_only=True):
    """A person, or a guard, wants the history compacted at the next boundary of the agent."""

    depth: Depth
    actor: str
    at_us: int
    by: Cause = "person"


class CompactionIntended(Value, frozen=True, kw_only=True):
    """A summary is about to be paid for. Everything that the compaction will do is decided here."""

    call: str
    depth: Depth
    by: Cause
    reserve: Usage
    request: str  # digest of what is sent
    model: str
    base: int  # leaf of the branch that is compacted
    cut: int  # the first message of it that is not folded
    keep: tuple[int, ...]  # messages before it that are kept word for word
    before: int  # tokens of the window, measured
    calibration: int


class CompactionFailed(Value, frozen=True, kw_only=True):
    """No new branch: the history is as it was. What was paid for a summary that is of no use is charged.

    `opens`: the breaker is open from now on (decided by `kernel.window`).
    """

    call: str
    depth: Depth
    by: Cause
    reason: Literal["provider", "empty", "grew", "nothing"]
    message: str = ""
    kind: ProviderErrorKind | Literal[""] = ""
    usage: Usage = NO_USAGE
    us: int = 0
    maybe_charged: bool = False
    opens: bool = False


class CompactionJudged(Value, frozen=True, kw_only=True):
    """What a compaction came to, by the provider's own count of the next request where it gives one.

    `saved` is negative where the window grew. The breaker opens or closes here, and only here and at a failure.
    """

    before: int
    after: int
    saved: int
    shrunk: bool
    breaker: Literal["", "opens", "closes"] = ""
