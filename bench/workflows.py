"""A workflow of many small tasks against the floor of one synced SQLite commit a task, and the memory of many waiting tasks.

python bench/workflows.py [--tasks 10000] [--waiting 1000] [--repeats 3] [--only tasks|waiting] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from treadle.app.stores import open_store
from treadle.app.workflow_runtime import WorkflowRuntime
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.settings import Settings
from treadle.spec.workflows import AnyTask, Asks, PauseTask, Task, Workflow

WAITING_MB = 150  # aim: of a process in which 1,000 tasks wait
SHAPES = ("independent", "chain")


def floor(file: Path, commits: int) -> list[float]:
    """One row of a task's size a commit, fully synced; when each was done."""
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE record (id INTEGER PRIMARY KEY, body BLOB)")
    body, marks = b"x" * 200, [time.perf_counter()]
    for _ in range(commits):
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO record (body) VALUES (?)", (body,))
        db.execute("COMMIT")
        marks.append(time.perf_counter())
    db.close()
    return marks


async def small(folder: Path, tasks: int, shape: str) -> tuple[list[float], list[float]]:
    """When each of that many small tasks was performed, by the clock and by the processor time of this process."""
    marks: list[float] = []
    busy: list[float] = []

    async def perform(ctx: Any) -> dict[str, Any]:
        marks.append(time.perf_counter())
        busy.append(time.process_time())
        return {"task": ctx.task, "at": len(marks)}

    keys = [f"task-{number:05d}" for number in range(tasks)]
    before = {key: (keys[place - 1],) if place and shape == "chain" else () for place, key in enumerate(keys)}
    workflow = Workflow("small", [Task(key, perform, after=before[key]) for key in keys])
    ledger = await open_store(f"sqlite:///{folder / 't.db'}", NO_CRASH_POINTS)
    runtime = WorkflowRuntime(ledger, Settings(environ={}, state_dir=folder))
    session = await runtime.start(workflow, execution_id="bench0")
    await session.run()
    assert session.state.code == "accepted", session.state.evidence
    await session.close()
    await ledger.close()
    return marks, busy


def small_tasks(tasks: int, repeats: int) -> dict[str, Any]:
    """Time a task over the floor's, turn about; its processor time; and of both the last tenth of the tasks over the first."""
    ratios: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    spent: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    spent_flat: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    flat: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    floors: list[float] = []
    tenth = max(1, tasks // 10)
    for _ in range(repeats):
        for shape in SHAPES:
            with tempfile.TemporaryDirectory() as folder:
                base = floor(Path(folder) / "before.db", tasks // 2)
                marks, busy = asyncio.run(small(Path(folder), tasks, shape))
                base_ms = _each_ms(base + floor(Path(folder) / "after.db", tasks // 2)[1:])
            floors.append(base_ms)
            ratios[shape].append(_each_ms(marks) / base_ms)
            flat[shape].append(_each_ms(marks[-tenth:]) / _each_ms(marks[:tenth]))
            spent[shape].append(_each_ms(busy))
            spent_flat[shape].append(_each_ms(busy[-tenth:]) / _each_ms(busy[:tenth]))
    found: dict[str, Any] = {"tasks": tasks, "floor_ms": round(statistics.median(floors), 3)}
    for shape in SHAPES:
        found[f"{shape}_ratio"] = round(statistics.median(ratios[shape]), 2)
        found[f"{shape}_last_over_first"] = round(statistics.median(flat[shape]), 2)
        found[f"{shape}_cpu_ms"] = round(statistics.median(spent[shape]), 3)
        found[f"{shape}_cpu_last_over_first"] = round(statistics.median(spent_flat[shape]), 2)
    return found


def _each_ms(marks: list[float]) -> float:
    """Mean span between two marks."""
    spans = [b - a for a, b in pairwise(marks)]
    return 1000 * sum(spans) / len(spans)


WAITING = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import workflows as bench
asyncio.run(bench.wait(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
"""


def resident_mb() -> float:
    """Of this process, now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return round(int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024, 1)


async def wait(folder: Path, tasks: int, on: str) -> None:
    """Prints this process's memory in MB while that many tasks wait on timers or on answers, in workflows of a hundred."""

    async def ask(ctx: Any) -> None:
        await ctx.interaction.suspend(f"May {ctx.task} go on?", {"step": 1})

    def one(number: int) -> AnyTask:
        if on == "timers":
            return PauseTask(f"pause-{number}", for_s=3600)
        return Task(f"ask-{number}", ask, interaction=Asks())

    ledger = await open_store(f"sqlite:///{folder / 't.db'}", NO_CRASH_POINTS)
    runtime = WorkflowRuntime(ledger, Settings(environ={}, state_dir=folder))
    sessions = [
        await runtime.start(Workflow("waiting", [one(number) for number in range(100)]), execution_id=f"bench{n:04d}")
        for n in range(tasks // 100)
    ]
    running = [asyncio.ensure_future(session.run()) for session in sessions]
    waits = "timers" if on == "timers" else "asking"
    while True:
        await asyncio.sleep(0.05)
        if sum(len(getattr(session.state, waits)) for session in sessions) == tasks // 100 * 100:
            break
    print(resident_mb(), flush=True)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for session in sessions:
        await session.close()
    await ledger.close()


def waiting_tasks(tasks: int) -> dict[str, Any]:
    """Resident memory of a process of its own."""
    found: dict[str, Any] = {"waiting": tasks // 100 * 100}
    for on in ("timers", "answers"):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", WAITING, str(Path(__file__).parent), folder, str(tasks), on]
            found[f"{on}_mb"] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--waiting", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=("tasks", "waiting"))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found: dict[str, Any] = {}
    if args.only != "waiting":
        found |= small_tasks(args.tasks, args.repeats)
    if args.only != "tasks":
        found |= waiting_tasks(args.waiting)
    print(json.dumps(found, indent=2))
    if (most := max(found.get("timers_mb", 0.0), found.get("answers_mb", 0.0))) > 0:
        print(f"verdict: {'under' if most < WAITING_MB else 'OVER'} {WAITING_MB} MB with all of them waiting")
    if args.json:
        args.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
