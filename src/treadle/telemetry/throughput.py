"""Tokens and turns a second over a sliding window, for each loop and for the fleet (AG-19)."""

from __future__ import annotations

import threading
from typing import NamedTuple

from treadle.core.events import Stopped, UsageReported
from treadle.core.messages import ModelResponded
from treadle.core.usage import Usage
from treadle.core.workflow_events import UsageCharged
from treadle.ports.clock import Clock
from treadle.ports.observer import Observer, Progress

WINDOW_S = 60
SECOND_US = 1_000_000


class Snapshot(NamedTuple):
    """What has been used since the watching began, and how fast over the last `window_s` seconds (or since the beginning)."""

    input_tokens: int
    output_tokens: int
    turns: int
    input_tokens_s: float
    output_tokens_s: float
    turns_s: float
    window_s: float

    @property
    def tokens_s(self) -> float:
        """Input and output together."""
        return self.input_tokens_s + self.output_tokens_s


class Window:
    """Counts in buckets of a second: constant memory, constant cost. Times are µs of any one clock."""

    def __init__(self, start_us: int, window_s: int = WINDOW_S) -> None:
        self._start_us, self._window_s = start_us, window_s
        self._seconds = [-1] * window_s  # the second that a bucket counts
        self._counts = [(0, 0, 0)] * window_s
        self._totals = (0, 0, 0)
        self.last_us = start_us

    def add(self, at_us: int, input_tokens: int, output_tokens: int, turns: int) -> None:
        """These were used at that time."""
        more = (input_tokens, output_tokens, turns)
        second = at_us // SECOND_US
        bucket = second % self._window_s
        held = self._counts[bucket] if self._seconds[bucket] == second else (0, 0, 0)
        if self._seconds[bucket] <= second:
            self._seconds[bucket], self._counts[bucket] = second, _sum(held, more)
        self._totals = _sum(self._totals, more)
        self.last_us = max(self.last_us, at_us)

    def snapshot(self, now_us: int) -> Snapshot:
        """As of now."""
        now, recent = now_us // SECOND_US, (0, 0, 0)
        for second, counts in zip(self._seconds, self._counts, strict=True):
            if now - self._window_s < second <= now:
                recent = _sum(recent, counts)
        # The oldest second of the window has gone by whole, the newest only in part.
        span_us = min(now_us - self._start_us, (self._window_s - 1) * SECOND_US + now_us % SECOND_US)
        span_s = max(span_us / SECOND_US, 1.0)
        given, got, turns = recent
        return Snapshot(*self._totals, given / span_s, got / span_s, turns / span_s, span_s)


def _sum(a: tuple[int, int, int], b: tuple[int, int, int]) -> tuple[int, int, int]:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


class Throughput(Observer):
    """Follows every execution of this process. One that has stopped is forgotten when its window has emptied."""

    def __init__(self, clock: Clock, *, window_s: int = WINDOW_S) -> None:
        self._clock, self._window_s = clock, window_s
        self._lock = threading.Lock()
        self._fleet = Window(clock.monotonic_us(), window_s)
        self._loops: dict[str, Window] = {}
        self._stopped: set[str] = set()

    def notify(self, progress: Progress) -> None:
        data = progress.data
        if isinstance(data, ModelResponded):
            self._add(progress.execution_id, data.usage, 1)
        elif isinstance(data, UsageReported | UsageCharged):
            self._add(progress.execution_id, data.usage, 0)
        elif isinstance(data, Stopped):
            with self._lock:
                self._stopped.add(progress.execution_id)
                self._forget(self._clock.monotonic_us())

    def _add(self, execution_id: str, usage: Usage, turns: int) -> None:
        now_us = self._clock.monotonic_us()
        with self._lock:
            own = self._loops.get(execution_id)
            if own is None:
                own = self._loops[execution_id] = Window(now_us, self._window_s)
            for window in (own, self._fleet):
                window.add(now_us, usage.input_tokens, usage.output_tokens, turns)

    def _forget(self, now_us: int) -> None:
        idle_us = self._window_s * SECOND_US
        gone = {name for name in self._stopped if now_us - self._last(name) > idle_us}
        for name in gone:
            self._loops.pop(name, None)
        self._stopped -= gone

    def _last(self, name: str) -> int:
        return self._loops[name].last_us if name in self._loops else 0

    def fleet(self) -> Snapshot:
        """All executions together."""
        with self._lock:
            return self._fleet.snapshot(self._clock.monotonic_us())

    def loops(self) -> dict[str, Snapshot]:
        """Each execution that has used anything lately."""
        with self._lock:
            now_us = self._clock.monotonic_us()
            self._forget(now_us)
            return {name: window.snapshot(now_us) for name, window in self._loops.items()}
