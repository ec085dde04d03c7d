"""Folds what guards have decided into the state of the loop (AG-11)."""

from __future__ import annotations

from treadle.core.events import GuardTripped, WorkspaceMeasured
from treadle.core.values import replace

from . import guards
from .states import LoopState


def workspace_measured(state: LoopState, event: WorkspaceMeasured) -> LoopState:
    """The agent has changed something after all, or it has not."""
    return replace(state, agent=replace(state.agent, guards=guards.measured(state, event.tree)))


def guard_tripped(state: LoopState, event: GuardTripped) -> LoopState:
    """The fire is counted. A directive goes to the model with its next prompt, to an actor without one with the feedback."""
    fires = dict(state.fires)
    fires[event.guard] = fires.get(event.guard, 0) + 1
    agent = replace(state.agent, guards=guards.tripped(state.agent.guards, event))
    state = replace(state, agent=agent, fires=tuple(fires.items()))
    if event.response != "directive":
        return state
    text = guards.directive(event, state.phase)
    if state.settings.act == "callback" and state.phase == "act":
        return replace(state, feedback=f"{state.feedback}\n\n{text}" if state.feedback else text)
    return replace(state, note=f"{state.note}\n\n{text}" if state.note else text)
