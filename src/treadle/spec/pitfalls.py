"""What of a loop file runs into the pitfall of a pattern: allowed, and worth a warning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from treadle.core.settings import Guards

from .loopfile import LoopFile

Warned = Iterator[tuple[str, str]]  # (path, what is wrong)

LATEST_BAND = 90  # per cent; a first word that comes later leaves next to nothing of a usual cap
LEAST_TURNS = 3  # below, there is no room for a word in time
FULLEST = 95  # per cent of the window; beyond, one turn may overflow it before it is compacted
_OF_A_TURN = re.compile(
    r"\{\{.*?\}\}|\$\([^)]*\)|\$\{\w+\}|%[YHMS]\b|\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d|\b(?:turn|round)\s+\d+\b",
    re.IGNORECASE,
)


def _entry(file: LoopFile) -> Warned:
    if not file.task.strip():
        yield "task", "says nothing, so the command line must: treadle run --loop FILE TASK."


def _turns(file: LoopFile) -> Warned:
    whole, act = file.control.max_turns, file.control.max_turns_per_act
    if whole is not None and act is not None and whole < act:
        yield "control.max_turns", f"{whole} over all rounds ends the first act before its own {act} turns."


def _wall(file: LoopFile) -> Warned:
    bands, cap = file.control.warn_at, file.control.max_turns_per_act
    if bands == ():
        yield "control.warn_at", "is empty, so the model is not told before its turns are used up."
    elif bands and min(bands) > LATEST_BAND:
        yield "control.warn_at", f"first speaks at {min(bands)} % of the turns, which leaves no time to wrap up."
    if cap is not None and cap < LEAST_TURNS:
        yield "control.max_turns_per_act", f"of {cap} leaves no turn for a word in time."


def _map(file: LoopFile) -> Warned:
    if file.perceive is None and not file.act.agent_command:
        yield "perceive", "is not there, so the model gets no map and finds its way by opening files."


def _plan(file: LoopFile) -> Warned:
    if file.control.plan and file.control.max_turns_per_act == 1:
        yield "control.max_turns_per_act", "of 1 is used up by planning, once a person has sent the plan back."


def _guards(file: LoopFile) -> Warned:
    usual = Guards()
    for name, value in file.control.guards.items():
        normal = getattr(usual, name.replace("-", "_"))
        if value == 0:
            yield f"control.guards.{name}", "is off: nothing else notices that but the limits."
        elif value < min(normal, 2):
            yield (
                f"control.guards.{name}",
                f"of {value} speaks at the first turn of thought or trouble (usual: {normal}).",
            )
        elif value > 10 * normal:
            yield f"control.guards.{name}", f"of {value} spends many turns before it speaks (usual: {normal})."


def _room(file: LoopFile) -> Warned:
    if file.foundation.compact in ("off", "micro"):
        yield (
            "foundation.compact",
            f"{file.foundation.compact}: a conversation that fills the window is never summarised.",
        )


def _window(file: LoopFile) -> Warned:
    at = file.foundation.compact_at
    if at is not None and at * 100 > FULLEST:
        yield "foundation.compact_at", f"of {at:g} leaves so little room that one turn may overflow it."


def _fixed(file: LoopFile) -> Warned:
    if found := _OF_A_TURN.search(file.foundation.instructions):
        said = found[0][:40]
        yield "foundation.instructions", f"say {said!r}: they are sent as they stand, as the part that stays the same."


def _batch(file: LoopFile) -> Warned:
    if file.act.on_invalid == "run_valid":
        yield "act.on_invalid", "run_valid: of a batch with an invalid call the others are carried out."


def _limits(file: LoopFile) -> Warned:
    control = file.control
    if (
        control.max_cost is None
        and control.max_time is None
        and control.max_turns is None
        and control.max_tokens is None
    ):
        yield "control", "has no limit on money, time, turns or tokens: only its rounds end it."


PITFALLS: dict[str, Callable[[LoopFile], Warned]] = {
    "agent-01": _entry,
    "agent-03": _turns,
    "agent-04": _wall,
    "agent-05": _map,
    "agent-07": _plan,
    "agent-11": _guards,
    "agent-12": _room,
    "agent-13": _window,
    "agent-14": _fixed,
    "agent-15": _batch,
    "agent-17": _limits,
}
"""By the pattern's id. A pattern without a row cannot be got wrong from a loop file."""
