"""The context window, as pure rules: how full it is, when a compaction is due and how deep, and when the breaker opens (AG-12, AG-13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from treadle.core import window_events as ev
from treadle.core.errors import InvalidStateTransition
from treadle.core.messages import Compacted, Depth, ModelResponded
from treadle.core.settings import AgentSettings
from treadle.core.tokens import CHARACTERS
from treadle.core.usage import Usage
from treadle.core.values import replace

from . import guards
from .actions import Action, Compact, IntendCompaction, Record
from .states import LoopState
from .window_state import WindowState

if TYPE_CHECKING:
    from .view import View

UNCALIBRATED = 1_150  # thousandths: a quarter of the characters is some 10 % short on code
CALIBRATION = (500, 4_000)  # what a provider's count may say of an estimate
MICRO_LEAVES = 10  # per cent of the window below the trigger that trimming must get to, to be enough
FULL_AT = 95  # per cent of the window from which on only the deepest will do
SHRUNK = 5  # per cent that a compaction must save to count as one; and it must get below the trigger
BREAKER = 3  # failures, or compactions that did not shrink, until it opens
PATIENCE = 5  # times that it opens, after which the shrinks that close it double no further
LOOK_BACK = 64  # messages among which the last count of the provider is looked for


def window_of(state: LoopState) -> WindowState:
    """Of the agent at work."""
    return state.window if state.phase == "act" else state.judge_window


def with_window(state: LoopState, window: WindowState) -> LoopState:
    """The state with this window for the agent at work."""
    return replace(state, window=window) if state.phase == "act" else replace(state, judge_window=window)


# ---- measuring


class Measured(NamedTuple):
    """Tokens of the next request. `by`: the provider's own count up to its last response, or an estimate of everything."""

    used: int
    by: Literal["usage", "estimate"]


def budget_of(facts: ev.PromptFacts, ceiling: int = 0) -> int:
    """Tokens that a request may have: the model's window without what is reserved for the answer."""
    room = max(facts.window - facts.reserved, facts.window // 4, 1)
    return min(room, ceiling * 9 // 10) if ceiling else room


def tokens(weight: int, calibration: int) -> int:
    """Quarter tokens as the provider would count them."""
    return -(-weight * (calibration or UNCALIBRATED) // (1_000 * CHARACTERS))


def measured(view: View, overhead: int, calibration: int) -> Measured:
    """How long the next request is. `overhead`: quarter tokens of the prompt and the tools. O(1) in the history."""
    since = 0
    for position in range(len(view.messages) - 1, max(view.known_from, len(view.messages) - LOOK_BACK) - 1, -1):
        message = view.messages[position]
        if isinstance(message, ModelResponded) and message.usage.input_tokens:
            return Measured(message.usage.tokens + tokens(since, calibration), "usage")
        since += view.weights[position]
    return Measured(tokens(view.weight + overhead, calibration), "estimate")


def calibrated(view: View, overhead: int, known: int) -> int:
    """What the provider counts per estimated token, in thousandths, by its last response here; `known` where it has none."""
    for position in range(len(view.messages) - 1, view.known_from - 1, -1):
        message = view.messages[position]
        if isinstance(message, ModelResponded) and message.usage.input_tokens:
            weight = sum(view.weights[:position]) + overhead
            found = message.usage.input_tokens * 1_000 * CHARACTERS // max(1, weight)
            return min(max(found, CALIBRATION[0]), CALIBRATION[1])
    return known or UNCALIBRATED


# ---- what is due


def due(
    window: WindowState, settings: AgentSettings, used: int, budget: int, micro_saves: Callable[[], int]
) -> Depth | None:
    """The compaction that the pressure asks for before the next request; None: send it. `micro_saves` in tokens."""
    if settings.compact == "off" or used * 100 < settings.compact_at * budget:
        return None
    over = used > budget
    if window.tried or window.last in ("auto", "full", "clamp"):
        return "clamp" if over and window.last != "clamp" else None
    saves = micro_saves()
    if saves > 0 and (used - saves) * 100 <= (settings.compact_at - MICRO_LEAVES) * budget:
        return "micro"
    if window.open or settings.compact == "micro":
        if saves * 100 >= used * SHRUNK:
            return "micro"
        return "clamp" if over else None
    if settings.compact == "auto" or (used * 100 < FULL_AT * budget and not window.futile):
        return "auto"
    return "full"


def opens_after_failure(window: WindowState, by: str) -> bool:
    """Whether one more failure opens the breaker. What a person asked for never does."""
    return by != "person" and not window.open and window.failures + 1 >= BREAKER


def shrinks_to_close(window: WindowState) -> int:
    """One the first time. What trimming saved says nothing of summaries: each vain trial after it doubles the wait."""
    return 2 ** (min(max(window.trips, 1), PATIENCE) - 1)


def boundary_action(state: LoopState) -> Action | None:
    """What the window wants before the next request is intended; None nearly always."""
    window = window_of(state)
    if window.outcome:
        return Record(
            event=_judged(window, state.settings.act_agent if state.phase == "act" else state.settings.evaluate_agent)
        )
    if guards.wants_compaction(state):  # a provider has refused what fits by our count
        return IntendCompaction(call=call_id(state), phase=state.phase, depth="clamp", by="overflow")
    if (wanted := window.wanted) is not None:
        return IntendCompaction(call=call_id(state), phase=state.phase, depth=wanted.depth, by=wanted.by)
    return None


def call_id(state: LoopState) -> str:
    """What the request for a summary is known by."""
    return f"r{state.round}.{state.phase}.t{state.agent.turn}.{state.agent.tries}.compact"


def compact_action(state: LoopState) -> Action:
    """The intended summary is asked for."""
    intended = window_of(state).intended
    if intended is None:
        raise AssertionError("compacting without an intent")
    return Compact(call=intended.call, phase=state.phase)


def _judged(window: WindowState, settings: AgentSettings) -> ev.CompactionJudged:
    """A window that is still as full as the trigger was not shrunk, however much was saved: each turn would pay again."""
    saved = window.watch - window.outcome
    shrunk = saved * 100 >= window.watch * SHRUNK
    if shrunk and window.prompt is not None:
        shrunk = window.outcome * 100 < settings.compact_at * budget_of(window.prompt, window.ceiling)
    breaker: Literal["", "opens", "closes"] = ""
    if shrunk and window.open:
        breaker = "closes" if window.shrinks + 1 >= shrinks_to_close(window) else ""
    elif not shrunk and not window.open and window.futile + 1 >= BREAKER:
        breaker = "opens"
    return ev.CompactionJudged(before=window.watch, after=window.outcome, saved=saved, shrunk=shrunk, breaker=breaker)


# ---- what happened


def responded(window: WindowState, usage: Usage) -> WindowState:
    """The request after a compaction has been counted. Costs nothing on other turns."""
    if not (window.watch or window.tried or window.last):
        return window
    outcome = (usage.input_tokens or window.expected) if window.watch else 0
    return replace(window, last="", tried=False, outcome=outcome)


def prompt_changed(window: WindowState, facts: ev.PromptFacts) -> WindowState:
    """Another prompt, tool list, model or window."""
    return replace(window, prompt=facts)


def reopened(window: WindowState) -> WindowState:
    """A person lets it go on: what failed may be tried again; the breaker stands."""
    return replace(window, tried=False) if window.tried else window


def requested(state: LoopState, event: ev.CompactionRequested) -> LoopState:
    """At the next boundary of the agent that has a history: act's, where a model acts."""
    if state.settings.act == "agent":
        return replace(state, window=replace(state.window, wanted=event))
    return replace(state, judge_window=replace(state.judge_window, wanted=event))


def intended(state: LoopState, event: ev.CompactionIntended) -> LoopState:
    """A summary is in flight; until its outcome it may have been charged."""
    agent = state.agent
    if agent.step not in ("ready", "back-off") or event.base != agent.leaf:
        raise InvalidStateTransition(f"agent step {agent.step}", event.call)
    agent = replace(agent, call=event.call, reserve=event.reserve, step="compacting")
    return with_window(replace(state, agent=agent), replace(window_of(state), intended=event))


def compacted(state: LoopState, event: Compacted, seq: int) -> LoopState:
    """The agent is on the new branch."""
    agent = state.agent
    if agent.step not in ("ready", "back-off", "compacting") or event.base != agent.leaf or event.call != agent.call:
        raise InvalidStateTransition(f"agent step {agent.step}", f"compacted from {event.base}")
    window = window_of(state)
    by_person = event.by == "person"
    window = replace(
        window,
        intended=None,
        wanted=None,
        last=event.depth,
        ceiling=event.before if event.by == "overflow" else window.ceiling,
        watch=window.watch or event.before,
        expected=event.after,
        outcome=0,
        calibration=event.calibration,
        failures=0 if event.call or by_person else window.failures,
        futile=0 if by_person else window.futile,
        open=window.open and not by_person,
        trips=0 if by_person else window.trips,
        compactions=window.compactions + 1,
        spent=window.spent + event.usage if event.call else window.spent,
    )
    agent = replace(agent, leaf=seq, call="", step="ready", tries=agent.tries + bool(event.call), retry_at_us=None)
    agent = replace(agent, guards=guards.compacted(agent.guards))
    return with_window(replace(state, agent=agent), window)


def failed(state: LoopState, event: ev.CompactionFailed) -> LoopState:
    """The history is as it was. What a person asked for in vain says nothing of the breaker."""
    agent = state.agent
    if agent.step not in ("ready", "back-off", "compacting") or (agent.call and event.call != agent.call):
        raise InvalidStateTransition(f"agent step {agent.step}", f"compaction {event.call} failed")
    window = window_of(state)
    counts = event.by != "person"
    window = replace(
        window,
        intended=None,
        wanted=None,
        tried=True,
        failures=window.failures + counts,
        open=window.open or event.opens,
        trips=window.trips + event.opens,
        shrinks=0 if event.opens else window.shrinks,
        spent=window.spent + event.usage if event.usage.requests else window.spent,
    )
    step = "ready" if agent.step == "compacting" else agent.step
    agent = replace(agent, call="", step=step, tries=agent.tries + bool(agent.call))
    agent = replace(agent, guards=guards.compacted(agent.guards))
    return with_window(replace(state, agent=agent), window)


def judged(state: LoopState, event: ev.CompactionJudged) -> LoopState:
    """Tokens saved are totalled. One that shrank forgives those that did not; a breaker that closes gives one summary its chance."""
    window = window_of(state)
    closes, opens = event.breaker == "closes", event.breaker == "opens"
    is_open = opens or (window.open and not closes)
    of_use = event.shrunk and not window.open and not window.failures  # a failed one is forgiven by a summary alone
    window = replace(
        window,
        watch=0,
        expected=0,
        outcome=0,
        saved=window.saved + event.saved,
        futile=0 if event.shrunk else window.futile + 1,
        failures=BREAKER - 1 if closes else window.failures,
        open=is_open,
        trips=0 if of_use else window.trips + opens,
        shrinks=0 if opens or closes else window.shrinks + (event.shrunk and is_open),
    )
    return with_window(state, window)
