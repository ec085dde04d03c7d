"""The real clock, and chance."""

from __future__ import annotations

import random
import secrets
import time

import anyio

from treadle.ports.clock import Clock

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no letter is mistaken for another


class SystemClock(Clock):
    """Time of this machine."""

    def wall_us(self) -> int:
        return time.time_ns() // 1000

    def monotonic_us(self) -> int:
        return time.monotonic_ns() // 1000

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(0.0, seconds))

    def random(self) -> float:
        return random.random()  # noqa: S311 - jitter

    def new_id(self) -> str:
        return "".join(secrets.choice(_LETTERS) for _ in range(12))
