"""Limits and choices of a loop as data. Thresholds have their names, units and defaults here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from .errors import ConfigurationError
from .lesson_events import LessonMode
from .values import Value, replace

MOST = 100_000
ActKind = Literal["agent", "callback"]
EvaluateKind = Literal["agent", "callback", "person"]


class Policy(Value, frozen=True, kw_only=True):
    """Limits of one actor over all its invocations (FR-09). Each trips at >= and is asked before the next intent."""

    max_turns: int | None = None
    max_cost_usd: Decimal | None = None
    max_duration_us: int | None = None


class Limits(Value, frozen=True, kw_only=True):
    """Limits of the whole loop, act and evaluate together."""

    max_turns: int | None = None
    max_cost_usd: Decimal | None = None
    max_duration_us: int | None = None
    max_tokens: int | None = None


MAP_TOKENS = 4_000  # budget of the map of the workspace where nobody names one
MAP_FEWEST, MAP_MOST = 20, 50_000  # files of a workspace that gets a map unasked
MAP_SECONDS = 30.0  # longest that act waits for its map
MAP_WINDOW_SHARE = 8  # an unasked map takes at most this part of the model's window
GuardName = Literal["no-call", "repeat", "oscillation", "read-only", "stagnation", "same-tree", "oversized", "recovery"]


class Guards(Value, frozen=True, kw_only=True):
    """When a guard trips (AG-11): at its threshold it says so once, after as much again it stops. 0: off."""

    no_call: int = 3  # turns in a row without a tool call
    repeat: int = 4  # times that the same call gave the same result
    oscillation: int = 2  # passes through the same few turns: A-B-A-B is two
    read_only: int = 20  # turns of reads alone, on a task that must change something
    stagnation: int = 20  # turns with a call that may change something, and nothing changed
    same_tree: int = 3  # rounds that leave the workspace as a round before them left it
    oversized: int = 3  # requests in a row that the provider refuses as too long: then one hard compaction
    recovery: int = 8  # batches in a row of which every call failed: a stop without a directive


NEVER_OFF: frozenset[GuardName] = frozenset({"no-call", "recovery"})  # nothing else would end such a loop but its caps


def guard_names() -> tuple[str, ...]:
    """The guards by the names that people type."""
    return tuple(name.replace("_", "-") for name in Guards.__struct_fields__)


def with_guards(base: Guards, changes: Mapping[str, object]) -> Guards:
    """`base` with other thresholds, by name. ConfigurationError for an unknown name or a threshold that it cannot have."""
    chosen: dict[str, int] = {}
    for name, value in changes.items():
        if name not in guard_names():
            raise ConfigurationError(f"There is no guard {name!r}. Guards: {', '.join(guard_names())}.")
        least = 1 if name in NEVER_OFF else 0
        if type(value) is not int or not least <= value <= MOST:
            off = "" if least else ", 0 for off"
            raise ConfigurationError(
                f"The guard {name} takes a whole number from {least} to {MOST:,}{off}, not {value!r}."
            )
        chosen[name.replace("-", "_")] = value
    return replace(base, **chosen) if chosen else base


class AgentSettings(Value, frozen=True, kw_only=True):
    """How one agent is driven."""

    max_turns_per_act: int = 60  # execution turns of one act; its first planning turn is free (AG-03)
    bands: tuple[int, ...] = (80, 90)  # per cent of the cap at which the model is told to wrap up (AG-04)
    on_invalid: Literal["stop_batch", "run_valid"] = "stop_batch"  # AG-15
    history: Literal["continue", "fresh"] = "continue"  # a later act goes on from the preserved leaf, or starts anew
    map_tokens: int = 0  # budget of the map in the first prompt of a conversation; 0: none (AG-05)
    map_asked: bool = False  # somebody named that budget, so the map is made of any workspace
    ladder: tuple[str, ...] = ()  # names of its models, from the first to the last resort (FR-21); empty: one only
    escalate_after: int = 2  # rejections in a row until the next model; 0: never for that
    compact: Literal["off", "micro", "auto", "full"] = "full"  # how deep a compaction goes at most (AG-12)
    compact_at: int = 80  # per cent of the window that make one due (AG-13)
    provider_attempts: int = 6  # requests for one turn that fail for a passing reason, until the loop stops


class LoopSettings(Value, frozen=True, kw_only=True):
    """What the machine must know of a loop. What the effects need besides stays with them."""

    loop_id: str
    role_key: str
    max_rounds: int = 10
    act: ActKind = "agent"
    evaluate: EvaluateKind = "callback"
    act_agent: AgentSettings = AgentSettings()
    evaluate_agent: AgentSettings = AgentSettings()
    act_policy: Policy = Policy()
    evaluate_policy: Policy = Policy()
    limits: Limits = Limits()
    guards: Guards = Guards()
    must_change: bool = False  # whether the task must change something: decided once, at the start (AG-09)
    edit_required: bool = False  # ... and somebody has said so: without a change nothing is accepted
    priced: bool = True  # every model has a known price; a cost cap without is refused (TC-21)
    ceiling: tuple[str, ...] | None = None  # capabilities that act may be granted; None: everything (FR-12)
    granted: tuple[str, ...] = ()  # ... and those that it has from the start
    plan_mode: bool = False  # act only looks until a person has approved its plan (AG-07)
    lessons: LessonMode = "off"  # FR-17
    gates: tuple[str, ...] = ()  # names of the checks that each round must pass before it is evaluated (FR-20)
    baseline: bool = True  # take a git tree of the workspace each round (AG-28)
