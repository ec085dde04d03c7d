"""A clock whose time passes only when somebody sleeps, so that tests wait for nothing."""

from __future__ import annotations

import random

import anyio.lowlevel

from treadle.ports.clock import Clock


class VirtualClock(Clock):
    """Time is what has been slept. Ids and jitter come from a seed, so that a run can be repeated."""

    def __init__(self, *, start_us: int = 1_700_000_000_000_000, seed: int = 0, tick_us: int = 0) -> None:
        self._us, self._start_us, self._tick_us = start_us, start_us, tick_us
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self.slept: list[float] = []

    def wall_us(self) -> int:
        self._us += self._tick_us
        return self._us

    def monotonic_us(self) -> int:
        self._us += self._tick_us
        return self._us - self._start_us

    def advance(self, seconds: float) -> None:
        """Time passes."""
        self._us += int(seconds * 1_000_000)

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()
        self.slept.append(seconds)
        self.advance(max(0.0, seconds))

    def random(self) -> float:
        return self._random.random()

    def new_id(self) -> str:
        return f"{self._random.getrandbits(60):015x}"[:12]
