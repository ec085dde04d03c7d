"""Whether owners live, by the server's clock: each process renews a row of its own (RT-03). And what others ask of us, by NOTIFY."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable

import psycopg

from treadle.ledger.statements import named

RENEW_S = 1.0
LEASE_S = 3.0  # an owner that has not renewed for so long counts as dead
STALE_S = 2.0  # an owner that could not renew for so long asks the store before it pays or changes anything

SQL = {name: text.encode() for name, text in named("postgres").items()}


class Liveness:
    """Our token, and the connection that keeps it alive and hears of requests. Made on the event loop that uses it."""

    def __init__(self, conninfo: str, on_renewal: Callable[[], None]) -> None:
        self.token = secrets.token_hex(8)
        self._conninfo, self._on_renewal = conninfo, on_renewal
        self._renewed = 0.0  # monotonic, when the last renewal that succeeded was sent
        self.gaps = 0  # between renewals, so long that others may have thought us dead meanwhile
        self._task: asyncio.Task[None] | None = None
        self._listening = False
        self._quiet: set[int] = set()  # handles that nobody has asked anything of since we looked

    def start(self) -> None:
        """From now on our token is renewed; its first row is written by whoever calls."""
        self._renewed = time.monotonic()
        if self._task is None:
            self._task = asyncio.create_task(self._keep_alive())

    def lapsed(self) -> bool:
        """Whether others may already think that we are dead."""
        return self._task is not None and time.monotonic() - self._renewed > STALE_S

    def renewed(self, sent: float) -> None:
        """Somebody renewed our row by a statement sent at `sent`, monotonic, and answered by now."""
        if self.lapsed():
            self.gaps += 1
        self._renewed = max(self._renewed, sent)

    def is_quiet(self, handle: int) -> bool:
        """Whether nothing can have been asked of this execution since `looking`."""
        return self._listening and handle in self._quiet

    def looking(self, handle: int) -> None:
        """Requests to this execution are about to be read: what comes later is heard of."""
        if self._listening:
            self._quiet.add(handle)

    def loud(self, handle: int) -> None:
        """Some are waiting."""
        self._quiet.discard(handle)

    async def stop(self) -> None:
        """Renews no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _keep_alive(self) -> None:
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True) as connection:
                    await connection.execute("LISTEN treadle_posted")
                    self._quiet.clear()
                    self._listening = True
                    await self._renew_and_listen(connection)
            except (psycopg.Error, OSError):  # tried again; meanwhile `lapsed` makes the owner ask before it acts
                self._listening = False
                await asyncio.sleep(RENEW_S / 4)
            finally:
                self._listening = False

    async def _renew_and_listen(self, connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
        while True:
            sent = time.monotonic()
            async with asyncio.timeout(LEASE_S):
                await connection.execute(SQL["renew"], (self.token,))
            self.renewed(sent)
            self._on_renewal()
            async for note in connection.notifies(timeout=RENEW_S):
                if note.payload.isdecimal():
                    self._quiet.discard(int(note.payload))
