"""Observations to sinks, over a ring of their own. Each sink has a thread: a slow or broken one loses some; nobody waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.ports.task import Observation, ObservationHub, Sink

from .bus import Pump, Ring

QUEUE = 1_000  # observations that may wait for one sink; then the oldest is dropped


class Hub(ObservationHub):
    """The hub of one process; `scoped` ones share its sinks."""

    def __init__(
        self,
        now_us: Callable[[], int],
        *,
        execution_id: str = "",
        task: str = "",
        attempt: int = 0,
        ring: Ring[Observation] | None = None,
        sinks: list[Pump[Observation]] | None = None,
    ) -> None:
        self._now_us = now_us
        self._execution_id, self._task, self._attempt = execution_id, task, attempt
        self._ring: Ring[Observation] = Ring(QUEUE) if ring is None else ring
        self._sinks: list[Pump[Observation]] = [] if sinks is None else sinks

    def subscribe(self, sink: Sink, *, size: int = QUEUE) -> Pump[Observation]:
        """From now on the sink hears everything. The pump says what it missed and how often it raised."""
        pump = Pump(self._ring, sink, lag=size)
        self._sinks.append(pump)
        return pump

    def observe(self, kind: str, data: dict[str, Any] | None = None) -> None:
        if self._sinks:
            observation = Observation(
                self._execution_id, self._task, self._attempt, kind, 0, data or {}, self._now_us()
            )
            self.publish(observation)

    def publish(self, observation: Observation) -> None:
        self._ring.publish(observation)

    def scoped(self, *, execution_id: str = "", task: str = "", attempt: int = 0) -> Hub:
        return Hub(
            self._now_us,
            execution_id=execution_id or self._execution_id,
            task=task or self._task,
            attempt=attempt or self._attempt,
            ring=self._ring,
            sinks=self._sinks,
        )

    def close(self) -> None:
        """Ends every subscription."""
        self._ring.close()
        for pump in self._sinks:
            pump.join()
