"""Folding what lets a loop that had stopped go on: raised limits, another try, a changed definition."""

from __future__ import annotations

from treadle.core.errors import InvalidStateTransition
from treadle.core.events import Adopted, Extended, Pinned, Reopened
from treadle.core.settings import with_guards
from treadle.core.values import replace

from . import guards, lessons, plan_fold, window
from .plan import gated
from .states import LoopState


def extended(state: LoopState, e: Extended) -> LoopState:
    """Limits were raised; a loop that one of them had stopped goes on."""
    settings = state.settings
    limits, policy = settings.limits, settings.act_policy
    if e.max_turns is not None:
        if limits.max_turns is None or policy.max_turns is not None:
            policy = replace(policy, max_turns=e.max_turns)
        if limits.max_turns is not None:
            limits = replace(limits, max_turns=max(limits.max_turns, e.max_turns))
    for name in ("max_cost_usd", "max_duration_us", "max_tokens"):
        if (value := getattr(e, name)) is not None:
            limits = replace(limits, **{name: value})
    settings = replace(
        settings,
        limits=limits,
        act_policy=policy,
        max_rounds=settings.max_rounds if e.max_rounds is None else e.max_rounds,
        priced=settings.priced if e.priced is None else e.priced,
        guards=with_guards(settings.guards, e.guards),
    )
    chosen = {"bands": e.warn_at, "compact_at": e.compact_at}
    if agent := {name: value for name, value in chosen.items() if value is not None}:
        settings = replace(settings, act_agent=replace(settings.act_agent, **agent))
    state = replace(state, settings=settings)
    return _reopened(state) if state.status == "stopped" else state


def pinned(state: LoopState, _: Pinned) -> LoopState:
    """A mark in the log; the loop does not know of it."""
    return state


def reopened(state: LoopState, _: Reopened) -> LoopState:
    """A failed or stopped loop is tried again where it was."""
    if state.status not in ("failed", "stopped"):
        raise InvalidStateTransition(state.status, "reopened")
    return _reopened(state)


def _reopened(state: LoopState) -> LoopState:
    """A new agent run with the old counters: a failed one has no exit (AG-03)."""
    old = state.agent
    agent = replace(old, guards=guards.anew(old.guards), failures=0, failure="", retry_at_us=None, band=0)
    if old.state == "failed":
        agent = replace(agent, state="planning" if gated(state) else "executing", reason="")
    if old.step == "back-off":
        agent = replace(agent, step="ready")
    state = plan_fold.fold_reopened(replace(state, memory=lessons.reopened(state.memory)))
    state = replace(state, window=window.reopened(state.window), judge_window=window.reopened(state.judge_window))
    return replace(state, agent=agent, status="running", code="", outcome="", evidence="", advice="", unmetered=0)


def adopted(state: LoopState, e: Adopted) -> LoopState:
    """Another definition is taken on; the limits stay."""
    workspace = e.workspace or state.workspace
    kept = state.settings  # a person may have raised limits meanwhile; a definition is adopted, its limits are not
    settings = replace(
        e.settings,
        max_rounds=kept.max_rounds,
        limits=kept.limits,
        act_policy=kept.act_policy,
        evaluate_policy=kept.evaluate_policy,
        guards=kept.guards,
        must_change=kept.must_change,
        edit_required=kept.edit_required,
        priced=kept.priced,
    )
    return replace(state, settings=settings, fingerprint=e.fingerprint, definition=e.definition, workspace=workspace)
