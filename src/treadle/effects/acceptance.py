"""What an isolated scope does around an acceptance: the conflict check before it, merging after it (FR-16)."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from treadle.core.events import Judged
from treadle.core.scope_events import ScopeClosed
from treadle.core.spoken import one_line
from treadle.core.values import replace
from treadle.kernel.scopes import conflict_feedback, to_check
from treadle.kernel.states import LoopState
from treadle.ports.clock import CrashPoints
from treadle.ports.scope import Isolated

from .host import Host

SUBJECT = 72  # characters of a commit's first line
T = TypeVar("T")


class ScopeEffect:
    """The scope of one loop, where it has one."""

    def __init__(self, isolated: Isolated | None, points: CrashPoints) -> None:
        self._isolated, self._points = isolated, points

    async def concluded(self, event: T, host: Host) -> T | Judged:
        """The verdict; a rejection in its stead where the accepted work is in conflict. ScopeError."""
        state = host.state
        if not isinstance(event, Judged) or not event.accept or not to_check(state):
            return event
        isolated = self._own()
        assert state.scope is not None
        self._points.reach("before-conflict-check")
        message, settles = _message(host.execution_id, state), bool(state.scope.conflicts)
        commit = await isolated.commit(state.first_baseline, _head(state), message=message, settles=settles)
        found = await isolated.conflicts(commit, state.scope.conflicts)
        self._points.reach("after-conflict-check")
        if not found.paths:
            return replace(event, commit=commit)
        return replace(
            event,
            accept=False,
            feedback=conflict_feedback(state, found.paths),
            commit=commit,
            conflicts=found.paths,
            onto=found.onto,
        )

    async def bring_in(self, onto: str) -> None:
        """The other side of a conflict, before the round that settles it. ScopeError."""
        self._points.reach("before-bring-in")
        await self._own().bring_in(onto)
        self._points.reach("after-bring-in")

    async def close(self, state: LoopState) -> ScopeClosed:
        """Accepted work leaves the scope."""
        assert state.scope is not None
        self._points.reach("before-close")
        closed = await self._own().close(state.scope.commit, message=_merging(state))
        self._points.reach("after-close")
        return ScopeClosed(how=closed.how, commit=state.scope.commit, note=closed.note)

    def _own(self) -> Isolated:
        if self._isolated is None:
            raise AssertionError("the loop is isolated, and there is no scope")
        return self._isolated


def _head(state: LoopState) -> str:
    receipt: dict[str, Any] | None = msgspec.json.decode(state.last_receipt_json or "null")
    return str(receipt["head"]) if receipt else ""


def _message(execution_id: str, state: LoopState) -> str:
    return f"{one_line(state.task, SUBJECT)}\n\nBy treadle, execution {execution_id}, round {state.round}."


def _merging(state: LoopState) -> str:
    assert state.scope is not None
    isolation = state.scope.isolation
    return f"Merge {isolation.branch} into {isolation.target}\n\n{one_line(state.task, SUBJECT)}"
