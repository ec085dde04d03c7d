"""The ledger in a SQLite file: write-ahead log, full sync, a writer thread, readers on connections of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import checkpoint

from treadle.core.errors import LedgerUnavailable, OwnerAlive
from treadle.ports.clock import NO_CRASH_POINTS, CrashPoints
from treadle.ports.ledger import (
    Batch,
    Done,
    ExecutionRow,
    Ledger,
    Ownership,
    Posted,
    Record,
    Snapshot,
    Vacuumed,
)

from .changes import Changes
from .connection import located, open_writer, rewrite
from .owners import Owners
from .reader import MAX_INTEGER, Reader
from .writer import BatchJob, Call, Writer

SLICE = 500  # rows read before the event loop runs again: one to two milliseconds
INLINE_BLOB_BYTES = 1_048_576  # a larger one is read and digested in a worker thread
BUSY_TIMEOUT_S = 10.0

T = TypeVar("T")


async def open_sqlite(
    path: str | Path,
    *,
    points: CrashPoints = NO_CRASH_POINTS,
    synchronous: str = "FULL",
    busy_timeout_s: float = BUSY_TIMEOUT_S,
) -> SqliteLedger:
    """The store in this file, made with its folders where there is none, migrated where it is older.

    `busy_timeout_s` is how long another process may keep it locked. `synchronous` other than FULL or EXTRA gives up
    durability.
    LedgerTooNew, LedgerDamaged (also for a file of somebody else), LedgerReadOnly, LedgerLocked, LedgerUnavailable.
    """
    file = located(path)
    db = await anyio.to_thread.run_sync(
        partial(open_writer, file, synchronous=synchronous, busy_timeout_s=busy_timeout_s)
    )
    return SqliteLedger(file, db, points=points, busy_timeout_s=busy_timeout_s)


class SqliteLedger(Ledger):
    """Made by `open_sqlite`; belongs to the event loop that made it. Any number of processes may open the same file.

    Reads run on the event loop's thread, in slices: a worker thread would take the interpreter's lock once a row, which
    is slower.
    """

    def __init__(self, path: Path, db: sqlite3.Connection, *, points: CrashPoints, busy_timeout_s: float) -> None:
        self.url = f"sqlite:///{path}"
        self._path, self._busy_timeout_s = path, busy_timeout_s
        self._owners = Owners(path)
        self._changes = Changes(db, self._owners, points)
        self._open_reader: Reader | None = Reader(path, self._changes, busy_timeout_s=busy_timeout_s)
        self._writer = Writer(db, path, self._changes, points, busy_timeout_s=busy_timeout_s)
        self._held = 0  # executions owned here: a lone one shares its commits with nobody

    async def create(self, execution_id: str, *, kind: str, owner: str, at_us: int) -> Ownership:
        made = await self._change(lambda: self._changes.create(execution_id, kind, owner, at_us), self._release_soon)
        self._held += 1
        return made

    async def acquire(self, execution_id: str, *, owner: str, force: bool = False) -> Ownership:
        taken = await self._change(lambda: self._changes.acquire(execution_id, owner, force=force), self._release_soon)
        self._held += 1
        return taken

    async def release(self, ownership: Ownership) -> None:
        self._held -= 1
        await self._change(lambda: self._changes.release(ownership))

    async def post(self, execution_id: str, kind: str, body: bytes, *, at_us: int) -> int:
        return await self._change(lambda: self._changes.post(execution_id, kind, body, at_us))

    def submit(self, batch: Batch, done: Done) -> None:
        self._writer.submit(BatchJob(self._changes, batch, done))

    def commit_now(self, batch: Batch, done: Done) -> bool:
        return self._held <= 1 and self._writer.commit_now(BatchJob(self._changes, batch, done))

    async def row(self, execution_id: str) -> ExecutionRow:
        return self._reader.row(execution_id)

    async def rows(self, *, limit: int | None = None) -> list[ExecutionRow]:
        found: list[ExecutionRow] = []
        before = MAX_INTEGER
        while (wanted := _slice(limit, len(found))) > 0:
            page, before = self._reader.rows(before, wanted)
            found += page
            if len(page) < wanted:
                break
            await checkpoint()
        return found

    async def snapshot(self, execution_id: str, *, at: int | None = None) -> Snapshot | None:
        return self._reader.snapshot(self._reader.handle(execution_id), at)

    async def records(
        self, execution_id: str, *, after: int = 0, to: int | None = None, limit: int | None = None
    ) -> list[Record]:
        handle = self._reader.handle(execution_id)
        found: list[Record] = []
        while (wanted := _slice(limit, len(found))) > 0:
            page = self._reader.records(handle, after, MAX_INTEGER if to is None else to, wanted)
            found += page
            if len(page) < wanted:
                break
            after = page[-1].seq
            await checkpoint()
        return found

    async def chain(self, execution_id: str, leaf: int | None) -> list[Record]:
        handle = self._reader.handle(execution_id)
        found: list[Record] = []
        while leaf is not None:
            found += self._reader.branch(handle, leaf, SLICE)
            leaf = found[-1].parent
            if leaf is not None:
                await checkpoint()
        found.reverse()
        return found

    async def receipts(self, execution_id: str, task: str) -> set[str]:
        handle = self._reader.handle(execution_id)
        found: set[str] = set()
        page = self._reader.receipts(handle, task, "", SLICE)
        while page:
            found.update(page)
            await checkpoint()
            page = self._reader.receipts(handle, task, page[-1], SLICE)
        return found

    async def blob(self, address: str) -> bytes:
        if self._reader.blob_size(address) <= INLINE_BLOB_BYTES:
            return self._reader.blob(address)
        return await self._aside(lambda reader: reader.blob(address))

    async def suspensions(self, execution_id: str) -> list[tuple[str, str, bytes, bytes | None]]:
        return self._reader.suspensions(self._reader.handle(execution_id))

    async def posted(self, execution_id: str) -> list[Posted]:
        return self._reader.posted(self._reader.handle(execution_id))

    async def verify(self) -> list[str]:
        return await self._aside(Reader.verify)

    async def remove(self, execution_id: str) -> None:
        await self._change(lambda: self._changes.remove(execution_id))
        self._reader.forget(execution_id)

    async def vacuum(self) -> Vacuumed:
        for row in await self.rows():
            if row.owner_alive:
                raise OwnerAlive(
                    f"{row.execution_id} is being run by {row.owner}, and the whole file would be locked. Do it when nothing runs."
                )
        before = await anyio.to_thread.run_sync(self._size)
        blobs = await self._change(self._changes.drop_blobs)
        await anyio.to_thread.run_sync(partial(rewrite, self._path, busy_timeout_s=self._busy_timeout_s))
        return Vacuumed(blobs, before, await anyio.to_thread.run_sync(self._size))

    def _size(self) -> int:
        files = (self._path, self._path.with_name(self._path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    async def close(self) -> None:
        if self._open_reader is not None:
            self._open_reader.close()
            self._open_reader = None
        self._writer.close()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._writer.join)
        self._owners.release()

    @property
    def _reader(self) -> Reader:
        if self._open_reader is None:
            raise LedgerUnavailable(f"{self._path}: the store has been closed.")
        return self._open_reader

    async def _change(self, work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
        call = Call(self._changes, work)
        self._writer.submit(call)
        return await call.result(undo)

    def _release_soon(self, ownership: Ownership) -> None:
        """Of an ownership that nobody was there to receive."""
        self._writer.submit(Call(self._changes, lambda: self._changes.release(ownership)))

    async def _aside(self, read: Callable[[Reader], T]) -> T:
        """A long read in a worker thread, on a connection of its own."""
        _ = self._reader  # closed: refuse

        def run() -> T:
            reader = Reader(self._path, self._changes, busy_timeout_s=self._busy_timeout_s)
            try:
                return read(reader)
            finally:
                reader.close()

        return await anyio.to_thread.run_sync(run)


def _slice(limit: int | None, have: int) -> int:
    return SLICE if limit is None else min(SLICE, limit - have)
