"""The store of lessons: texts with their track record, found by what a task says. It is shared by loops and outlives them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple

from treadle.core.lesson_events import LessonOutcome, LessonSource
from treadle.core.values import Value

LessonStanding = Literal["candidate", "trusted", "retired"]


class Lesson(Value, frozen=True, kw_only=True):
    """What a loop taught, and how it has fared. Counters are votes, one a loop; `workspace` empty: it holds in any."""

    id: str
    text: str
    standing: LessonStanding
    role: str
    workspace: str
    source: LessonSource
    task: str  # of the loop that taught it first
    created_us: int
    helpful: int = 0
    neutral: int = 0
    harmful: int = 0
    unobserved: int = 0
    confirmations: int = 0  # by later loops that learnt the same, helpful votes, and a person
    reason: str = ""  # why it is retired


class Candidate(Value, frozen=True, kw_only=True):
    """What one loop teaches. The same id from another loop confirms what is known."""

    id: str
    text: str
    role: str
    workspace: str
    source: LessonSource
    task: str
    step_exec_id: str
    gate: str = ""
    round: int = 0  # in which the work was accepted
    at_us: int


class Vote(Value, frozen=True, kw_only=True):
    """What a lesson did in one loop, and what shows it."""

    step_exec_id: str
    lesson_id: str
    outcome: LessonOutcome
    evidence: str = ""
    at_us: int


class Origin(Value, frozen=True, kw_only=True):
    """A loop that taught it, or a person who brought it in."""

    step_exec_id: str
    source: LessonSource
    gate: str
    round: int
    at_us: int


class Match(NamedTuple):
    """A lesson that fits a task. `relevance` is the weight of the words that both have: rarer ones weigh more."""

    lesson: Lesson
    relevance: float


class Lessons(ABC):
    """A store of lessons. Everything that is written is durable when the method returns, and may be repeated: nothing counts twice.

    All methods raise LedgerError subclasses for faults of the store; UnknownLesson for an id that is not there.
    """

    url: str

    @abstractmethod
    async def match(self, text: str, *, role: str, workspace: str, limit: int) -> list[Match]:
        """Lessons that are not retired, of this role, in this workspace or any, that share words with the text; best first."""

    @abstractmethod
    async def vote(self, votes: Sequence[Vote]) -> list[Lesson]:
        """One vote for each pair of execution and lesson: of two the worse one stays.

        The lessons as they are then; unknown ids are left out.
        """

    @abstractmethod
    async def add(self, candidates: Sequence[Candidate]) -> list[Lesson]:
        """New candidates, or confirmations of known lessons; a retired one stays retired. The lessons as they are then, in order."""

    @abstractmethod
    async def get(self, lesson_id: str) -> Lesson:
        """The lesson with this id, or with this unique beginning."""

    @abstractmethod
    async def all(self) -> list[Lesson]:
        """Every lesson, newest first."""

    @abstractmethod
    async def origins(self, lesson_id: str) -> list[Origin]:
        """Where it came from, oldest first."""

    @abstractmethod
    async def votes(self, lesson_id: str) -> list[Vote]:
        """What was said of it, oldest first."""

    @abstractmethod
    async def edit(self, lesson_id: str, *, text: str | None = None, confirm: bool = False) -> Lesson:
        """A person's word: another text, or that it holds, which makes it trusted even where it was retired."""

    @abstractmethod
    async def retire(self, lesson_id: str, reason: str) -> Lesson:
        """It is told no more."""

    @abstractmethod
    async def bring(self, lesson: Lesson, *, origins: Sequence[Origin], at_us: int) -> bool:
        """Takes in a lesson of another store as a candidate, without its votes; False where it is known already."""

    @abstractmethod
    async def close(self) -> None:
        """Gives files and connections back. Idempotent."""
