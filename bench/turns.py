"""Time a turn against the floor, bytes, resume, many loops, imports. Ratios of one run: absolute times here are noisy.

python bench/turns.py [--turns 2000] [--repeats 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from subject import InstantModel, floor, loop, payload_bytes

from treadle.app.runtime import Runtime
from treadle.app.stores import open_store
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.settings import Settings


async def open_runtime(folder: Path) -> Runtime:
    ledger = await open_store(f"sqlite:///{folder / 't.db'}", NO_CRASH_POINTS)
    return Runtime(ledger, Settings(environ={}, state_dir=folder))


async def one(folder: Path, turns: int, kind: str, execution_id: str = "bench0") -> list[float]:
    runtime = await open_runtime(folder)
    model = InstantModel(turns)
    session = await runtime.start(loop(turns, kind, model), "Collect every record.", execution_id=execution_id)
    await session.run()
    assert session.state.code == "accepted", session.state
    await session.close()
    await runtime.close()
    return model.marks


def spans_ms(marks: list[float]) -> list[float]:
    return [(b - a) * 1000 for a, b in pairwise(marks)]


def turn_ratio(turns: int, repeats: int) -> dict[str, Any]:
    """Median turn of a reading and a mutating tool over the floor's, turn about."""
    ratios: dict[str, list[float]] = {"read": [], "mutating": []}
    floors = []
    for _ in range(repeats):
        for kind, found in ratios.items():
            with tempfile.TemporaryDirectory() as folder:
                base = statistics.median(spans_ms(floor(Path(folder) / "f.db", turns)))
                ours = statistics.median(spans_ms(asyncio.run(one(Path(folder), turns, kind))))
            floors.append(base)
            found.append(ours / base)
    return {
        "floor_ms": round(statistics.median(floors), 3),
        "read_ratio": round(statistics.median(ratios["read"]), 2),
        "mutating_ratio": round(statistics.median(ratios["mutating"]), 2),
    }


def long_run(turns: int) -> dict[str, Any]:
    """Flatness, bytes and resume of one long loop."""
    folder = Path(tempfile.mkdtemp())
    try:
        spans = spans_ms(asyncio.run(one(folder, turns, "read")))
        bytes_stored = (folder / "t.db").stat().st_size
        payload = payload_bytes(turns)
        return {
            "turns": turns,
            "around_1000_ms": round(statistics.median(spans[800:1200]), 3),
            "last_400_ms": round(statistics.median(spans[-400:]), 3),
            "flat_ratio": round(statistics.median(spans[-400:]) / statistics.median(spans[800:1200]), 3),
            "bytes": bytes_stored,
            "bytes_over_payload": round((bytes_stored - 256 * 1024) / payload, 3),
        }
    finally:
        shutil.rmtree(folder)


RESUME = """
import asyncio, sys, time, os, signal
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from subject import InstantModel, loop
import turns as bench
from treadle.app.runtime import Reopening
import anyio._backends._asyncio, platformdirs.unix, treadle.ledger.sqlite, treadle.ledger.lessons
import treadle.app.build, treadle.tools.combine, treadle.tools.validation, treadle.tools.function
folder, n, mode = Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

async def run():
    runtime = await bench.open_runtime(folder)
    model = InstantModel(10**9)
    model.on_ready = lambda size: os.kill(os.getpid(), signal.SIGKILL) if len(model.marks) > n else None
    session = await runtime.start(loop(n, "read", model), "Collect.", execution_id="bench0")
    await session.run()

async def resume():
    start = time.perf_counter()
    runtime = await bench.open_runtime(folder)
    model = InstantModel(10**9)
    def ready(size):
        print(time.perf_counter() - start, size, flush=True); os._exit(0)
    model.on_ready = ready
    session = await runtime.resume("bench0", loop(n, "read", model), Reopening())
    await session.run()

asyncio.run(run() if mode == "run" else resume())
"""


def resume_times(turns: int, repeats: int) -> dict[str, Any]:
    """From opening the store to the model being asked for the next turn, in a new process, imports left out."""
    times = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            here = str(Path(__file__).parent)
            base = [sys.executable, "-c", RESUME, here, folder, str(turns)]
            subprocess.run([*base, "run"], check=False)
            out = subprocess.run([*base, "resume"], check=True, capture_output=True, text=True).stdout.split()
            assert int(out[1]) >= 2 * turns, out
            times.append(float(out[0]) * 1000)
    return {"turns": turns, "resume_ms": round(statistics.median(times), 1), "all": [round(t, 1) for t in times]}


async def _many(folder: Path, loops: int, turns: int) -> tuple[float, int]:
    class Counting:
        count = 0

        def reach(self, name: str) -> None:
            if name == "ledger.after-commit":
                Counting.count += 1

    ledger = await open_store(f"sqlite:///{folder / 't.db'}", Counting())  # type: ignore[arg-type]
    runtime = Runtime(ledger, Settings(environ={}, state_dir=folder))
    sessions = [
        await runtime.start(loop(turns, "read"), "Collect.", execution_id=f"bench{i:04d}") for i in range(loops)
    ]
    Counting.count = 0
    start = time.perf_counter()
    await asyncio.gather(*(session.run() for session in sessions))
    took = time.perf_counter() - start
    commits = Counting.count
    for session in sessions:
        await session.close()
    await runtime.close()
    return loops * turns / took, commits


def many_loops(loops: int, turns: int) -> dict[str, Any]:
    """Turns a second of many loops in one process against one loop."""
    with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
        alone, _ = asyncio.run(_many(Path(a), 1, 1000))
        together, commits = asyncio.run(_many(Path(b), loops, turns))
    return {
        "loops": loops,
        "speed_up": round(together / alone, 2),
        "commits_a_turn": round(commits / (loops * turns), 4),
        "turns_a_second": round(together),
    }


def imports() -> dict[str, Any]:
    """Wall time of whole processes, the interpreter's own start taken off."""

    def best(*args: str) -> float:
        times = []
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([sys.executable, *args], check=True, capture_output=True)
            times.append(time.perf_counter() - start)
        return min(times) * 1000

    bare = best("-c", "pass")
    return {
        "import_treadle_ms": round(best("-c", "import treadle") - bare, 1),
        "help_ms": round(best("-m", "treadle.cli.main", "--help"), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--long", type=int, default=10_000)
    parser.add_argument("--only", choices=("ratio", "long", "resume", "many", "imports"))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    parts = {
        "ratio": lambda: turn_ratio(args.turns, args.repeats),
        "long": lambda: long_run(args.long),
        "resume": lambda: [resume_times(1000, args.repeats), resume_times(args.long, 1)],
        "many": lambda: many_loops(200, 50),
        "imports": imports,
    }
    found = {}
    for name, part in parts.items():
        if args.only in (None, name):
            found[name] = part()
            print(name, json.dumps(found[name]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
