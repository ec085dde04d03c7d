"""Observations to sinks. Each sink has a bounded queue and a thread of its own: a slow or broken one loses some; nobody waits for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from treadle.ports.task import Observation, ObservationHub, Sink

QUEUE = 1_000  # observations that may wait for one sink; then the oldest is dropped
CLOSE_S = 2.0  # how long a sink may take, at the end, for what waits


class Subscription:
    """One sink. `dropped` and `errors` say what it missed and how often it raised."""

    def __init__(self, sink: Sink, size: int) -> None:
        self.dropped = self.errors = 0
        self._sink, self._size = sink, size
        self._queue: deque[Observation] = deque()
        self._ready = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="observation-sink", daemon=True)
        self._thread.start()

    def put(self, observation: Observation) -> None:
        """Queues it; drops the oldest where the queue is full."""
        with self._ready:
            if self._closed:
                return
            if len(self._queue) >= self._size:
                self._queue.popleft()
                self.dropped += 1
            self._queue.append(observation)
            self._ready.notify()

    def _run(self) -> None:
        while True:
            with self._ready:
                while not self._queue:
                    if self._closed:
                        return
                    self._ready.wait()
                observation = self._queue.popleft()
            try:
                self._sink(observation)
            except Exception:  # noqa: BLE001 - a sink's fault never changes an outcome (TC-06)
                self.errors += 1

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """No more will come. Gives the sink that long for what waits."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)


class Hub(ObservationHub):
    """The hub of one process; `scoped` ones share its sinks."""

    def __init__(
        self,
        now_us: Callable[[], int],
        *,
        execution_id: str = "",
        task: str = "",
        attempt: int = 0,
        sinks: list[Subscription] | None = None,
    ) -> None:
        self._now_us = now_us
        self._execution_id, self._task, self._attempt = execution_id, task, attempt
        self._sinks: list[Subscription] = [] if sinks is None else sinks

    def subscribe(self, sink: Sink, *, size: int = QUEUE) -> Subscription:
        """From now on the sink hears everything."""
        subscription = Subscription(sink, size)
        self._sinks.append(subscription)
        return subscription

    def observe(self, kind: str, data: dict[str, Any] | None = None) -> None:
        if self._sinks:
            observation = Observation(
                self._execution_id, self._task, self._attempt, kind, 0, data or {}, self._now_us()
            )
            self.publish(observation)

    def publish(self, observation: Observation) -> None:
        for subscription in self._sinks:
            subscription.put(observation)

    def scoped(self, *, execution_id: str = "", task: str = "", attempt: int = 0) -> Hub:
        return Hub(
            self._now_us,
            execution_id=execution_id or self._execution_id,
            task=task or self._task,
            attempt=attempt or self._attempt,
            sinks=self._sinks,
        )

    def close(self) -> None:
        """Ends every subscription."""
        for subscription in self._sinks:
            subscription.close()
