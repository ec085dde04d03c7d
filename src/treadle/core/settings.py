"""Limits and choices of a loop as data. Thresholds have their names, units and defaults here and nowhere else."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from .values import Value

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


class AgentSettings(Value, frozen=True, kw_only=True):
    """How one agent is driven."""

    max_turns_per_act: int = 60  # execution turns of one act; its first planning turn is free (AG-03)
    bands: tuple[int, ...] = (80, 90)  # per cent of the cap at which the model is told to wrap up (AG-04)
    on_invalid: Literal["stop_batch", "run_valid"] = "stop_batch"  # AG-15
    history: Literal["continue", "fresh"] = "continue"  # a later act goes on from the preserved leaf, or starts anew
    no_call_turns: int = 3  # turns without a tool call until the directive, and again until the stop (AG-11)
    recovery_attempts: int = 8  # batches in a row of which every call failed, until the loop stops
    map_tokens: int = 0  # budget of the map in the first prompt of a conversation; 0: none (AG-05)
    map_asked: bool = False  # somebody named that budget, so the map is made of any workspace
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
    priced: bool = True  # every model has a known price; a cost cap without is refused (TC-21)
    baseline: bool = True  # take a git tree of the workspace each round (AG-28)
