"""What telemetry adds to a turn. In one run, blocks of turns with and without the observer take turns, so that both meet the same machine.

python bench/telemetry.py [--turns 2000] [--block 100] [--json FILE]
python bench/telemetry.py --alone    # instead: processor time of each sink's own work a turn, and of handing it over
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from subject import InstantModel, loop

from treadle.app.observing import Bus, Throughput, open_sinks
from treadle.app.runtime import Runtime
from treadle.app.stores import open_store
from treadle.core.redaction import Redactor, secrets_of
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.ports.observer import Observer, Progress
from treadle.runtime.clock import SystemClock
from treadle.settings import Settings
from treadle.telemetry.behind import Behind
from treadle.telemetry.open_spans import FirstIds
from treadle.telemetry.progress import NoView, PlainView
from treadle.telemetry.sinks import Aside, JsonLines, Recording
from treadle.telemetry.spans import Spans

TARGET = 1.05
Observers = Callable[[Path], tuple[Observer, ...]]


def sinks(*names: str, **environ: str) -> Observers:
    def make(folder: Path) -> tuple[Observer, ...]:
        settings = Settings(environ=environ, state_dir=folder)
        named = [name.replace("FOLDER", str(folder)) for name in names]
        found = open_sinks(named, settings, (folder / "stderr").open("w"))
        return (found.view, *found.others)

    return make


def in_process(_: Path) -> tuple[Observer, ...]:
    bus = Bus()
    for _ in range(20):
        bus.subscribe()
    return (bus, Throughput(SystemClock()))


SUBJECTS: dict[str, Observers] = {
    "nothing": lambda _: (),
    "bus with 20 stalled subscribers, throughput": in_process,
    "lines on stderr": sinks("stderr"),
    "json file": sinks("json:FOLDER/events.jsonl", EXAMPLE_API_KEY="not-a-secret-1234"),
    "opentelemetry, to nowhere": sinks("otel", OTEL_TRACES_EXPORTER="none"),
}


ALONE_TURNS, REPEATS = 500, 7


async def recorded(turns: int) -> list[Progress]:
    """What an observer is told of so many turns."""
    told = Recording()
    with tempfile.TemporaryDirectory() as name:
        ledger = await open_store("memory:", NO_CRASH_POINTS)
        runtime = Runtime(ledger, Settings(environ={}, state_dir=Path(name)), observers=(told,))
        session = await runtime.start(loop(turns, "mutating", InstantModel(turns)), "Collect every record.")
        await session.run()
        await session.close()
        await runtime.close()
    return told.progress


def alone() -> dict[str, float]:
    """Microseconds a turn that each takes of a processor, the best of some tries: nothing else runs meanwhile."""
    progress = asyncio.run(recorded(ALONE_TURNS))
    redact = Redactor(secrets_of({"EXAMPLE_API_KEY": "not-a-secret-1234"})).redact

    def spans() -> Observer:
        ids = FirstIds()
        return Spans(TracerProvider(id_generator=ids, shutdown_on_exit=False), ids, redact, processor=SpanProcessor())

    made: dict[str, Callable[[], Observer]] = {
        "handing over to a sink": lambda: Aside(Recording()),
        "handing over to the view": lambda: Behind(NoView()),
        "bus": Bus,
        "throughput": lambda: Throughput(SystemClock()),
        "lines": lambda: PlainView(io.StringIO()),
        "json lines": lambda: JsonLines(io.BytesIO(), redact=redact, owned=True),
        "spans": spans,
    }
    return {name: round(min(_spent(make(), progress) for _ in range(REPEATS)), 1) for name, make in made.items()}


def _spent(observer: Observer, progress: list[Progress]) -> float:
    """Of this thread: what a sink does on its own thread is not its caller's time."""
    start = time.thread_time()
    for one in progress:
        observer.notify(one)
    spent = (time.thread_time() - start) / ALONE_TURNS * 1e6
    observer.close()
    return spent


class Toggling(InstantModel):
    """Every other block of turns has the observers. `marks`, `spent` and `own` are taken at each request: wall time, processor
    time of the process, and of the loop's thread alone."""

    def __init__(self, turns: int, block: int, observers: tuple[Observer, ...]) -> None:
        super().__init__(turns)
        self.block, self.observers = block, observers
        self.spent: list[float] = []
        self.own: list[float] = []
        self.journal: Any = None
        self.on_ready = self._ready

    def observed(self, turn: int) -> bool:
        return turn // self.block % 2 == 1

    def _ready(self, _: int) -> None:
        self.spent.append(time.process_time())
        self.own.append(time.thread_time())
        self.journal.observers = self.observers if self.observed(len(self.marks)) else ()


async def one(turns: int, block: int, make: Observers) -> dict[str, float]:
    """Ratios of the turns with the observers to those without."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ledger = await open_store(f"sqlite:///{folder / 't.db'}", NO_CRASH_POINTS)
        made = make(folder)
        runtime = Runtime(ledger, Settings(environ={}, state_dir=folder))
        model = Toggling(turns, block, made)
        session = await runtime.start(loop(turns, "mutating", model), "Collect every record.")
        model.journal = session.journal
        await session.run()
        assert session.state.code == "accepted", session.state
        await session.close()
        await runtime.close()
        for observer in made:
            observer.close()
    return compared(model, turns, block)


def compared(model: Toggling, turns: int, block: int) -> dict[str, float]:
    wall: dict[bool, list[float]] = {False: [], True: []}
    spent: dict[bool, list[float]] = {False: [], True: []}
    own: dict[bool, list[float]] = {False: [], True: []}
    for first in range(block, turns - block + 1, block):  # the first block warms up
        seen = model.observed(first + 1)
        wall[seen] += [b - a for a, b in pairwise(model.marks[first + 1 : first + block])]
        spent[seen].append((model.spent[first + block - 1] - model.spent[first]) / (block - 1))
        own[seen].append((model.own[first + block - 1] - model.own[first]) / (block - 1))
    found = {"wall": wall, "process": spent, "loop_thread": own}
    result: dict[str, float] = {}
    for name, by in found.items():
        result[f"{name}_ms"] = round(statistics.median(by[True]) * 1000, 3)
        result[f"{name}_ratio"] = round(statistics.median(by[True]) / statistics.median(by[False]), 3)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--block", type=int, default=100)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--alone", action="store_true")
    given = parser.parse_args()
    if given.alone:
        print(json.dumps(alone(), indent=1))
        return
    found: dict[str, Any] = {"target": TARGET}
    for name, make in SUBJECTS.items():
        found[name] = asyncio.run(one(given.turns, given.block, make))
    text = json.dumps(found, indent=1)
    print(text)
    if given.json:
        given.json.write_text(text)


if __name__ == "__main__":
    main()
