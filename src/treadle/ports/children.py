"""What a loop needs of the world to fork a child: an execution of its own that is run, asked how it stands, and ended (FR-22)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, NamedTuple

from treadle.core.endings import Code, Status
from treadle.core.lease_events import Held
from treadle.core.usage import NO_USAGE, Usage
from treadle.kernel.actions import Allowance

Answers = Literal["person", "agent"]
Decision = Literal["answer", "approve", "reject"]


class Above(NamedTuple):
    """What holds for a child's calls, as it is at each of them: leases of those above it, and whether a plan of theirs holds it back."""

    held: Callable[[], tuple[Held, ...]]
    gated: Callable[[], bool]


class Word(NamedTuple):
    """An answer to a child's request. One that it no longer waits with is passed over: it was consumed before."""

    request_id: str
    decision: Decision
    text: str
    actor: str


class Waiting(NamedTuple):
    """What a child waits with."""

    request_id: str
    kind: Literal["question", "approval", "evaluation", "plan", "quota"]
    prompt: str
    choices: tuple[str, ...]
    until_us: int | None


class Rested(NamedTuple):
    """How a child rests, with all that it has used so far."""

    status: Status
    code: Code
    evidence: str = ""
    output_json: str = "null"
    rounds: int = 0
    turns: int = 0
    usage: Usage = NO_USAGE
    in_doubt: Usage = NO_USAGE
    waiting: Waiting | None = None
    changed: tuple[str, ...] = ()  # paths of its parent's workspace
    effects: tuple[str, ...] = ()


class Children(ABC):
    """The children of one execution."""

    @abstractmethod
    def answers(self, name: str) -> Answers:
        """Who answers what a child of this name asks: a person, or its parent's agent."""

    @abstractmethod
    async def run(
        self,
        name: str,
        task: str,
        child: str,
        *,
        allowance: Allowance,
        above: Above,
        guards: dict[str, int],
        word: Word | None,
    ) -> Rested:
        """Starts the child, or goes on with it, until it rests. InputError where it cannot be started; LedgerError."""

    @abstractmethod
    async def state(self, child: str) -> Rested | None:
        """How it stands; None where it was never started."""

    @abstractmethod
    async def end(self, child: str, why: str) -> Rested | None:
        """Cancels it, and what it has forked itself, unless it has ended."""
