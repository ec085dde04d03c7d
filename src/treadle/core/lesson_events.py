"""What happens to lessons and gates in an execution: recalled, attributed, voted on, distilled; checked (FR-17 to FR-20)."""

from __future__ import annotations

from typing import Literal

from .values import Value

LessonOutcome = Literal["unobserved", "helpful", "neutral", "harmful"]
OUTCOMES: tuple[LessonOutcome, ...] = ("unobserved", "helpful", "neutral", "harmful")  # from best to worst (FR-18)
LessonMode = Literal["off", "recall", "on"]
"""off: none.  recall: earlier lessons are told and voted on.  on: accepted loops teach new ones besides."""
LessonSource = Literal["gate", "loop", "person"]


def worse(one: LessonOutcome, other: LessonOutcome) -> LessonOutcome:
    """The worse of two outcomes of the same lesson: it wins, whichever came last."""
    return one if OUTCOMES.index(one) >= OUTCOMES.index(other) else other


class RecalledLesson(Value, frozen=True, kw_only=True):
    """A lesson as it was recalled."""

    lesson_id: str
    text: str
    trusted: bool = False  # False: a candidate that nothing has confirmed yet


class LessonsRecalled(Value, frozen=True, kw_only=True):
    """What earlier loops taught, looked up once, before the first act (FR-17)."""

    lessons: tuple[RecalledLesson, ...]
    tokens: int = 0  # that they take in the prompt
    note: str = ""  # why there is none, where that is a fault of the store
    us: int = 0


class LessonsAttributed(Value, frozen=True, kw_only=True):
    """What an evaluator says that recalled lessons did in this round, and what shows it."""

    outcomes: dict[str, LessonOutcome]
    evidence: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it


class GateResult(Value, frozen=True, kw_only=True):
    """How one gate went."""

    gate: str
    passed: bool
    evidence: str  # exit code and the end of its output


class GatesChecked(Value, frozen=True, kw_only=True):
    """Every gate of the loop was run on this round's work; where one failed, nobody else is asked."""

    results: tuple[GateResult, ...]
    us: int


class LessonsVoted(Value, frozen=True, kw_only=True):
    """The loop's one vote on each recalled lesson is in the lesson store (FR-18)."""

    outcomes: dict[str, LessonOutcome]
    confirmed: tuple[str, ...] = ()  # lessons that are trusted since this vote
    retired: tuple[str, ...] = ()  # ... and that are told no more
    note: str = ""  # why nothing was written


class DistilledLesson(Value, frozen=True, kw_only=True):
    """A lesson that this loop taught: a new candidate, or one that was known and is confirmed by it."""

    lesson_id: str
    source: LessonSource
    text: str
    state: str


class LessonsDistilled(Value, frozen=True, kw_only=True):
    """What accepted work taught is in the lesson store; or what was buffered for that is discarded (FR-20)."""

    lessons: tuple[DistilledLesson, ...] = ()
    discarded: int = 0  # gate recoveries that nothing was made of
    note: str = ""


LessonEvent = LessonsRecalled | LessonsAttributed | GatesChecked | LessonsVoted | LessonsDistilled
LESSON_KINDS: dict[str, type[Value]] = {
    "lessons.recalled": LessonsRecalled,
    "lessons.attributed": LessonsAttributed,
    "gates.checked": GatesChecked,
    "lessons.voted": LessonsVoted,
    "lessons.distilled": LessonsDistilled,
}
