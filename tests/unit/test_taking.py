"""A parent takes its child from whoever still holds it, though not from a person who is about to be done."""

from __future__ import annotations

import asyncio

import pytest

from simulation.machine import VirtualLoop
from treadle.app.runtime import Reopening
from treadle.app.taking import BUSY_S, taken
from treadle.core.errors import OwnerAlive


@pytest.mark.req("RT-03", "FR-22")
@pytest.mark.parametrize(("held_s", "forced"), [(0.0, False), (BUSY_S / 2, False), (BUSY_S * 9, True)])
def test_a_child_is_waited_for_and_then_taken(held_s: float, forced: bool) -> None:
    async def resume(how: Reopening) -> bool:
        if asyncio.get_running_loop().time() < held_s and not how.force:
            raise OwnerAlive("somebody answers it")
        return how.force

    loop = VirtualLoop()  # so that nobody waits for real
    try:
        assert loop.run_until_complete(taken(resume, Reopening())) is forced
    finally:
        loop.close()
