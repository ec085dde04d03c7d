"""The one connection that writes to a SQLite store: whatever waits, of all executions of the process, is one transaction.

No timer delays a commit: while one is being synced on the writer's thread, the next group gathers. First in, first out. A lone
execution has nobody to share a commit with, so handing it to another thread and back would only cost time: its commits are made
where they are asked for, as long as they are quick (decision 13).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

from treadle.core.errors import LedgerLocked, LedgerUnavailable, TreadleError

from .faults import fault

if TYPE_CHECKING:
    from treadle.ports.clock import CrashPoints
    from treadle.ports.ledger import Batch, Done

    from .changes import Changes

GROUP_MAX = 512  # jobs in one transaction
QUICK_S = 0.005  # a commit that takes longer would hold the event loop up
SLOW_REST = 8  # commits that go to the thread after one that was not quick: a busy disk has single slow ones

T = TypeVar("T")


class Job(ABC):
    """One thing to be done in a transaction. `error` says why it was not."""

    error: TreadleError | None = None

    @abstractmethod
    def apply(self) -> None:
        """Does it, on the writer's thread. Whatever it raises, nothing of it is stored, and the other jobs are."""

    @abstractmethod
    def settle(self) -> None:
        """Tells whoever waits, on the thread of the event loop, when it is durable or has failed."""

    def refuse(self, error: TreadleError) -> None:
        """It has failed; on the writer's thread, before any later job is looked at."""
        self.error = error


class BatchJob(Job):
    """A batch of an execution's owner."""

    def __init__(self, changes: Changes, batch: Batch, done: Done) -> None:
        self._changes, self._batch, self._done = changes, batch, done

    def apply(self) -> None:
        self._changes.write(self._batch)

    def refuse(self, error: TreadleError) -> None:
        super().refuse(error)
        self._changes.poison(self._batch.ownership)

    def settle(self) -> None:
        self._done(self.error)


class Call(Job, Generic[T]):
    """A change that somebody awaits the result of."""

    def __init__(self, changes: Changes, work: Callable[[], T]) -> None:
        self._changes, self._work = changes, work
        self._finished = anyio.Event()
        self._result: list[T] = []
        self._undo: Callable[[T], None] | None = None

    def apply(self) -> None:
        self._changes.add_records()  # it may look at them
        self._result = [self._work()]

    def settle(self) -> None:
        self._finished.set()
        if self._undo is not None and self.error is None:
            self._undo(self._result[0])

    async def result(self, undo: Callable[[T], None] | None = None) -> T:
        """What the work returned, once it is durable, or what it raised.

        The wait is shielded, since nobody else would hear of the result. A native `cancel()` passes the shield: then
        `undo` is called with the result when there is one.
        """
        try:
            with anyio.CancelScope(shield=True):
                await self._finished.wait()
        except BaseException:
            self._undo = undo
            raise
        if self.error is not None:
            raise self.error
        return self._result[0]


class Writer:
    """Owns the writing connection until `join` returns. Made and used on the event loop's thread."""

    def __init__(
        self, db: sqlite3.Connection, path: Path, changes: Changes, points: CrashPoints, *, busy_timeout_s: float
    ) -> None:
        self._db, self._path, self._changes, self._points = db, path, changes, points
        self._busy_timeout_ms = int(busy_timeout_s * 1000)
        self._waits = True  # whether the connection waits for locks of other processes
        self._turn = threading.Lock()  # whose turn it is to use the connection
        self._outstanding = 0  # jobs queued and not yet settled
        self._slow = 0  # commits until the next one may be made at once
        self._name, self._file = str(path), path.stat()
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"ledger-writer {path.name}", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Queues the job and returns at once."""
        if self._closed:
            job.error = LedgerUnavailable(f"{self._path}: the store has been closed.")
            self._loop.call_soon(job.settle)
        else:
            self._outstanding += 1
            self._queue.put(job)

    def commit_now(self, job: Job) -> bool:
        """Whether it has been committed, or refused, and told so. False: it was not touched."""
        if self._outstanding or self._closed or not self._turn.acquire(blocking=False):
            return False
        try:
            if self._slow:
                self._slow -= 1
                return False
            start = time.perf_counter()
            self._wait_for_locks(False)
            error = self._transact([job])
            if isinstance(error, LedgerLocked):
                return False  # the thread waits for the lock
            if time.perf_counter() - start > QUICK_S:
                self._slow = SLOW_REST
            if error is not None:
                job.refuse(error)
        finally:
            self._turn.release()
        job.settle()
        return True

    def close(self) -> None:
        """Takes no more jobs."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)

    def join(self) -> None:
        """Waits until everything queued is committed and the connection is closed. Blocks."""
        self._thread.join()

    def _run(self) -> None:
        more = True
        while more:
            group, more = self._next_group()
            if group:
                with self._turn:
                    self._wait_for_locks(True)
                    self._commit(group)
                self._tell(group)
        self._checkpoint_and_close()

    def _next_group(self) -> tuple[list[Job], bool]:
        """What waits, at least one job; and whether there may be more to come."""
        group: list[Job] = []
        job = self._queue.get()
        while job is not None:
            group.append(job)
            if len(group) == GROUP_MAX or self._queue.empty():
                return group, True
            job = self._queue.get()
        return group, False

    def _commit(self, jobs: list[Job]) -> None:
        """Commits all in one transaction; where that fails, each in one of its own, so that a bad job fails alone."""
        error = self._transact(jobs)
        if error is None:
            return
        if len(jobs) == 1 or isinstance(error, LedgerLocked):  # a lock that was waited for once is not waited for again
            for job in jobs:
                job.refuse(error)
        else:
            for job in jobs:
                self._commit([job])

    def _transact(self, jobs: list[Job]) -> TreadleError | None:
        """What went wrong; None when all are durable."""
        try:
            self._points.reach("ledger.before-commit")
            self._check_file()
            self._db.execute("BEGIN IMMEDIATE")
            self._changes.begun()
            for job in jobs:
                job.apply()
            self._changes.add_records()
            self._points.reach("ledger.in-transaction")
            self._db.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - nothing is swallowed: whoever waits for these jobs is told
            self._roll_back()
            return fault(error, self._path)
        self._points.reach("ledger.after-commit")
        return None

    def _wait_for_locks(self, waits: bool) -> None:
        if waits != self._waits:
            self._db.execute(f"PRAGMA busy_timeout = {self._busy_timeout_ms if waits else 0}")
            self._waits = waits

    def _check_file(self) -> None:
        """A commit to a file that has no name any more would be lost in silence."""
        try:
            same = os.path.samestat(self._file, os.stat(self._name))  # noqa: PTH116 - at each commit: three times quicker
        except FileNotFoundError:
            same = False
        if not same:
            raise LedgerUnavailable(f"{self._path}: the file was removed or replaced while in use. Open it anew.")

    def _roll_back(self) -> None:
        self._changes.rolled_back()
        if self._db.in_transaction:  # SQLite ends some failed transactions by itself
            with contextlib.suppress(sqlite3.Error):  # the first error is the one to tell
                self._db.execute("ROLLBACK")

    def _tell(self, group: list[Job]) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed, and with it went everybody who waited
            self._loop.call_soon_threadsafe(self._settle, group)

    def _settle(self, group: list[Job]) -> None:
        """One wake-up of the event loop for a whole group; a callback that raises does not keep the others from hearing."""
        self._outstanding -= len(group)
        for index, job in enumerate(group):
            try:
                job.settle()
            except BaseException:
                rest = group[index + 1 :]
                self._outstanding += len(rest)
                self._loop.call_soon(self._settle, rest)
                raise

    def _checkpoint_and_close(self) -> None:
        with contextlib.suppress(sqlite3.Error):  # it only tidies: what is committed is safe in the log
            self._db.execute("PRAGMA busy_timeout = 0")  # readers of other processes are not waited for
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db.close()
