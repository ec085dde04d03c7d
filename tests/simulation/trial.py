"""One trial from a seed: workers, people and faults until a virtual minute or two are over, then calm until everything has ended."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from treadle.app.runtime import Runtime
from treadle.cli.worker import Worker
from treadle.core.endings import is_final
from treadle.core.errors import InputError, LedgerError
from treadle.ledger.inmemory import MemoryStore
from treadle.settings import Settings
from treadle.testing.crash import LOOP_POINTS, WORKFLOW_POINTS

from . import cast, registry
from .machine import Deadlock, Killed, Process, SimulatedClock, SimulatedPoints, VirtualLoop, repeatable_anyio
from .oracle import judge
from .people import Person, describe
from .store import SimulatedLedger
from .world import World

POINTS = (
    *(point for point in LOOP_POINTS if "baseline" not in point),
    *WORKFLOW_POINTS[:5],
    "ledger.before-commit",
    "ledger.after-commit",
    "ledger.in-acquire",
)
RATES = {
    "overload": 0.03,
    "network": 0.03,
    "quota": 0.03,
    "context-too-long": 0.01,
    "auth": 0.005,
    "bad-request": 0.005,
    "answer lost": 0.03,
    "answer garbled": 0.02,
    "answer never": 0.005,
    "slow answer": 0.02,
    "usage unknown": 0.01,
    "preparation refused": 0.02,
    "tool failed": 0.1,
    "tool broken": 0.01,
    "check broken": 0.03,
    "act broken": 0.03,
    "task broken": 0.1,
    "task out of quota": 0.05,
    "slow commit": 0.02,
    "commit refused": 0.01,
    "answer to a commit lost": 0.01,
    "answer to an acquisition lost": 0.05,
    "read refused": 0.002,
    "request posted twice": 0.2,
}
MOST_CALM_S = 4_000.0
SETTINGS = Settings(environ={}, state_dir=Path("/nonexistent"))


@dataclass
class Verdict:
    """What came of a seed."""

    seed: int
    faults: list[str]
    digest: str
    happened: dict[str, int]
    executions: int
    virtual_s: float
    trace: list[str] = field(default_factory=list[str])


class Trial:
    """The processes of one seed."""

    def __init__(self, seed: int, loop: VirtualLoop, *, trace: bool) -> None:
        self.loop, self.world, self.store = loop, World(seed, loop), MemoryStore()
        self.world.keep_trace = trace
        self.processes: list[Process] = []
        chance = self.world.chance
        wild = chance.choice((0.0, 0.5, 1.0, 1.0, 2.0))
        self.world.rates = {name: rate * wild for name, rate in RATES.items()}
        self.world.rates["in place"] = chance.choice((0.0, 0.5))
        self.until_s = float(chance.randint(15, 60))
        self.every_s = chance.choice((1.5, 4.0, 10.0, 60.0))  # between faults of machines

    def process(self, name: str) -> Process:
        chance = self.world.chance
        made = Process(f"{name}{len(self.processes)}", self.loop, self.world.note)
        made.boot_us = chance.randint(0, 10**12)
        if not self.world.calm and self.every_s < 60:
            if self.world.likely(0.3):
                made.dies_at_point = (chance.choice(POINTS), chance.randint(1, 6))
            if self.world.likely(0.2):
                made.dies_at_step = chance.randint(1, 3_000)
        self.processes.append(made)
        return made

    def runtime(self, process: Process) -> Runtime:
        world, points = self.world, SimulatedPoints(process)
        clock = SimulatedClock(process, world.chance.random, world.new_id)
        ledger = SimulatedLedger(self.store, process, world, points)
        return Runtime(ledger, SETTINGS, clock=clock, points=points, quota_wait_s=None)

    async def run(self) -> None:
        """Faults first, then calm."""
        world = self.world
        self._define()
        workers = [self._worker() for _ in range(world.chance.randint(1, 3))]
        await self._faults(workers)
        self._calm(workers)
        await self._settle()

    def _define(self) -> None:
        registry.DEFINITIONS.clear()
        chance = self.world.chance
        for n in range(chance.randint(1, 3)):
            name = f"d{n}"
            make = cast.workflow if self.world.likely(0.35) else cast.loop
            registry.DEFINITIONS[name] = make(self.world, name)
            self._at(chance.random() * 5, lambda name=name: self._person(lambda who: who.start(name)))

    def _at(self, delay_s: float, what: Callable[[], Any]) -> None:
        self.loop.call_later(delay_s, what)

    def _worker(self) -> Process:
        process = self.process("worker")
        runtime = self.runtime(process)

        async def main() -> None:
            async with anyio.create_task_group() as group:
                await Worker(runtime, group, anyio.Semaphore(8)).serve(once=False)

        process.start(lambda: self._guarded(process, main))
        return process

    def _person(self, doing: Callable[[Person], Awaitable[Any]]) -> Process:
        process = self.process("person")
        person = Person(self.world, self.runtime(process))
        process.start(lambda: self._guarded(process, lambda: doing(person)))
        return process

    async def _guarded(self, process: Process, main: Callable[[], Awaitable[Any]]) -> None:
        """A process ends when its main ends; what it raises besides typed errors is a fault of the product."""
        try:
            await main()
        except (InputError, LedgerError) as error:
            self.world.note("ended", process.name, type(error).__name__)
        except (Killed, asyncio.CancelledError):
            raise
        except BaseException as error:  # noqa: BLE001 - this is what is looked for
            if not process.dead:
                self.world.fault(f"{process.name} raised {error!r}: {_innermost(error)!r}")
        process.kill("at its end")

    # ---- faults of machines

    async def _faults(self, workers: list[Process]) -> None:
        world, chance = self.world, self.world.chance
        while self.loop.time() < self.until_s:
            await asyncio.sleep(chance.random() * 2 * self.every_s)
            self._strike(chance.choice([one for one in self.processes if not one.dead] or workers))
            for index, worker in enumerate(workers):
                if worker.dead:
                    workers[index] = self._worker()
            if world.likely(0.6):
                self._person(Person.meddle)

    def _strike(self, victim: Process) -> None:
        world, chance = self.world, self.world.chance
        span = chance.choice((0.3, 2.5, 4.0, 15.0))
        match chance.randint(0, 7):
            case 0 | 1:
                victim.kill("from outside")
            case 2 | 3:
                victim.stop()
                self._at(span, lambda: victim.wake(world.span(1.0)))
            case 4:
                victim.cut_off()
                self._at(span, lambda: victim.join(world.span(1.0)))
            case 5:
                world.note("the store is down")
                world.down = True
                self._at(span, lambda: setattr(world, "down", False))
            case 6:
                world.note("the disk is full")
                world.full = True
                self._at(span, lambda: setattr(world, "full", False))
            case _:
                victim.skew_us += chance.choice((-600, -5, 5, 600)) * 1_000_000
                world.note("the clock jumps", victim.name, victim.skew_us)

    def _calm(self, workers: list[Process]) -> None:
        world = self.world
        world.note("calm")
        world.calm = True
        world.down = world.full = False
        for process in self.processes:
            process.dies_at_step, process.dies_at_point = 0, ("", 0)
            process.wake(0.0)
            process.join(0.0)
        if all(worker.dead for worker in workers):
            self._worker()

    async def _settle(self) -> None:
        """Everything ends, or the trial fails."""
        until = self.loop.time() + MOST_CALM_S
        quiet, pause_s = 0, 5.0
        while quiet < 2:
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.1, 60.0)
            if self.loop.time() > until:
                break
            quiet = quiet + 1 if await self._settled() else 0
        states = await judge(self.world, self.store)
        for name, state in states.items() if quiet < 2 else ():
            if not is_final(state.status, state.code):
                self.world.fault(f"it never came to its end: {describe(name, state)}")

    async def _settled(self) -> bool:
        answers: list[bool] = []

        async def look(person: Person) -> None:
            answers.append(await person.settle())

        process = self._person(look)
        await asyncio.wait(process.tasks)
        return answers == [True]

    async def bury(self) -> None:
        """Ends what the dead have left: nothing of it counts any more."""
        world, loop = self.world, self.loop
        world.faults = list(world.faults)
        noted = world.note
        world.note = lambda *_: None  # type: ignore[method-assign]
        for process in self.processes:
            process.dead, process.buried, process.stopped = False, True, False
            process.note = lambda *_: None
            process.wake(0.0)
        here = asyncio.current_task(loop)
        for _ in range(6):
            left = [task for task in asyncio.all_tasks(loop) if task is not here]
            if not left:
                break
            for task in left:
                task.cancel()
            for _ in range(12):
                await asyncio.sleep(0)
        for coroutine in (task.get_coro() for process in self.processes for task in process.tasks):
            if coroutine is not None and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                coroutine.close()  # killed before its first step
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        world.note = noted  # type: ignore[method-assign]


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def run_seed(seed: int, *, trace: bool = False) -> Verdict:
    """The verdict on one seed: the same at each call."""
    loop = VirtualLoop()
    trial = Trial(seed, loop, trace=trace)
    world = trial.world
    with contextlib.redirect_stderr(io.StringIO()), repeatable_anyio():
        try:
            loop.run_until_complete(trial.run())
        except Deadlock:
            world.fault("nothing will ever happen again, and somebody waits")
        faults, digest, spent = list(world.faults), world.digest, loop.time()
        with contextlib.suppress(Deadlock):
            loop.run_until_complete(trial.bury())
    loop.close()
    return Verdict(seed, faults, digest, dict(world.happened), len(trial.store.executions), spent, world.trace)
