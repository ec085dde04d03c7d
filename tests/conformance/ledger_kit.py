"""What the ledger's conformance tests share: the stores that they run on, batches in short, crash points that block."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from pathlib import Path

from support import postgres
from treadle.core.codec import encode
from treadle.core.errors import TreadleError
from treadle.core.messages import Prompted
from treadle.ledger.inmemory import InMemoryLedger, MemoryStore
from treadle.ledger.postgres import open_postgres
from treadle.ledger.sqlite import open_sqlite
from treadle.ports.clock import CrashPoints
from treadle.ports.ledger import Batch, Ledger, Ownership, Record


class Store(ABC):
    """One store, empty at first. Each `open` stands for a process of its own; all of them see the same executions."""

    @abstractmethod
    async def open(self) -> Ledger:
        """A ledger that the caller closes."""


class MemoryPlace(Store):
    def __init__(self, folder: Path) -> None:
        self.store = MemoryStore()

    async def open(self) -> Ledger:
        return InMemoryLedger(self.store)


class SqlitePlace(Store):
    synchronous = "FULL"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "store.db"

    async def open(self) -> Ledger:
        return await open_sqlite(self.path, synchronous=self.synchronous)


class PostgresPlace(Store):
    def __init__(self, folder: Path) -> None:
        self.url = postgres.new_store()

    async def open(self) -> Ledger:
        return await open_postgres(self.url)


STORES: dict[str, type[Store]] = {"inmemory": MemoryPlace, "sqlite": SqlitePlace, "postgres": PostgresPlace}


def record(seq: int, *, parent: int | None = None, text: str = "") -> Record:
    """A message that the codec can read back."""
    kind, version, body = encode(Prompted(parent=parent, text=text or f"message {seq}"))
    return Record(seq, kind, version, parent, 1_700_000_000_000_000 + seq, body)


def records(first: int, last: int) -> list[Record]:
    """A branch from `first` to `last`, each the child of the one before."""
    return [record(seq, parent=seq - 1 if seq > 1 else None) for seq in range(first, last + 1)]


def submit(ledger: Ledger, batch: Batch) -> asyncio.Future[TreadleError | None]:
    """The outcome of the batch, when there is one."""
    future: asyncio.Future[TreadleError | None] = asyncio.get_running_loop().create_future()
    ledger.submit(batch, future.set_result)
    return future


async def commit(ledger: Ledger, batch: Batch) -> None:
    """Durable when this returns; raises what it was refused with."""
    error = await submit(ledger, batch)
    if error is not None:
        raise error


async def started(ledger: Ledger, execution_id: str = "run-1", *, count: int = 0) -> Ownership:
    """A new execution with so many records."""
    ownership = await ledger.create(execution_id, kind="loop", owner="tester", at_us=1)
    if count:
        await commit(ledger, Batch(ownership, records(1, count)))
    return ownership


class Gate(CrashPoints):
    """Notes what is reached, and holds the writer at one point until it is opened."""

    def __init__(self, point: str = "") -> None:
        self.point = point
        self.seen: list[str] = []
        self.arrived, self.opened = threading.Event(), threading.Event()

    def reach(self, name: str) -> None:
        self.seen.append(name)
        if name == self.point:
            self.arrived.set()
            assert self.opened.wait(60)

    def close(self, point: str) -> None:
        """From now on the writer is held there."""
        self.point = point
        self.arrived.clear()
        self.opened.clear()

    def open(self) -> None:
        self.point = ""
        self.opened.set()
