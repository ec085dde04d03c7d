"""Doing one thing and then holding: how far a step reaches, told from where it began. Pure, and asked only while a step is on its way."""

from __future__ import annotations

from typing import Literal, NamedTuple

from .loop import at_boundary
from .states import LoopState

Unit = Literal["turn", "round"]


class Hold(NamedTuple):
    """Where a step began, and how much is to be done before the loop is held."""

    unit: Unit
    turns: int
    round: int
    phase: str


def begin(state: LoopState, unit: Unit) -> Hold:
    """A step from here. A turn of which only calls are left to be run counts as the one that is asked for."""
    half_done = state.agent.step == "tools"
    return Hold(unit, state.total.turns - half_done, state.round, state.phase)


def reached(hold: Hold, state: LoopState) -> bool:
    """Whether the loop is to be held now: at the next boundary after one turn, or one check; or after the round's verdict."""
    if not at_boundary(state):
        return False
    if hold.unit == "round":
        return state.round != hold.round
    return (state.total.turns, state.round, state.phase) != (hold.turns, hold.round, hold.phase)
