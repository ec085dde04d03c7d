"""The one task that writes to a Postgres store: whatever waits, of all executions of the process, is one transaction.

A connection that breaks in a commit leaves nobody knowing whether it landed. The same batches are then offered again on a new connection,
and the sequence numbers in the store say which of them are there already.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
import psycopg

from treadle.core.errors import LedgerGap, LedgerUnavailable, StaleEpoch, TreadleError

from .faults import fault, lost
from .liveness import SQL

if TYPE_CHECKING:
    from treadle.ports.clock import CrashPoints
    from treadle.ports.ledger import Batch, Done

GROUP_MAX = 512  # jobs in one transaction
APPEND_MAX = 16  # records that are written by a statement of their own, which the server keeps prepared
RETRY_S = 0.2
SNAPSHOT_SPAN = 512  # records; besides the newest snapshot, one a span is kept

T = TypeVar("T")
Connection = psycopg.AsyncConnection[tuple[Any, ...]]
Fences = dict[int, tuple[int, str | None, int]]  # handle -> (epoch, token, head)


class BatchJob:
    """A batch of an execution's owner."""

    def __init__(self, batch: Batch, done: Done) -> None:
        self.batch = batch
        self.error: TreadleError | None = None
        self._done = done

    def settle(self) -> None:
        """Tells whoever waits."""
        self._done(self.error)


class Call(Generic[T]):
    """A change in a transaction of its own that somebody awaits the result of."""

    def __init__(self, work: Callable[[Connection], Awaitable[T]]) -> None:
        self.work = work
        self.error: TreadleError | None = None
        self.results: list[T] = []
        self._finished = anyio.Event()
        self._undo: Callable[[T], None] | None = None

    def settle(self) -> None:
        """Tells whoever waits; where it is gone, undoes the change."""
        self._finished.set()
        if self._undo is not None and self.error is None:
            self._undo(self.results[0])

    async def result(self, undo: Callable[[T], None] | None = None) -> T:
        """What the work returned, once it is durable, or what it raised. Shielded; see the SQLite writer's."""
        try:
            with anyio.CancelScope(shield=True):
                await self._finished.wait()
        except BaseException:
            self._undo = undo
            raise
        if self.error is not None:
            raise self.error
        return self.results[0]


Job = BatchJob | Call[Any]


class Writer:
    """Owns the writing connection until `close` returns. Belongs to the event loop that made it."""

    def __init__(
        self, connection: Connection, conninfo: str, where: str, token: str, points: CrashPoints, patience_s: float
    ) -> None:
        self._connection, self._conninfo, self._where, self._token = connection, conninfo, where, token
        self._points, self._patience_s = points, patience_s
        self.poisoned: set[tuple[int, int]] = set()
        self._queue: list[Job] = []
        self._wake = asyncio.Event()
        self._closed = False
        self._task = asyncio.create_task(self._run())

    def submit(self, job: Job) -> None:
        """Queues the job and returns at once."""
        if self._closed:
            job.error = LedgerUnavailable(f"{self._where}: the store has been closed.")
            asyncio.get_running_loop().call_soon(job.settle)
        else:
            self._queue.append(job)
            self._wake.set()

    async def close(self) -> None:
        """Writes what is queued. Idempotent."""
        self._closed = True
        self._wake.set()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([self._task])
            await self._connection.close()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                group = self._next_group()
                await self._commit(group)
                for job in group:
                    self._settle(job)
            if self._closed:
                return

    def _next_group(self) -> list[Job]:
        """Batches share a transaction; a call has one of its own."""
        calls = [index for index, job in enumerate(self._queue) if isinstance(job, Call)]
        end = min((max(calls[0], 1) if calls else len(self._queue)), GROUP_MAX)
        group, self._queue = self._queue[:end], self._queue[end:]
        return group

    def _settle(self, job: Job) -> None:
        try:
            job.settle()
        except Exception as error:  # noqa: BLE001 - told like any error of a callback; the others still hear
            asyncio.get_running_loop().call_exception_handler({"message": "a done callback raised", "exception": error})

    async def _commit(self, jobs: list[Job]) -> None:
        """All in one transaction; where that fails, each in one of its own, so that a bad job fails alone."""
        error = await self._surely(jobs)
        if error is None:
            return
        if len(jobs) == 1 or isinstance(error, LedgerUnavailable):
            for job in jobs:
                self._refuse(job, error)
        else:
            for job in jobs:
                await self._commit([job])

    def _refuse(self, job: Job, error: TreadleError) -> None:
        job.error = error
        if isinstance(job, BatchJob):
            own = job.batch.ownership
            self.poisoned.add((own.handle, own.epoch))

    async def _surely(self, jobs: list[Job]) -> TreadleError | None:
        """What went wrong; None when all are durable or refused. A broken connection is made anew, as long as patience lasts."""
        deadline = time.monotonic() + self._patience_s
        again = False
        while True:
            try:
                if self._connection.closed:
                    self._connection = await connect(self._conninfo)
                return await self._transact(jobs, again=again)
            except (psycopg.Error, OSError) as error:
                if not lost(error, self._connection) or time.monotonic() > deadline:
                    return fault(error, self._where)
                if any(isinstance(job, Call) for job in jobs):
                    return LedgerUnavailable(
                        f"{self._where}: the connection broke; whether this was done is unknown. Try again."
                    )
            again = True
            await asyncio.sleep(RETRY_S)

    async def _transact(self, jobs: list[Job], *, again: bool) -> TreadleError | None:
        connection = self._connection
        refused: list[tuple[BatchJob, TreadleError]] = []
        try:
            self._points.reach("ledger.before-commit")
            if len(jobs) > 1 or not await self._append(jobs[0]):
                async with connection.transaction():
                    if isinstance(call := jobs[0], Call):
                        call.results = [await call.work(connection)]
                    else:
                        refused = await self._write([job for job in jobs if isinstance(job, BatchJob)], again=again)
                    self._points.reach("ledger.in-transaction")
        except (psycopg.Error, OSError) as error:
            if lost(error, connection):
                raise
            return fault(error, self._where)
        except Exception as error:  # noqa: BLE001 - nothing is swallowed: whoever waits for these jobs is told
            return fault(error, self._where)
        for job, error in refused:
            self._refuse(job, error)
        self._points.reach("ledger.after-commit")
        return None

    async def _append(self, job: Job) -> bool:
        """Whether it was a batch of records and nothing else, and has been committed: one statement, so one way to the server.

        False: nothing has been written, and what is to be said of it, `_write` says.
        """
        if not isinstance(job, BatchJob) or not _only_records(job.batch):
            return False
        own, records = job.batch.ownership, job.batch.records
        if (own.handle, own.epoch) in self.poisoned or any(
            record.seq != number for number, record in enumerate(records, records[0].seq)
        ):
            return False
        values: list[Any] = [own.handle, own.epoch, self._token, records[0].seq - 1]
        for record in records:
            values += record
        return (await self._connection.execute(appending(len(records)), values, prepare=True)).rowcount > 0

    async def _write(self, jobs: list[BatchJob], *, again: bool) -> list[tuple[BatchJob, TreadleError]]:
        """Writes what may be written; what may not, with the reason."""
        handles = sorted({job.batch.ownership.handle for job in jobs})
        cursor = await self._connection.execute(SQL["fences"], (handles,))
        fences: Fences = {handle: (epoch, token, head) for handle, epoch, token, head in await cursor.fetchall()}
        refused: list[tuple[BatchJob, TreadleError]] = []
        bad: set[tuple[int, int]] = set()
        columns: tuple[list[Any], ...] = ([], [], [], [], [], [], [])
        accepted: list[Batch] = []
        for job in jobs:
            own = job.batch.ownership
            try:
                self._check(job.batch, fences, bad)
                if again and self._landed(job.batch, fences):
                    continue
                self._queue_records(job.batch, fences, columns)
            except TreadleError as error:
                refused.append((job, error))
                bad.add((own.handle, own.epoch))
            else:
                accepted.append(job.batch)
        if columns[0]:
            await self._connection.execute(SQL["add_records"], columns)
        for batch in accepted:
            await self._write_rest(batch, again=again and not batch.records)
        return refused

    def _check(self, batch: Batch, fences: Fences, bad: set[tuple[int, int]]) -> None:
        own = batch.ownership
        epoch, token, _ = fences.get(own.handle, (0, None, 0))
        if epoch != own.epoch or token != self._token:
            raise StaleEpoch(
                f"{own.execution_id} is another owner's by now (epoch {epoch or 'none'}, this one's was {own.epoch}): "
                "this one stops. Nothing is lost or done twice."
            )
        if (own.handle, own.epoch) in self.poisoned or (own.handle, own.epoch) in bad:
            raise LedgerGap(f"{own.execution_id}: an earlier batch was refused. Acquire the execution anew.")

    def _landed(self, batch: Batch, fences: Fences) -> bool:
        """Whether a commit whose outcome nobody heard of is in the store: only we can have written at this epoch."""
        return bool(batch.records) and fences[batch.ownership.handle][2] >= batch.records[-1].seq

    def _queue_records(self, batch: Batch, fences: Fences, columns: tuple[list[Any], ...]) -> None:
        own = batch.ownership
        epoch, token, head = fences[own.handle]
        for number, record in enumerate(batch.records, head + 1):
            if record.seq != number:
                raise LedgerGap(f"{own.execution_id}: record {record.seq} does not follow {number - 1}.")
        head += len(batch.records)
        if batch.snapshot is not None and batch.snapshot.seq > head:
            raise LedgerGap(f"{own.execution_id}: a snapshot of {batch.snapshot.seq} is beyond the last record {head}.")
        for record in batch.records:
            for column, value in zip(columns, (own.handle, *record), strict=True):
                column.append(value)
        fences[own.handle] = (epoch, token, head)

    async def _write_rest(self, batch: Batch, *, again: bool) -> None:
        """With `again`, what has been taken may have been taken by the commit that nobody heard of."""
        own, execute = batch.ownership, self._connection.execute
        for task, receipt in batch.receipts:
            await execute(SQL["add_receipt"], (own.handle, task, receipt))
        for blob in batch.blobs:
            await execute(SQL["add_blob"], blob)
        for name, kind, body in batch.opened:
            await execute(SQL["open_suspension"], (own.handle, name, kind, body))
        for name, body in batch.closed:
            if (await execute(SQL["close_suspension"], (body, own.handle, name))).rowcount != 1:
                raise LedgerGap(f"{own.execution_id}: {name!r} is not open, so it cannot be answered.")
        for posted in batch.taken:
            if (await execute(SQL["take_posted"], (posted, own.handle))).rowcount != 1 and not again:
                raise LedgerGap(f"{own.execution_id}: request {posted} is not waiting, so it cannot be taken.")
        if (snapshot := batch.snapshot) is not None:
            await execute(SQL["put_snapshot"], (own.handle, *snapshot))
            await execute(SQL["thin_snapshots"], {"handle": own.handle, "seq": snapshot.seq, "span": SNAPSHOT_SPAN})
        if batch.summary is not None:
            await execute(SQL["put_summary"], (own.handle, *batch.summary))


def _only_records(batch: Batch) -> bool:
    others = (batch.receipts, batch.blobs, batch.opened, batch.closed, batch.taken, batch.snapshot, batch.summary)
    return 0 < len(batch.records) <= APPEND_MAX and not any(others)


@cache
def appending(count: int) -> bytes:
    """The statement for so many records. Plain values are sent in half the time that arrays take."""
    before, values, rest = SQL["append"].partition(b"(VALUES")
    row, end, after = rest.rpartition(b"\n)")
    return b"".join((before, values, b",".join([row] * count), end, after))


async def connect(conninfo: str) -> Connection:
    """A connection whose commits are synced before they return. psycopg.Error, OSError."""
    connection = await psycopg.AsyncConnection.connect(conninfo, autocommit=True, connect_timeout=10)
    try:
        await connection.execute("SET synchronous_commit = on")
    except BaseException:
        with contextlib.suppress(psycopg.Error):
            await connection.close()
        raise
    return connection
