"""What happened lately, encoded once for all viewers: a viewer is a cursor on one ring, so a slow one costs nothing."""

from __future__ import annotations

import asyncio
import contextlib
from typing import NamedTuple

from treadle.app.observing import Ring

CAPACITY = 65_536  # events; at 10,000 a second a viewer may be six seconds behind before it has a gap


class Noted(NamedTuple):
    """One event as it is sent. `execution_id` lets a viewer ask for one execution."""

    execution_id: str
    body: bytes


class Feed:
    """The last events, numbered without holes from `start` + 1. `publish` never waits.

    Taken from the wall clock, `start` is higher after a restart than every number before it: a cursor of an earlier process
    has a gap, and never gets somebody else's events.
    """

    def __init__(self, *, start: int, capacity: int = CAPACITY) -> None:
        self._ring: Ring[Noted] = Ring(capacity)
        self._start = self._floor = start

    @property
    def last(self) -> int:
        """The number of the newest event."""
        return self._start + self._ring.head

    def publish(self, execution_id: str, body: bytes) -> None:
        """Adds an event."""
        self._ring.publish(Noted(execution_id, body))

    def skip(self) -> None:
        """Something was left out here: every cursor from before has a gap."""
        self.publish("", b"null")
        self._floor = self.last

    def has_gap(self, seen: int) -> bool:
        """Whether events after this number are lost to whoever asks, or were never this feed's."""
        oldest = max(self._floor, self.last - self._ring.size)
        return seen < oldest or seen > self.last

    def after(self, seen: int, *, limit: int) -> list[Noted]:
        """Events with higher numbers, oldest first. Ask `has_gap` before."""
        return self._ring.read(seen - self._start, self._ring.size, limit)[0]

    async def wait(self, seen: int) -> None:
        """Until there is something after this number."""
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not woken.done():
                woken.set_result(None)

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the viewer's event loop has gone
                loop.call_soon_threadsafe(settle)

        if self._ring.call_at_next(seen - self._start, wake):
            try:
                await woken
            finally:
                self._ring.forget(wake)

    @property
    def closed(self) -> bool:
        """Whether no more will come."""
        return self._ring.closed

    def close(self) -> None:
        """No more will come: those who wait are woken, and streams end."""
        self._ring.close()
