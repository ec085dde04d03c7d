"""What runs in a phase where no agent does: checks, functions, command actors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from treadle.core.lesson_events import LessonOutcome, RecalledLesson
from treadle.core.usage import Usage

LessonOutcomes = Mapping[str, LessonOutcome]


def _none() -> LessonOutcomes:
    return {}


@dataclass(frozen=True, slots=True)
class Verdict:
    """accept() or reject(feedback); made by these two and no other way."""

    accepted: bool
    feedback: str = ""
    evidence: str = ""
    lessons: LessonOutcomes = field(default_factory=_none)


@dataclass(frozen=True, slots=True)
class Iteration:
    """One pass of a loop, as `on_loop_recovery` sees it: the last that was rejected, and the one that was accepted (FR-19)."""

    iteration: int  # from 0
    output: Any
    feedback: str | None  # of the rejection
    changed: tuple[str, ...]  # paths that act changed in it
    evidence: str = ""  # of the acceptance


def accept(*, evidence: str = "", lessons: LessonOutcomes | None = None) -> Verdict:
    """The round's output is good. `lessons`: what recalled ones did, by id; the evidence is what shows it (FR-18)."""
    return Verdict(True, "", evidence, lessons or {})


def reject(feedback: str, *, evidence: str = "", lessons: LessonOutcomes | None = None) -> Verdict:
    """The round's output is not good yet; the feedback reaches the next round's act verbatim. `lessons` as in accept."""
    return Verdict(False, feedback, evidence, lessons or {})


def finished(_: object, output: object) -> Verdict:
    """A check for work that nobody else judges, such as a child's: it is done when act has finished with something."""
    if output is None:
        return reject("It ended without an output: call finish(summary) with what you have found.")
    return accept()


class RoundContext(ABC):
    """What a callback is given. Its reports are synchronous, thread-safe and refused once its phase is over (OutsideRound)."""

    execution_id: str
    round: int  # from 1; unchanged when an interrupted phase is replayed
    phase: Literal["act", "evaluate"]
    attempt: int  # of this phase, from 1; +1 for each replay
    idempotency_key: str  # from execution, task, round and phase: the same on replay
    task: str
    feedback: str | None  # of the last rejection
    changed: tuple[str, ...]  # paths that act changed, for evaluate
    lessons: tuple[RecalledLesson, ...] = ()  # recalled when the loop started (FR-17)

    @abstractmethod
    def report_usage(self, usage: Usage) -> None:
        """Adds to the budgets. InvalidUsage."""

    @abstractmethod
    def report_usage_once(self, receipt: str, usage: Usage) -> None:
        """The same, once a receipt. InvalidUsage, InvalidReceipt; a duplicate is silent."""

    @abstractmethod
    async def intend(self, receipt: str, reserve: Usage) -> bool:
        """Durable before the callback pays by itself. False: this receipt is accounted for already, do not pay again."""

    def limit_reached(self) -> str:
        """Which limit of the loop has been reached, in words; empty while none has. Pay for nothing more then."""
        return ""

    @abstractmethod
    async def checkpoint(self) -> None:
        """Makes everything reported so far durable."""

    @abstractmethod
    def started(self, pgid: int, birth: str) -> None:
        """Records a process group that must not outlive its owner."""


class ActorResult(NamedTuple):
    """What a command actor gave: its output as JSON, and whether it ended well."""

    output_json: str
    failure: str = ""  # why it ended badly; evaluate runs all the same


class Actor(ABC):
    """Does the act of a round by itself."""

    @abstractmethod
    async def act(self, context: RoundContext) -> ActorResult:
        """Works on the task. Any exception ends the loop as failed."""


class Check(ABC):
    """Judges a round."""

    @abstractmethod
    async def check(self, context: RoundContext, output_json: str) -> Verdict:
        """The verdict. Any exception ends the loop as failed."""
