"""Adding up what an execution has used: totals, act's share of them, and what is in doubt. Totals only grow (FR-08)."""

from __future__ import annotations

from treadle.core.usage import NO_USAGE, Usage
from treadle.core.values import replace

from .states import Counters, LoopState


def spend(
    state: LoopState, *, turns: int = 0, usage: Usage = NO_USAGE, us: int = 0, in_doubt: Usage = NO_USAGE
) -> LoopState:
    """The state with this on its totals, and on act's share where act is at work."""
    if not turns and not us and usage is NO_USAGE and in_doubt is NO_USAGE:
        return state
    total = _add(state.total, turns, usage, us, in_doubt)
    if state.phase != "act":
        return replace(state, total=total)
    return replace(state, total=total, act=_add(state.act, turns, usage, us, in_doubt))


def spend_in_act(state: LoopState, *, turns: int, usage: Usage, in_doubt: Usage) -> LoopState:
    """The same for what is act's, whatever is at work now."""
    return replace(
        state,
        total=_add(state.total, turns, usage, 0, in_doubt),
        act=_add(state.act, turns, usage, 0, in_doubt),
    )


def _add(to: Counters, turns: int, usage: Usage, us: int, in_doubt: Usage) -> Counters:
    return Counters(
        turns=to.turns + turns,
        usage=to.usage if usage is NO_USAGE else to.usage + usage,
        in_doubt=to.in_doubt if in_doubt is NO_USAGE else to.in_doubt + in_doubt,
        us=to.us + us,
    )


def settle_charges(state: LoopState) -> LoopState:
    """A callback that ended without saying what came of an announced charge leaves it in doubt."""
    if not state.charges:
        return state
    doubt = sum((charge.reserve for charge in state.charges), NO_USAGE)
    return replace(spend(state, in_doubt=doubt), charges=())


def unmetered_doubt(state: LoopState, usage: Usage) -> Usage:
    """A summary that came without usage may have cost as much as was reserved for it; one that never came cost nothing."""
    return replace(state.agent.reserve, requests=0) if usage.requests and not usage.tokens else NO_USAGE
