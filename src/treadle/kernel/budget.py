"""Which limit is reached. Each trips at >= and is asked before the next intent; what is in doubt counts as spent (FR-09, LG-04)."""

from __future__ import annotations

from treadle.core.settings import Limits, Policy
from treadle.core.usage import NO_USAGE, Usage

from .states import Counters, LoopState


def reached(state: LoopState) -> str:
    """What limit has been reached, in words; empty where none has."""
    settings = state.settings
    if text := _over("total", settings.limits, state.total):
        return text
    cap = settings.limits.max_tokens
    if cap is not None and (spent := state.total.usage.tokens + state.total.in_doubt.tokens) >= cap:
        return f"total max_tokens {cap} reached ({spent})"
    if state.phase == "act":
        return _over("act policy", settings.act_policy, state.act)
    return _over("evaluate policy", settings.evaluate_policy, evaluate_counters(state))


def evaluate_counters(state: LoopState) -> Counters:
    """What evaluate alone has used: the totals without act's share."""
    total, act = state.total, state.act
    return Counters(
        turns=total.turns - act.turns,
        usage=total.usage - act.usage,
        in_doubt=total.in_doubt - act.in_doubt,
        us=total.us - act.us,
    )


def possibly_charged(state: LoopState) -> Usage:
    """What is in doubt, and what would be if the owner died now: intents without an outcome (LG-04)."""
    in_flight = sum((charge.reserve for charge in state.charges), state.agent.reserve if state.agent.call else NO_USAGE)
    if state.child is not None and state.child.running:
        in_flight += state.child.reserve
    return state.total.in_doubt + in_flight


def has_cost_cap(state: LoopState) -> bool:
    """Whether a price must be known."""
    settings = state.settings
    return (
        settings.limits.max_cost_usd is not None
        or settings.act_policy.max_cost_usd is not None
        or settings.evaluate_policy.max_cost_usd is not None
    )


def needs_usage(state: LoopState) -> bool:
    """Whether a response without usage cannot be gone on from."""
    return has_cost_cap(state) or state.settings.limits.max_tokens is not None


def remaining_us(state: LoopState) -> int | None:
    """Active time left for the next effect; None where no limit is set."""
    settings = state.settings
    total = settings.limits.max_duration_us
    own = (settings.act_policy if state.phase == "act" else settings.evaluate_policy).max_duration_us
    if total is None and own is None:
        return None
    left: list[int] = []
    if total is not None:
        left.append(total - state.total.us)
    if own is not None:
        left.append(own - (state.act.us if state.phase == "act" else evaluate_counters(state).us))
    return max(0, min(left))


def turns_left(state: LoopState) -> tuple[int, int]:
    """(execution turns left in this invocation of the agent, the cap that they are left of)."""
    agent, settings = state.agent, state.settings
    own = settings.act_agent if state.phase == "act" else settings.evaluate_agent
    policy = settings.act_policy if state.phase == "act" else settings.evaluate_policy
    used = state.act.turns if state.phase == "act" else evaluate_counters(state).turns
    options = [(own.max_turns_per_act - agent.iteration, own.max_turns_per_act)]
    for cap, spent in ((policy.max_turns, used), (settings.limits.max_turns, state.total.turns)):
        if cap is not None:
            options.append((cap - spent, cap))
    return min(options)


def _over(whose: str, limits: Limits | Policy, used: Counters) -> str:
    if limits.max_turns is not None and used.turns >= limits.max_turns:
        return f"{whose} max_turns {limits.max_turns} reached ({used.turns})"
    if limits.max_cost_usd is not None and (
        (cost := used.usage.cost_usd + used.in_doubt.cost_usd) >= limits.max_cost_usd
    ):
        doubt = f", of which ${used.in_doubt.cost_usd} in doubt" if used.in_doubt.cost_usd else ""
        return f"{whose} max_cost ${limits.max_cost_usd} reached (${cost}{doubt})"
    if limits.max_duration_us is not None and used.us >= limits.max_duration_us:
        return f"{whose} max_time {limits.max_duration_us / 1e6:g} s reached ({used.us / 1e6:.1f} s)"
    return ""
