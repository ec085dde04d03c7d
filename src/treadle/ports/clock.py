"""Time and chance, injected so that tests have none of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Clock(ABC):
    """Wall time for stamps, monotonic time for spans, sleep for waits, ids and jitter."""

    @abstractmethod
    def wall_us(self) -> int:
        """Microseconds since the epoch; may jump."""

    @abstractmethod
    def monotonic_us(self) -> int:
        """Microseconds that only grow, at an even pace."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Returns after that time; cancellable."""

    @abstractmethod
    def random(self) -> float:
        """0 <= x < 1."""

    @abstractmethod
    def new_id(self) -> str:
        """A fresh id of 12 letters and digits, random from the first, so that a short prefix names it."""


class CrashPoints:
    """Named instants at which a test may kill the process. Passing one costs a call and does nothing."""

    def reach(self, name: str) -> None:
        """`name` has been reached."""


NO_CRASH_POINTS = CrashPoints()
