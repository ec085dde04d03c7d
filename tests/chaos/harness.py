"""The workers, the faults, and the watch that times takeovers."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from support import temporal
from treadle.app.runtime import Runtime
from treadle.ledger.postgres import open_postgres
from treadle.settings import Settings
from treadle.testing import Fault, ScriptedEndpoint, Turn

from .database import Database
from .network import Place, network

TESTS = Path(__file__).parents[1]
COMMAND = Path(sys.executable).parent / "treadle"
DATABASE, TEMPORAL, MODELS = "the ledger", "Temporal", "the models"


def _port(url: str) -> int:
    return int(url.removesuffix("/v1").rpartition(":")[2])


def answers(turns: int) -> Any:
    """The k-th turn of a conversation, whoever asks: mostly one change, sometimes reads, finish at the end."""

    def decide(body: dict[str, Any]) -> Turn | Fault:
        said = sum(message["role"] == "assistant" for message in body["messages"])
        if said + 1 >= turns:
            return Turn(calls=[("finish", {"summary": "all done"})])
        if said % 4 == 3:
            return Turn(calls=[("look", {"n": said}), ("look", {"n": said + 1})])
        return Turn(calls=[("change", {"n": said})])

    return decide


@dataclass
class Worker:
    """One process, and where it runs."""

    name: str
    place: Place
    process: subprocess.Popen[bytes] | None = None
    stopped: bool = False

    @property
    def pid(self) -> int:
        return self.process.pid if self.process is not None else 0


@dataclass
class Takeover:
    """An execution whose owner was struck, until somebody else has it."""

    execution: str
    how: str
    epoch: int
    struck: float
    disturbed: bool = False
    seconds: float | None = None


@dataclass
class Harness:
    """One run."""

    folder: Path
    loops: int
    turns: int
    workers_n: int
    seed: int
    every_s: float
    engine: str = "workers"
    namespaces: bool = True  # where the machine allows them
    chance: random.Random = field(init=False)
    struck: Counter[str] = field(default_factory=Counter[str])
    takeovers: list[Takeover] = field(default_factory=list[Takeover])
    workers: list[Worker] = field(default_factory=list[Worker])
    ids: list[str] = field(default_factory=list[str])
    owners: set[int] = field(default_factory=set[int])  # processes that own something, as of the last look
    over: bool = False

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.database = Database()
        self.endpoint = ScriptedEndpoint(answers(self.turns), bill=self.folder / "bill")
        self.temporal = temporal.server() if self.engine == "temporal" else ""
        ways = {DATABASE: self.database.port, MODELS: _port(self.endpoint.url)}
        if self.temporal:
            ways[TEMPORAL] = _port(self.temporal)
        self.network = network(ways, namespaces=self.namespaces)
        self.notes = self.folder / "notes"
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TREADLE_STATE": str(self.folder / "state"),
            "CHAOS_NOTES": str(self.notes),
            "CHAOS_TURNS": str(self.turns),
            "PYTHONPATH": str(TESTS / "chaos"),
        }

    @property
    def slots(self) -> int:
        """Of each worker: no one has all of it, so that faults find more than one at work, and whoever is left has room."""
        return max(1, -(-self.loops // 2))

    async def run(self, patience_s: float) -> bool:
        """Whether every loop came to its end in time."""
        models = await self.network.shared(MODELS)
        self.environ["CHAOS_URL"] = f"http://{models.host}:{models.port}/v1"
        await self._submit()
        for number in range(self.workers_n):
            self.workers.append(Worker(f"w{number}", await self.network.place(number)))
            self._begin(self.workers[-1])
        watch = asyncio.create_task(self._watch())
        started, until = time.monotonic(), time.monotonic() + patience_s
        try:
            while not self.over and time.monotonic() < until:
                await asyncio.sleep(self.every_s)
                await self._strike()
                self._revive()
                if sum(self.struck.values()) % 20 == 0:
                    print(f"{time.monotonic() - started:6.0f} s, {sum(self.struck.values())} faults", flush=True)
            return self.over
        finally:
            watch.cancel()
            await self._end()

    async def _submit(self) -> None:
        os.environ.update({key: value for key, value in self.environ.items() if key.startswith("CHAOS")})
        sys.path.insert(0, str(TESTS / "chaos"))
        from job import loop  # type: ignore[import-not-found]

        ledger = await open_postgres(self.database.url())
        runtime = Runtime(ledger, Settings(environ={}, state_dir=self.folder / "state"))
        for number in range(self.loops):
            session = await runtime.start(loop, f"task {number}", definition="job:loop")
            self.ids.append(session.execution_id)
            await session.close()
        await runtime.close()

    # ---- workers

    def _begin(self, worker: Worker) -> None:
        log = (self.folder / f"{worker.name}.log").open("ab")
        with log:
            worker.process = subprocess.Popen(
                [*worker.place.prefix, str(COMMAND), "worker", "--concurrency", str(self.slots), *self._where(worker)],
                env=self.environ,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        worker.stopped = False

    def _where(self, worker: Worker) -> list[str]:
        database = worker.place.ways[DATABASE]
        flags = ["--store", self.database.url(database.port, database.host)]
        if self.temporal:
            way = worker.place.ways[TEMPORAL]
            flags += ["--engine", "temporal", "--address", f"{way.host}:{way.port}/default/{self.folder.name}"]
        return flags

    def _revive(self) -> None:
        for worker in self.workers:
            if worker.process is None or worker.process.poll() is not None:
                self._begin(worker)

    # ---- faults

    async def _strike(self) -> None:
        up = [worker for worker in self.workers if worker.pid in self.owners and not worker.stopped]
        victim = self.chance.choice(up or self.workers)
        kinds = (
            ["kill"] * 4
            + ["stop"] * 4
            + [f"cut from {DATABASE}"] * 4
            + [f"cut from {TEMPORAL}", "cut from both"] * (4 * bool(self.temporal))
            + ["reset"] * 2
            + ["restart"]
            + ["disk full"] * self.database.small
        )
        how = self.chance.choice(kinds)
        if how in ("restart", "disk full") and self.chance.random() < 0.5:
            how = "reset"
        if how.startswith(("kill", "stop", "cut")) and len(up) < 2:
            how = "reset"  # those that have just been started are let to get up: a fault that hits nothing is none
        self.struck[how] += 1
        span = self.chance.choice((0.3, 0.3, 1.0, 5.0))
        match how:
            case "kill":
                await self._note(victim, "kill")
                self._signal(victim, signal.SIGKILL)
            case "stop":
                if span > 3:
                    await self._note(victim, "stop")
                victim.stopped = True
                self._signal(victim, signal.SIGSTOP)
                self._later(span, lambda: self._wake(victim))
            case "reset":
                for way in victim.place.ways.values():
                    way.reset()
            case "restart":
                self._disturb()
                await asyncio.to_thread(self.database.restart)
            case _ if how.startswith("cut from "):
                span = self.chance.choice((span, 8.0)) if self.temporal else span
                if span > 3 and how != f"cut from {TEMPORAL}":  # who is cut from Temporal alone keeps what it has
                    await self._note(victim, "cut")
                ways = [way for name, way in victim.place.ways.items() if how in (f"cut from {name}", "cut from both")]
                for way in ways:
                    way.cut()
                    self._later(span, way.heal)
            case _:
                self._disturb()
                await asyncio.to_thread(self.database.fill)
                await asyncio.sleep(self.chance.choice((0.5, 2.0)))
                await asyncio.to_thread(self.database.free)

    def _signal(self, worker: Worker, number: signal.Signals) -> None:
        if worker.process is not None and worker.process.poll() is None:
            worker.process.send_signal(number)

    def _wake(self, worker: Worker) -> None:
        self._signal(worker, signal.SIGCONT)
        worker.stopped = False

    def _later(self, span: float, what: Any) -> None:
        asyncio.get_running_loop().call_later(span, what)

    def _disturb(self) -> None:
        """Takeovers under way are not held against the aims: the store itself is away."""
        for one in self.takeovers:
            one.disturbed = one.disturbed or one.seconds is None

    # ---- the watch

    async def _note(self, victim: Worker, how: str) -> None:
        try:
            rows = await self._rows("SELECT name, epoch FROM treadle_executions WHERE owner LIKE %s", f"%:{victim.pid}")
        except psycopg.Error:
            return
        free = sum(one.pid in self.owners and not one.stopped and one is not victim for one in self.workers)
        for name, epoch in rows:
            self.takeovers.append(Takeover(name, how, epoch, time.monotonic(), disturbed=free == 0))

    async def _rows(self, sql: str, *values: Any) -> list[Any]:
        connecting = psycopg.AsyncConnection.connect(self.database.url(), autocommit=True, connect_timeout=2)
        async with await connecting as connection:
            return await (await connection.execute(sql.encode(), values)).fetchall()

    async def _watch(self) -> None:
        """Sees takeovers, and when all is over."""
        sql = """SELECT e.name, e.epoch, e.token, s.body, e.owner FROM treadle_executions AS e
                 LEFT JOIN treadle_summaries AS s ON s.execution = e.id"""
        while not self.over:
            await asyncio.sleep(0.1)
            try:
                rows = await self._rows(sql)
            except (psycopg.Error, OSError):
                continue
            now = time.monotonic()
            self.owners = {int(owner.rpartition(":")[2]) for _, _, token, _, owner in rows if token and owner}
            epochs = {name: (epoch, token) for name, epoch, token, *_ in rows}
            for one in self.takeovers:
                if one.seconds is None and (epochs[one.execution][0] > one.epoch or epochs[one.execution][1] is None):
                    one.seconds = now - one.struck
            self.over = all(body and b'"status":"running"' not in body for _, _, _, body, _ in rows)

    async def _end(self) -> None:
        for worker in self.workers:
            for way in worker.place.ways.values():
                way.heal()
            self._signal(worker, signal.SIGCONT)
            if worker.process is not None:
                worker.process.kill()
                worker.process.wait()
        await self.network.close()
        self.database.free()

    def close(self) -> None:
        self.endpoint.close()
        self.database.close()
