"""Processes that die at a named crash point, all inside this one: what they had in memory is lost, what they had committed is there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from treadle.app.runtime import Reopening, Runtime, resting
from treadle.core.errors import LedgerError, UnknownExecution
from treadle.kernel.states import LoopState
from treadle.ledger.inmemory import InMemoryLedger, MemoryStore
from treadle.ledger.lessons import SqliteLessons
from treadle.ports.clock import CrashPoints
from treadle.settings import Settings
from treadle.spec.definitions import Loop

Meanwhile = Callable[[Runtime, LoopState], Awaitable[None]]


class Died(BaseException):
    """The process is gone: nothing that is still unwound may reach the store."""


class DieAt(CrashPoints):
    """Dies where a point is reached for the n-th time. The store is closed first, so that no clean-up is committed."""

    def __init__(self, name: str, nth: int = 1) -> None:
        self._name, self._left = name, nth
        self.ledger: InMemoryLedger | None = None
        self.died = False

    def reach(self, name: str) -> None:
        if name != self._name or self.died:
            return
        self._left -= 1
        if not self._left:
            self.died = True
            assert self.ledger is not None
            self.ledger.closed = True
            raise Died(name)


class Lives:
    """One store, and as many processes after one another as it takes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shared = folder, MemoryStore()
        self.deaths = 0

    @asynccontextmanager
    async def life(self, points: DieAt | None = None) -> AsyncIterator[Runtime]:
        """A process."""
        ledger = InMemoryLedger(self.shared)
        points = points or DieAt("")
        points.ledger = ledger
        runtime = Runtime(ledger, Settings(environ={}, state_dir=self.folder / "state"), points=points)
        runtime.lessons = SqliteLessons(self.folder / "t.lessons")
        try:
            yield runtime
        finally:
            ledger.closed = True
            await runtime.lessons.close()

    async def run(
        self,
        make: Callable[[], Loop],
        name: str,
        *,
        die_at: tuple[str, int] | None = None,
        meanwhile: Meanwhile | None = None,
        task: str = "Do it.",
    ) -> LoopState:
        """Drives it to its end through one death and all waits; `meanwhile` answers what it waits with."""
        points = DieAt(*die_at) if die_at else DieAt("")
        for _ in range(20):
            try:
                async with self.life(points) as runtime:
                    with anyio.fail_after(30):
                        state = await self._once(runtime, make(), name, meanwhile, task)
            except (Died, LedgerError, BaseExceptionGroup):
                assert points.died
                self.deaths += 1
                points = DieAt("")
                continue
            if resting(state, Reopening()) and state.status != "waiting-input":
                return state
        raise AssertionError(f"it does not end: {state.status}, {state.code}")

    async def _once(self, runtime: Runtime, loop: Loop, name: str, meanwhile: Meanwhile | None, task: str) -> LoopState:
        try:
            state = await runtime.state(name)
        except UnknownExecution:
            state = LoopState()
        if state.status == "waiting-input" and meanwhile is not None:
            await meanwhile(runtime, state)
            state = await runtime.state(name)
        if not state.seq:
            session = await runtime.start(loop, task, execution_id=name)
        elif resting(state, Reopening()):
            return state
        else:
            session = await runtime.resume(name, loop, Reopening())
        await session.run()
        state = session.state
        await session.close()
        return state


def settled(state: LoopState) -> dict[str, Any]:
    """What is on the accounts, times left out: these differ from run to run."""
    return {
        "turns": (state.total.turns, state.act.turns),
        "usage": (state.total.usage, state.act.usage),
        "in_doubt": state.total.in_doubt,
    }
