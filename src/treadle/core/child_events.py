"""What happens between a loop and the executions that its agent forks (FR-22): the parent's account; each has records of its own."""

from __future__ import annotations

from decimal import Decimal

from .lease_events import Held
from .usage import NO_USAGE, Usage
from .values import Value


class ChildIntended(Value, frozen=True, kw_only=True):
    """A child is about to begin, or to go on. `reserve` is the most that it may add to what has been counted of it (LG-04)."""

    call: str  # key of the call that wants it
    child: str  # its execution
    name: str  # of the definition
    reserve: Usage = NO_USAGE


class ChildUsed(Value, frozen=True, kw_only=True):
    """The child rests: what it has used since it was last counted. `asks`: the request that the parent's agent is to answer."""

    child: str
    usage: Usage
    in_doubt: Usage = NO_USAGE
    turns: int = 0
    asks: str = ""


class ChildWoken(Value, frozen=True, kw_only=True):
    """The child no longer waits with what its parent was suspended for: somebody spoke to it directly."""

    child: str
    id: str  # of the suspension that is over


class ChildEnded(Value, frozen=True, kw_only=True):
    """Nothing more will come of this child: its parent's act is over, or its parent has ended."""

    child: str


class ParentSaid(Value, frozen=True, kw_only=True):
    """In the child's records: the parent's guards, and the most that it may have used in all. They may rise and fall."""

    forked_by: str
    above: tuple[Held, ...] = ()  # what those above it may touch, from its parent outwards
    max_turns: int | None = None
    max_cost_usd: Decimal | None = None
    max_tokens: int | None = None
    max_duration_us: int | None = None


CHILD_KINDS: dict[str, type[Value]] = {
    "child.intended": ChildIntended,
    "child.used": ChildUsed,
    "child.woken": ChildWoken,
    "child.ended": ChildEnded,
    "parent.said": ParentSaid,
}
CHILD_USAGE: dict[str, tuple[str, ...]] = {"child.intended": ("reserve",), "child.used": ("usage", "in_doubt")}
ChildEvent = ChildIntended | ChildUsed | ChildWoken | ChildEnded | ParentSaid
