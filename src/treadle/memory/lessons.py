"""What is made of lessons: which of those that fit are told within a budget, and how one is worded from what a loop went through.

Only an accepted loop teaches, and only by what its evaluator, its gates and its final output said: no tool's output becomes a lesson
by itself (SE-02).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any, cast

import msgspec

from treadle.core.lesson_events import LessonSource, RecalledLesson
from treadle.core.tokens import estimate
from treadle.kernel.lesson_state import GateRecovery
from treadle.kernel.lessons import HEAD, home, listed
from treadle.kernel.states import LoopState
from treadle.kernel.track_record import worth
from treadle.ports.lessons import Candidate, Match

RECALL_TOKENS = 600  # that recalled lessons may take in a prompt
RECALL_MOST = 8
MATCHES = 24  # that are looked at for these
QUERY_CHARACTERS = 4_000  # of a task that are looked for
LONGEST = 600  # characters of a lesson
_PART = 240  # ... and of each thing that it quotes
_NAMED = 5  # paths that it names
_TELLING = re.compile(r"(?i)\b(?:error|errors|failed|failure|assert\w*|exception|denied|missing|cannot|not found)\b")


def chosen(matches: Iterable[Match], *, tokens: int = RECALL_TOKENS, most: int = RECALL_MOST) -> list[RecalledLesson]:
    """The best by relevance and track record that fit into so many tokens, the heading included."""
    ranked = sorted(matches, key=_score, reverse=True)
    found: list[RecalledLesson] = []
    for match in ranked:
        lesson = match.lesson
        one = RecalledLesson(lesson_id=lesson.id, text=lesson.text, trusted=lesson.standing == "trusted")
        if len(found) < most and told_tokens([*found, one]) <= tokens:
            found.append(one)
    return found


def told_tokens(lessons: Sequence[RecalledLesson]) -> int:
    """What they take in a prompt, estimated."""
    return estimate(f"{HEAD}\n{listed(tuple(lessons))}") if lessons else 0


def _score(match: Match) -> float:
    lesson = match.lesson
    trusted = lesson.standing == "trusted"
    return match.relevance * worth(
        helpful=lesson.helpful, neutral=lesson.neutral, harmful=lesson.harmful, trusted=trusted
    )


# ---- wording


def one_line(text: str, most: int) -> str:
    """Without line breaks and control characters, and not longer than that."""
    line = " ".join("".join(c if c.isprintable() or c.isspace() else " " for c in text).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def from_gate(recovery: GateRecovery, state: LoopState) -> tuple[str, str]:
    """(text, what it is about) of a gate that failed and passed later."""
    sign = telling_line(recovery.evidence)
    changed = f" until {_paths(recovery.changed)} had been changed" if recovery.changed else ""
    text = f'The gate "{recovery.gate}" failed ({one_line(sign, _PART)}){changed}.{_accepted(state)}'
    return one_line(text, LONGEST), f"{recovery.gate}: {sign}"


def from_loop(feedback: str, state: LoopState) -> tuple[str, str]:
    """(text, what it is about) of work that was rejected and then accepted."""
    sign = telling_line(feedback)
    return one_line(f"Work was rejected: {one_line(sign, _PART)}.{_accepted(state)}", LONGEST), sign


def _accepted(state: LoopState) -> str:
    """What was accepted in the end: act's own words, and where it worked."""
    output: object = msgspec.json.decode(state.last_output_json or "null")
    if isinstance(output, dict) and {"exit_code", "output"} <= (told := cast("dict[str, Any]", output)).keys():
        lines = str(told["output"]).splitlines()  # of a command that acts: what it said last
        output = next((line for line in reversed(lines) if line.strip()), None)
    said = output if isinstance(output, str) else "" if output is None else (state.last_output_json or "")
    words = f" Accepted after: {one_line(said, _PART)}" if said else ""
    return f"{words} (files: {_paths(state.last_changed)})" if state.last_changed else words


def _paths(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(paths[:_NAMED])}{more}"


def telling_line(text: str) -> str:
    """The line that says what went wrong, or else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if _TELLING.search(line)), lines[-1] if lines else "")


def candidate(
    text: str,
    about: str,
    state: LoopState,
    *,
    source: LessonSource,
    gate: str,
    at_us: int,
    redact: Callable[[str], str],
) -> Candidate:
    """The lesson without secrets. Its id is what it is about, so that the same lesson learnt again confirms the first."""
    role, workspace = state.settings.role_key, home(state)
    return Candidate(
        id=lesson_id(role, workspace, source, redact(about)),
        text=one_line(redact(text), LONGEST),
        role=role,
        workspace=workspace,
        source=source,
        task=one_line(redact(state.task), QUERY_CHARACTERS),
        step_exec_id=state.step_exec_id,
        gate=gate,
        round=state.round,
        at_us=at_us,
    )


def lesson_id(role: str, workspace: str, source: str, about: str) -> str:
    """Digits and addresses do not tell two lessons apart."""
    plain = re.sub(r"\b0x[0-9a-f]+\b|\d+", "#", " ".join(about.lower().split()))
    return f"L{blake2b(chr(0).join((role, workspace, source, plain)).encode(), digest_size=5).hexdigest()}"
