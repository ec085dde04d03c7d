"""Brings everything that happens into the feed: from loops of this process by the bus, from all others by the ledger."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import ExitStack

import anyio

from treadle.app.observing import Bus, Subscription
from treadle.core.codec import decode
from treadle.core.errors import LedgerError
from treadle.kernel.loop import advance
from treadle.kernel.states import LoopState
from treadle.ports.ledger import ExecutionRow, Ledger, Record
from treadle.ports.observer import Progress
from treadle.runtime.journal import load_state

from .feed import Feed
from .wire import encode_json, of_progress, of_record

LOOK_S = 0.15  # how old an event of another process may be before it is seen
FAILED_S = 2.0
ROWS = 500  # newest executions that are looked at
PAGE = 2_000
STATES = 256  # folded states that are kept, so that an event costs one step and not a whole fold


class Follower:
    """One for the service. It works only while somebody watches, or did a moment ago."""

    def __init__(self, ledger: Ledger, bus: Bus, feed: Feed) -> None:
        self.ledger, self.bus, self.feed = ledger, bus, feed
        self.here: set[str] = set()  # executions that this process runs: the bus tells of them
        self._heads: dict[str, int] = {}
        self._states: OrderedDict[str, LoopState] = OrderedDict()
        self._subscription: Subscription[Progress] = bus.subscribe()
        self._viewers = 0

    def viewing(self) -> ExitStack:
        """While this is entered, models stream their text to the bus."""
        stack = ExitStack()
        stack.enter_context(self.bus.reading_text())
        self._viewers += 1
        stack.callback(self._left)
        return stack

    def _left(self) -> None:
        self._viewers -= 1

    async def pump(self) -> None:
        """From the bus, for ever."""
        dropped = 0
        async for batch in self._subscription.batches(1_000):
            if self._subscription.dropped != dropped:
                dropped = self._subscription.dropped
                self.feed.skip()
            for progress in batch:
                if progress.seq:
                    self._heads[progress.execution_id] = progress.seq
                self.feed.publish(progress.execution_id, encode_json(of_progress(progress)))
            await anyio.lowlevel.checkpoint()

    async def follow(self) -> None:
        """From the ledger, for ever. A store that fails is tried again."""
        await self._note_all()
        while True:
            try:
                for row in await self.ledger.rows(limit=ROWS):
                    if row.execution_id not in self.here and row.head > self._heads.get(row.execution_id, 0):
                        await self._publish(row)
            except LedgerError:
                await anyio.sleep(FAILED_S)
            await anyio.sleep(LOOK_S)

    async def _note_all(self) -> None:
        """What was there before the service is no news."""
        for row in await self.ledger.rows():
            self._heads.setdefault(row.execution_id, row.head)

    async def _publish(self, row: ExecutionRow) -> None:
        name = row.execution_id
        page = await self.ledger.records(name, after=self._heads.get(name, 0), limit=PAGE)
        for record in page:
            if name in self.here:  # it was taken over while this was read
                return
            state = await self._advanced(row, record)
            self.feed.publish(name, encode_json(of_record(name, record, state)))
            self._heads[name] = record.seq

    async def _advanced(self, row: ExecutionRow, record: Record) -> LoopState | None:
        """The state after the record, where it is a loop's; one step from the last where that is known."""
        if row.kind != "loop":
            return None
        name = row.execution_id
        known = self._states.get(name)
        if known is not None and known.seq + 1 == record.seq:
            state = advance(known, decode(record.kind, record.version, record.body))
        else:
            state = (await load_state(self.ledger, name, at=record.seq))[0]
        self._states[name] = state
        self._states.move_to_end(name)
        if len(self._states) > STATES:
            self._states.popitem(last=False)
        return state
