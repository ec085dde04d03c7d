"""The isolated scope of a loop as the machine sees it: when it is checked for conflicts, and when it is closed (FR-16)."""

from __future__ import annotations

from treadle.core.events import Judged, LoopStarted
from treadle.core.scope_events import ScopeClosed, ScopeRestored
from treadle.core.values import replace

from .actions import Action, CloseScope, Conclude, Record
from .states import LoopState, ScopeState

WRITES = ("fs.write ", "fs.delete ")
RESTORED = (
    "The workspace had been deleted while nothing ran. It was made anew as it was when this round's act began, or ended:"
    " look before you rely on what you did since."
)


def armed(state: LoopState) -> bool | None:
    """Whether merging is to be checked: from the first write in the scope on; None without a scope."""
    if state.scope is None:
        return None
    return any(effect.startswith(WRITES) for effect in state.carried.effects)


def judged(state: LoopState, event: Judged) -> Action:
    """A verdict; an acceptance of isolated work is looked at before it is recorded."""
    if event.accept and to_check(state):
        return Conclude(feedback=event.feedback)
    return Record(event=event)


def to_check(state: LoopState) -> bool:
    """Whether an acceptance has to wait for the conflict check."""
    return state.scope is not None and not state.scope.closed and armed(state) is True


def due(state: LoopState) -> Action | None:
    """Accepted work leaves its scope before the loop ends."""
    return CloseScope() if state.accepted and state.scope is not None and not state.scope.closed else None


def to_bring_in(state: LoopState) -> str:
    """The commit that the next round has to come to terms with."""
    return state.scope.onto if state.scope is not None else ""


def conflict_feedback(state: LoopState, paths: tuple[str, ...]) -> str:
    """What the next act, or the person who reads of the end, is told."""
    assert state.scope is not None
    isolation, named = state.scope.isolation, ", ".join(paths)
    if state.round >= state.settings.max_rounds:
        return (
            f"The work was accepted, but it is in conflict with {isolation.target} in: {named}."
            f" It is kept on the branch {isolation.branch}: treadle scope merge, once that is settled."
        )
    return (
        f"The work was accepted, but {isolation.target} has changed meanwhile, and both are in conflict in: {named}."
        f" Those changes are in the workspace now. Where both sides differ, conflict markers stand in these files:"
        " keep what both want, and remove the markers."
    )


# ---- folding


def opened(event: LoopStarted) -> ScopeState | None:
    """The scope of a new loop."""
    return None if event.scope is None else ScopeState(isolation=event.scope)


def concluded(scope: ScopeState | None, event: Judged) -> ScopeState | None:
    """After a verdict."""
    if scope is None or not (event.commit or event.conflicts):
        return scope
    return replace(scope, commit=event.commit, onto=event.onto, conflicts=event.conflicts or scope.conflicts)


def brought_in(scope: ScopeState | None) -> ScopeState | None:
    """A new round has begun."""
    return replace(scope, onto="") if scope is not None and scope.onto else scope


def closed(state: LoopState, event: ScopeClosed) -> LoopState:
    """The scope has been left."""
    if state.scope is None:
        return state
    return replace(state, scope=replace(state.scope, closed=event.how, note=event.note))


def restored(state: LoopState, _: ScopeRestored) -> LoopState:
    """The model is told."""
    return replace(state, note=f"{state.note}\n\n{RESTORED}" if state.note else RESTORED)
