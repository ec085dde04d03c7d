"""Treadle: an agent with one tool that reads, as `treadle run` has it: on its SQLite ledger, or on Postgres where run.py names one."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from meter import Meter, main
from subject import FEE, InstantModel, loop
from workload import say

from treadle.app.runtime import Reopening, Runtime
from treadle.app.stores import open_store
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.ports.model import ModelRequest, OnDelta, RawCall, Reply
from treadle.settings import Settings


class Fake(InstantModel):
    """Reads the turn off the history."""

    def __init__(self, meter: Meter) -> None:
        super().__init__(meter.turns)
        self.meter = meter

    async def request(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Reply:
        turn = len(request.view.messages) // 2
        self.meter.asked(turn)
        if self.meter.ends and turn >= self.meter.turns:
            return Reply("", (RawCall("end", "finish", {"summary": "done"}),), FEE, "tool_call")
        call = RawCall(f"call_{turn:06d}", "lookup", {"key": f"record-{turn:06d}"})
        return Reply(say(turn), (call,), FEE, "tool_call")


async def _opened(folder: Path) -> Runtime:
    store = os.environ.get("BENCH_STORE") or f"sqlite:///{folder / 'treadle.db'}"
    return Runtime(await open_store(store, NO_CRASH_POINTS), Settings(environ={}, state_dir=folder))


async def _drive(meter: Meter, folder: Path, resuming: bool) -> None:
    runtime = await _opened(folder)
    ledger = runtime.ledger
    definition = loop(meter.turns, "read", Fake(meter))
    if resuming:
        began = time.perf_counter()
        while (await ledger.row("bench0")).owner_alive:  # noqa: ASYNC110  # on Postgres its right lapses with time
            await asyncio.sleep(0.02)
        meter.waited(time.perf_counter() - began)
        session = await runtime.resume("bench0", definition, Reopening())
    else:
        session = await runtime.start(definition, "Collect every record.", execution_id="bench0")
    document: dict[str, Any] = await session.run()
    meter.settled(document["usage"]["requests"], document["usage"]["in_doubt_requests"])


def drive(meter: Meter, folder: Path, resuming: bool) -> None:
    asyncio.run(_drive(meter, folder, resuming))


def many(meter: Meter, folder: Path) -> Callable[[list[str]], None]:
    runner = asyncio.Runner()  # the store's tasks outlive the loop that warms up
    runtime = runner.run(_opened(folder))

    async def one(name: str) -> None:
        session = await runtime.start(
            loop(meter.turns, "read", Fake(meter)), "Collect every record.", execution_id=name
        )
        found = await session.run()
        await session.close()
        if found["code"] != "accepted":
            raise SystemExit(f"{name}: {found}")

    async def run(names: list[str]) -> None:
        await asyncio.gather(*(one(name) for name in names))

    return lambda names: runner.run(run(names))


if __name__ == "__main__":
    main(drive, many)
