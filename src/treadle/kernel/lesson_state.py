"""What a loop remembers of lessons and gates. Bounded: lessons by their tokens, gates by their number."""

from __future__ import annotations

from treadle.core.lesson_events import LessonOutcome, RecalledLesson
from treadle.core.values import Value


class GateFailure(Value, frozen=True, kw_only=True):
    """A gate that failed, with the end of what it said."""

    gate: str
    iteration: int
    evidence: str


class GateRecovery(Value, frozen=True, kw_only=True, rename="camel"):
    """A gate failed, and the same gate passed later (FR-20)."""

    gate: str
    failed_iteration: int
    passed_iteration: int
    evidence: str
    changed: tuple[str, ...]  # paths that the act before the pass changed


class Memory(Value, frozen=True, kw_only=True):
    """Lessons recalled and their outcomes; gates that failed, and that passed again."""

    recalled: tuple[RecalledLesson, ...] | None = None  # None: not looked up yet
    outcomes: dict[str, LessonOutcome] = {}  # noqa: RUF012 - msgspec copies it
    evidence: dict[str, str] = {}  # noqa: RUF012 - of the worst outcome
    gated: int = -1  # iteration whose work the gates have seen
    failing: tuple[GateFailure, ...] = ()  # gates that failed and have not passed since
    recoveries: tuple[GateRecovery, ...] = ()
    voted: bool = False
    distilled: bool = False
