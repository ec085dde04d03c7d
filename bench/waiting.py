"""The memory of many loops that wait at once in one worker: each has had some turns and waits for its quota to be back.

python bench/waiting.py [--loops 1000] [--turns 5] [--limit-mb 500]
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from treadle import Agent, Loop, accept, tool
from treadle.app.runtime import Runtime
from treadle.app.stores import open_store
from treadle.models.prices import parse_price
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.settings import Settings
from treadle.testing import Fault, ScriptedModel, Turn


def resident_mb() -> float:
    """Of this process, now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


@tool(kind="read")
async def look(n: int) -> str:
    """Looks."""
    return f"{n}: " + "as it was, " * 20


def done(_ctx: Any, _output: Any) -> Any:
    return accept()


def a_loop(turns: int) -> Loop:
    script: list[Any] = [Turn(text="I look.", calls=[("look", {"n": n})]) for n in range(turns)]
    model = ScriptedModel(
        [*script, Fault(status=429, headers={"retry-after": "7200"})],
        price=parse_price("1,2"),
        now_us=int(time.time() * 1e6),
    )
    return Loop(name="waits", act=Agent(model=model, tools=(look,)), evaluate=done, lessons="off")


async def measured(loops: int, turns: int, folder: Path) -> tuple[float, float, float]:
    """(MB before, MB when all wait, seconds until they did)."""
    ledger = await open_store(f"sqlite:///{folder / 't.db'}", NO_CRASH_POINTS)
    runtime = Runtime(ledger, Settings(environ={}, state_dir=folder), quota_wait_s=None)
    sessions = [await runtime.start(a_loop(turns), f"task {n}") for n in range(loops)]
    before, start = resident_mb(), time.perf_counter()
    async with anyio.create_task_group() as group:
        for session in sessions:
            group.start_soon(session.run)
        while any(session.state.code != "quota" for session in sessions):  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(0.1)
        await anyio.sleep(1.0)  # each has looked whether somebody asks for anything
        spent, now = time.perf_counter() - start, resident_mb()
        for session in sessions:
            session.driver.interrupt()
    for session in sessions:
        await session.close()
    await runtime.close()
    return before, now, spent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--limit-mb", type=float, default=500.0)
    given = parser.parse_args()
    bare = resident_mb()
    with tempfile.TemporaryDirectory() as folder:
        before, now, spent = anyio.run(measured, given.loops, given.turns, Path(folder))
    print(f"{given.loops:,} loops of {given.turns} turns wait in one process: {now:.0f} MB after {spent:.0f} s")
    print(
        f"  {bare:.0f} MB bare, {before:.0f} MB with all of them started, {(now - bare) * 1024 / given.loops:.0f} KB a loop"
    )
    print(f"verdict: {'under' if now < given.limit_mb else 'OVER'} {given.limit_mb:.0f} MB")
    return 0 if now < given.limit_mb else 1


if __name__ == "__main__":
    sys.exit(main())
