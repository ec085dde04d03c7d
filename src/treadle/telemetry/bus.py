"""The bus: one bounded ring that anybody publishes to without waiting, and cursors on it. A slow subscriber loses some, and knows how many.

Publishing costs the same however many subscribers there are: they are not told each event, they read. Only those asleep are woken.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Generic, TypeVar, cast

from treadle.ports.observer import Observer, Progress

T = TypeVar("T")
SIZE = 2_048  # events that a ring holds: what a subscriber may be behind; each keeps the state after it in memory
HANDFUL = 32  # events that a sink takes at once; these are out of the ring, so none of them is lost
CLOSE_S = 2.0  # how long a sink may take, at the end, for what waits


class Ring(Generic[T]):
    """What was published last. Thread-safe; `publish` waits for no subscriber."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self.closed = False
        self._items: list[T | None] = [None] * size
        self._next = 0  # number of the next event
        self._lock = threading.Lock()
        self._asleep: list[Callable[[], None]] = []

    def publish(self, item: T) -> None:
        """Adds it, over the oldest. Does nothing after `close`."""
        with self._lock:
            if self.closed:
                return
            number = self._next
            self._items[number % self.size] = item
            self._next = number + 1
            if not self._asleep:
                return
            asleep, self._asleep = self._asleep, []
        for wake in asleep:
            wake()

    def subscribe(self, *, lag: int = SIZE) -> Subscription[T]:
        """A cursor on everything published from now on, which may be `lag` events behind, at most the ring's size."""
        return Subscription(self, min(lag, self.size))

    def close(self) -> None:
        """No more will come: subscribers read the rest and end."""
        with self._lock:
            self.closed = True
            asleep, self._asleep = self._asleep, []
        for wake in asleep:
            wake()

    # ---- for subscriptions

    @property
    def head(self) -> int:
        """Number of the event that is published next."""
        return self._next

    def read(self, cursor: int, lag: int, limit: int) -> tuple[list[T], int]:
        """(events, the number of the first of them)."""
        with self._lock:
            first = max(cursor, self._next - lag)
            numbers = range(first, min(self._next, first + limit))
            return cast("list[T]", [self._items[number % self.size] for number in numbers]), first

    def call_at_next(self, cursor: int, wake: Callable[[], None]) -> bool:
        """Calls `wake` once, from any thread, when there is an event after the cursor. False: there is, or never will be."""
        with self._lock:
            if self._next > cursor or self.closed:
                return False
            self._asleep.append(wake)
            return True

    def forget(self, wake: Callable[[], None]) -> None:
        """It need not be called any more."""
        with self._lock, contextlib.suppress(ValueError):
            self._asleep.remove(wake)


class Subscription(Generic[T]):
    """One reader's place in a ring; for one thread or task at a time. It costs nothing while nobody reads, and needs no closing."""

    def __init__(self, ring: Ring[T], lag: int) -> None:
        self._ring, self._lag = ring, lag
        self._cursor = ring.head
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many events this reader has lost so far, because they were overwritten before it came."""
        return self._dropped + max(0, self._ring.head - self._lag - self._cursor)

    def take(self, limit: int = SIZE) -> list[T]:
        """What there is, oldest first, at most so many; empty where there is nothing. Never waits."""
        items, first = self._ring.read(self._cursor, self._lag, limit)
        self._dropped += first - self._cursor
        self._cursor = first + len(items)
        return items

    async def batches(self, limit: int = SIZE) -> AsyncGenerator[list[T]]:
        """Gives what has come as soon as it comes, until the ring is closed and read to its end."""
        while True:
            while items := self.take(limit):
                yield items
            if not await self._more():
                return

    async def _more(self) -> bool:
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not woken.done():
                woken.set_result(None)

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the reader's event loop has gone, and the reader with it
                loop.call_soon_threadsafe(settle)

        if self._ring.call_at_next(self._cursor, wake):
            try:
                await woken
            finally:
                self._ring.forget(wake)
        return self._ring.head > self._cursor

    def wait(self) -> bool:
        """For a thread: returns when there is something to take. False: there never will be."""
        if self._ring.head > self._cursor:
            return True
        woken = threading.Event()
        if self._ring.call_at_next(self._cursor, woken.set):
            woken.wait()
        return self._ring.head > self._cursor


class Pump(Generic[T]):
    """Hands what a subscription gets to a sink, on a thread of its own: a slow sink loses some, a broken one is counted in `errors`."""

    def __init__(
        self,
        ring: Ring[T],
        sink: Callable[[T], None],
        *,
        lag: int = SIZE,
        gather_s: float = 0.0,
        idle: Callable[[], None] | None = None,
    ) -> None:
        """`gather_s`: how long it lets events gather once it is woken, since each waking interrupts whoever publishes.

        `idle` is called whenever the sink has been given all that there was.
        """
        self.errors = 0
        self._subscription = ring.subscribe(lag=lag)
        self._sink, self._idle = sink, idle
        self._ring, self._gather_s, self._handful = ring, gather_s, max(1, min(HANDFUL, lag // 8))
        self._thread = threading.Thread(target=self._run, name="treadle-sink", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """How many events the sink has lost."""
        return self._subscription.dropped

    def _run(self) -> None:
        while self._subscription.wait():
            if self._gather_s and not self._ring.closed:
                time.sleep(self._gather_s)
            # A few at a time: what the sink has not got yet may still be overwritten, and is counted then.
            while items := self._subscription.take(self._handful):
                for item in items:
                    self._try(self._sink, item)
            if self._idle is not None:
                self._try(self._idle)

    def _try(self, call: Callable[..., None], *item: T) -> None:
        try:
            call(*item)
        except Exception:  # noqa: BLE001 - a sink's fault never changes an outcome (TC-06)
            self.errors += 1

    def join(self, timeout_s: float = CLOSE_S) -> None:
        """After the ring was closed: gives the sink that long for what waits."""
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)


class Bus(Observer):
    """Progress of every execution of this process, for any number of subscribers.

    Pass it among the observers of a Runtime. Records are in the ledger as well, so a subscriber that has lost some (`dropped`)
    reads them there, from the last `seq` that it saw; what is ephemeral (seq 0) is gone.
    """

    def __init__(self, size: int = SIZE) -> None:
        self._ring: Ring[Progress] = Ring(size)
        self._readers_of_text = 0

    @property
    def wants_text(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Responses are streamed while somebody reads text deltas."""
        return self._readers_of_text > 0

    def notify(self, progress: Progress) -> None:
        self._ring.publish(progress)

    def subscribe(self, *, lag: int = SIZE) -> Subscription[Progress]:
        """A cursor on all that happens from now on."""
        return self._ring.subscribe(lag=lag)

    @contextlib.contextmanager
    def reading_text(self) -> Generator[None]:
        """While this is entered, models stream, and text.delta is published."""
        self._readers_of_text += 1
        try:
            yield
        finally:
            self._readers_of_text -= 1

    def close(self) -> None:
        self._ring.close()
