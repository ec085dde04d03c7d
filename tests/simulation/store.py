"""The ledger of one process: the one in memory, behind a connection that is slow, breaks, and does not say whether a commit landed."""

from __future__ import annotations

import contextvars
from collections import deque
from typing import Any

import anyio

from treadle.core.errors import LedgerError, LedgerFull, LedgerLocked, LedgerUnavailable
from treadle.ledger.inmemory import InMemoryLedger, MemoryStore
from treadle.ports.clock import CrashPoints
from treadle.ports.ledger import Batch, Done, Ownership

from .machine import LEASE_S, RENEW_S, STALE_S, Process
from .world import World

PATIENCE_S = 10.0
AGAIN_S = 0.2


class SimulatedLedger(InMemoryLedger):
    """Owners live by a lease of 3 s, as on Postgres. What was sent may land although its process is dead, stopped or cut off by then."""

    def __init__(self, store: MemoryStore, process: Process, world: World, points: CrashPoints) -> None:
        super().__init__(store)
        self.url = "postgresql://simulated/store"
        self.process, self.world, self.points = process, world, points
        self._queue: deque[tuple[Batch, Done, contextvars.Context, float]] = deque()
        self._busy = False
        self._sure: dict[tuple[int, int], int] = {}  # as on Postgres

    # ---- writing

    def submit(self, batch: Batch, done: Done) -> None:
        context = contextvars.copy_context()
        if self.process.buried:
            self.process.loop.call_soon(done, _away(), context=context)
            return
        self.points.reach("ledger.before-commit")
        self._queue.append((batch, done, context, self.process.loop.time() + PATIENCE_S))
        if not self._busy:
            self._send()

    def _send(self) -> None:
        self._busy = True
        slow = 2.0 if self.world.hit("slow commit") else 0.01
        self.process.loop.outside(self.world.span(slow), self._arrived)

    def _arrived(self) -> None:
        """The server's side: part of no process."""
        process, world = self.process, self.world
        if process.dead and world.likely(0.5):
            self._queue.clear()  # it never left
            return
        batch, _, _, deadline = self._queue[0]
        if process.cut or world.down:
            if process.loop.time() < deadline:
                process.loop.outside(AGAIN_S, self._arrived)
                return
            error: LedgerError | None = _away()
        else:
            error = self._outcome(batch)
        self._answer(error)
        if self._queue:
            self._send()
        else:
            self._busy = False

    def _outcome(self, batch: Batch) -> LedgerError | None:
        world = self.world
        if world.full and not world.calm:
            return LedgerFull()
        if world.hit("commit refused"):
            return LedgerLocked()
        error = self._land(batch)
        if error is None and world.hit("answer to a commit lost"):
            return _away()
        return error

    def _land(self, batch: Batch) -> LedgerError | None:
        try:
            execution = self._fenced(batch.ownership)
            self._check(execution, batch)
            self._write(execution, batch)
        except LedgerError as refusal:
            return refusal
        self.world.committed(self.process, batch)
        return None

    def _answer(self, error: LedgerError | None) -> None:
        batch, done, context, _ = self._queue.popleft()
        if error is not None:
            own = batch.ownership
            self._poisoned.add((own.handle, own.epoch))
        self.process.loop.call_soon(done, error, context=context)

    def commit_now(self, batch: Batch, done: Done) -> bool:
        """As a file would: at once, where nothing waits."""
        world, process = self.world, self.process
        if process.buried or process.cut or world.down or self._queue or not world.likely(world.rates["in place"]):
            return False
        self.points.reach("ledger.before-commit")
        error = self._outcome(batch)
        self.points.reach("ledger.after-commit")
        if error is not None:
            self._poisoned.add((batch.ownership.handle, batch.ownership.epoch))
        done(error)
        return True

    # ---- owners

    def _sees_owner(self, execution: Any) -> bool:
        holder = execution.holder
        if holder is None or holder is self:
            return super()._sees_owner(execution)
        return not holder.closed and self.process.loop.time() - holder.process.renewed() < LEASE_S

    def lapsed(self, ownership: Ownership) -> bool:
        stale = self.process.loop.time() - self.process.renewed() > STALE_S
        return stale or self._sure.get((ownership.handle, ownership.epoch)) != self.process.gaps

    def _know(self, own: Ownership) -> None:
        self._sure[own.handle, own.epoch] = self.process.gaps

    async def confirm(self, ownership: Ownership) -> None:
        await self._trip()
        self.process.renew()
        self._fenced(ownership)
        self._know(ownership)

    async def create(self, execution_id: str, *, kind: str, owner: str, at_us: int) -> Ownership:
        await self._trip()
        own = await super().create(execution_id, kind=kind, owner=self.process.name, at_us=at_us)
        self.world.acquired(self.process, execution_id, own.epoch, None)
        self._know(own)
        await self._told(own)
        return own

    async def acquire(self, execution_id: str, *, owner: str, force: bool = False) -> Ownership:
        await self._trip()
        holder = self._execution(execution_id).holder
        own = await super().acquire(execution_id, owner=self.process.name, force=force)
        before = holder.process.name if isinstance(holder, SimulatedLedger) else None
        self.world.acquired(self.process, execution_id, own.epoch, before)
        self._know(own)
        self.points.reach("ledger.in-acquire")
        await self._told(own)
        return own

    async def release(self, ownership: Ownership) -> None:
        try:
            await self._trip()
        except LedgerUnavailable:
            self._owe(ownership)
            raise
        await super().release(ownership)

    def _owe(self, ownership: Ownership) -> None:
        """It is given up as soon as the store can be reached."""

        def again() -> None:
            if self.process.cut or self.world.down:
                self._owe(ownership)
            elif self._execution(ownership.execution_id).epoch == ownership.epoch:
                execution = self._execution(ownership.execution_id)
                execution.owner, execution.holder = "", None

        self.process.loop.call_later(RENEW_S, again)

    # ---- reading

    async def _trip(self) -> None:
        """The way there."""
        process, world = self.process, self.world
        deadline = process.loop.time() + PATIENCE_S
        if world.likely(0.1):
            await anyio.sleep(world.span(0.2))
        while not process.buried and (process.cut or world.down):
            if process.loop.time() >= deadline:
                raise _away()
            await anyio.sleep(AGAIN_S)
        if process.buried or world.hit("read refused"):
            raise _away()

    async def _told(self, own: Ownership) -> None:
        """The way back."""
        if self.world.hit("answer to an acquisition lost"):
            self._owe(own)
            raise _away()

    async def row(self, execution_id: str) -> Any:
        await self._trip()
        return await super().row(execution_id)

    async def rows(self, *, limit: int | None = None) -> Any:
        await self._trip()
        return await super().rows(limit=limit)

    async def records(
        self, execution_id: str, *, after: int = 0, to: int | None = None, limit: int | None = None
    ) -> Any:
        await self._trip()
        return await super().records(execution_id, after=after, to=to, limit=limit)

    async def posted(self, execution_id: str) -> Any:
        await self._trip()
        return await super().posted(execution_id)

    async def post(self, execution_id: str, kind: str, body: bytes, *, at_us: int) -> int:
        await self._trip()
        posted = await super().post(execution_id, kind, body, at_us=at_us)
        if self.world.hit("request posted twice"):
            await super().post(execution_id, kind, body, at_us=at_us)
        return posted

    async def close(self) -> None:
        self.closed = True


def _away() -> LedgerUnavailable:
    return LedgerUnavailable("the connection broke")
