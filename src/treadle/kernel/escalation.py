"""The ladder of models (FR-21): on repeated rejection, a guard's stop or a lasting provider failure to the next, and never back.

Accounts, transcript, leases and skills stay as they are; what one model's provider alone understands is left out of what the next is sent.
"""

from __future__ import annotations

from treadle.core.events import Escalated
from treadle.core.settings import AgentSettings
from treadle.core.values import replace

from .guards import anew
from .plan_fold import fold_reopened
from .states import LoopState


def next_rung(state: LoopState, reason: str) -> Escalated | None:
    """The step to the next model of the actor at work; None where it is on its last."""
    settings, rung = _settings(state), rung_of(state)
    if rung + 1 >= len(settings.ladder):
        return None
    return Escalated(rung=rung + 1, model=settings.ladder[rung + 1], reason=reason)


def after_rejections(state: LoopState) -> Escalated | None:
    """At the start of a round: the step that so many rejections lead to."""
    settings = state.settings.act_agent
    if not settings.ladder or state.rejections < settings.escalate_after or not settings.escalate_after:
        return None
    return next_rung(state, f"{state.rejections} rejections")


def rung_of(state: LoopState) -> int:
    """The rung that the actor at work stands on."""
    return state.rung if state.phase == "act" else state.evaluate_rung


def escalated(state: LoopState, event: Escalated) -> LoopState:
    """The actor goes on with another model, on the same branch; what guards held against the last one is forgotten."""
    old = state.agent
    agent = replace(
        old,
        guards=anew(old.guards),
        failures=0,
        failure="",
        retry_at_us=None,
        step="ready" if old.step == "back-off" else old.step,
    )
    if state.phase == "act":
        return replace(fold_reopened(state), agent=agent, rung=event.rung, rejections=0)
    return replace(state, agent=agent, evaluate_rung=event.rung)


def _settings(state: LoopState) -> AgentSettings:
    return state.settings.act_agent if state.phase == "act" else state.settings.evaluate_agent
