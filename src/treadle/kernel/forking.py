"""How a loop becomes a fork: it is itself from here on, in a workspace of its own where it has one (FR-22)."""

from __future__ import annotations

from treadle.core.fork_events import Forked
from treadle.core.values import replace

from .children import forked_away
from .scopes import RESTORED
from .states import LoopState, ScopeState


def forked(state: LoopState, event: Forked) -> LoopState:
    """Counters, leases, plan and conversation stay. What ran for the source is not ours to stop."""
    state = forked_away(state)
    state = replace(state, step_exec_id=event.execution_id, forked=f"{event.source}@{event.at}", processes=())
    if event.scope is None:
        return replace(state, scope=None)
    note = f"{state.note}\n\n{RESTORED}" if state.note else RESTORED
    return replace(state, workspace=event.workspace, scope=ScopeState(isolation=event.scope), note=note)
