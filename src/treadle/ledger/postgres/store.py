"""A ledger on a Postgres server: one writer, a few readers, and a connection that keeps us alive and hears of requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from treadle.core.digests import blob_address
from treadle.core.errors import (
    ConfigurationError,
    InputError,
    LedgerDamaged,
    LedgerUnavailable,
    OwnerAlive,
    StaleEpoch,
    UnknownExecution,
)
from treadle.ledger.audit import Audited, audit, named_blobs
from treadle.ledger.lookup import NAMED, NEWEST, PREFIX_MIN, ambiguous, busy, unknown, walked
from treadle.ledger.statements import REMOVALS
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
    Summary,
    Vacuumed,
)

from .faults import fault
from .liveness import LEASE_S, SQL, Liveness
from .schema import migrate
from .writer import RETRY_S, BatchJob, Call, Connection, Writer, connect

READERS = 8  # connections for reading, at most
SLICE = 2000  # rows of one read
PATIENCE_S = 10.0  # how long a server that went away is waited for
MAX_INTEGER = 2**63 - 1
NAMES_SEARCHED = 200

T = TypeVar("T")


async def open_postgres(
    url: str, *, points: CrashPoints = NO_CRASH_POINTS, create: bool = True, patience_s: float = PATIENCE_S
) -> PostgresLedger:
    """The store in this database, `postgresql://USER@HOST:PORT/DATABASE`; its tables are made where there are none.

    ConfigurationError where there are none and `create` is false; LedgerTooNew, LedgerUnavailable, LedgerReadOnly.
    """
    where = without_password(url)
    try:
        connection = await connect(url)
    except (psycopg.Error, OSError) as error:
        raise fault(error, where) from error
    try:
        if not await migrate(connection, where, create=create):
            raise ConfigurationError(
                f"There is no store at {where}. Start a loop first (treadle run), or name it: --store."
            )
    except BaseException as error:
        await connection.close()
        if isinstance(error, psycopg.Error | OSError):
            raise fault(error, where) from error
        raise
    return PostgresLedger(url, connection, points=points, patience_s=patience_s)


def without_password(url: str) -> str:
    """The address as it may be shown."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")
    user = host[0].partition(":")[0]
    query = "&".join(part for part in parts.query.split("&") if not part.lower().startswith("password"))
    return f"{parts.scheme}://{f'{user}@' if user else ''}{host[2]}{parts.path}{'?' if query else ''}{query}"


class Release(Call[None]):
    """Gives an ownership up; where the store cannot be reached, it stays owed."""

    def __init__(self, work: Callable[[Connection], Awaitable[None]], own: Ownership, owed: list[Ownership]) -> None:
        super().__init__(work)
        self._own, self._owed = own, owed

    def settle(self) -> None:
        if isinstance(self.error, LedgerUnavailable):
            self._owed.append(self._own)
        super().settle()


class PostgresLedger(Ledger):
    """Made by `open_postgres`; belongs to the event loop that made it. Any number of processes and machines may open the same store.

    An owner lives as long as it renews its row: for 3 s after the last time, by the server's clock. One that could not renew for 2 s asks
    the store, before it pays or changes anything, whether it still owns what it works on.
    """

    def __init__(self, url: str, connection: Connection, *, points: CrashPoints, patience_s: float) -> None:
        self.url, self.address = without_password(url), url
        self._points, self._patience_s = points, patience_s
        self._live = Liveness(url, self._settle_up)
        self._writer = Writer(connection, url, self.url, self._live.token, points, patience_s)
        self._pool = AsyncConnectionPool(
            url, min_size=1, max_size=READERS, open=False, kwargs={"autocommit": True}, timeout=patience_s
        )
        self._opened = self._closed = False
        self._handles: dict[str, int] = {}
        self._sure: dict[
            tuple[int, int], int
        ] = {}  # (handle, epoch) -> gaps in our lease when it was last known to be ours
        self._owed: list[Ownership] = []  # to be given up as soon as the store can be reached

    # ---- owners

    async def create(self, execution_id: str, *, kind: str, owner: str, at_us: int) -> Ownership:
        async def work(connection: Connection) -> Ownership:
            await self._renew(connection)
            cursor = await connection.execute(
                SQL["create_execution"], (execution_id, kind, at_us, owner, self._live.token)
            )
            row = await cursor.fetchone()
            if row is None:
                raise InputError(f"There is an execution {execution_id!r} in this store already.")
            return Ownership(execution_id, row[0], epoch=1, head=0)

        return await self._own(work)

    async def acquire(self, execution_id: str, *, owner: str, force: bool = False) -> Ownership:
        async def work(connection: Connection) -> Ownership:
            await self._renew(connection)
            row = await (await connection.execute(SQL["owner_of"], (execution_id,))).fetchone()
            if row is None:
                raise await self._unknown(execution_id)
            handle, epoch, last_owner, token = row
            found = await connection.execute(SQL["head_and_liveness"], (handle, token, LEASE_S))
            ((head, fresh),) = await found.fetchall()
            if not force and self._owned(handle, epoch, token, fresh):
                raise busy(execution_id, last_owner)
            await connection.execute(SQL["take_over"], (owner, self._live.token, handle))
            self._points.reach("ledger.in-acquire")
            return Ownership(execution_id, handle, epoch + 1, head)

        return await self._own(work)

    async def _own(self, work: Callable[[Connection], Awaitable[Ownership]]) -> Ownership:
        taken: list[Ownership] = []

        async def noted(connection: Connection) -> Ownership:
            taken.append(own := await work(connection))
            self._sure[own.handle, own.epoch] = self._live.gaps
            return own

        call = Call(noted)
        self._writer.submit(call)
        try:
            return await call.result(self._release_soon)
        except LedgerUnavailable:  # it may be ours without our knowing: nobody could go on with it as long as we live
            self._owed += taken
            raise
        finally:
            if taken:
                self._live.start()

    async def _renew(self, connection: Connection) -> None:
        sent = time.monotonic()
        await connection.execute(SQL["sweep_owners"])
        await connection.execute(SQL["renew"], (self._live.token,))
        self._live.renewed(sent)

    async def release(self, ownership: Ownership) -> None:
        call = self._releasing(ownership)
        self._writer.submit(call)
        await call.result()

    def _releasing(self, own: Ownership) -> Call[None]:
        async def work(connection: Connection) -> None:
            await connection.execute(SQL["release"], (own.handle, own.epoch, self._live.token))
            self._sure.pop((own.handle, own.epoch), None)

        return Release(work, own, self._owed)

    def _release_soon(self, ownership: Ownership) -> None:
        """Of an ownership that nobody was there to receive."""
        self._writer.submit(self._releasing(ownership))

    def _settle_up(self) -> None:
        """The store can be reached again: what could not be given up is given up now."""
        owed = self._owed[:]
        self._owed.clear()
        for ownership in owed:
            self._release_soon(ownership)

    def lapsed(self, ownership: Ownership) -> bool:
        # A lease that was renewed after a gap looks as good as any, though somebody may have taken over in between.
        return self._live.lapsed() or self._sure.get((ownership.handle, ownership.epoch)) != self._live.gaps

    async def confirm(self, ownership: Ownership) -> None:
        async def work(connection: Connection) -> None:
            await self._renew(connection)
            row = await (await connection.execute(SQL["confirm"], (ownership.handle,))).fetchone()
            if row != (ownership.epoch, self._live.token):
                raise StaleEpoch(
                    f"{ownership.execution_id}: another owner has taken over while this one was away; it must stop."
                )
            self._sure[ownership.handle, ownership.epoch] = self._live.gaps

        call = Call(work)
        self._writer.submit(call)
        await call.result()

    # ---- writing

    def submit(self, batch: Batch, done: Done) -> None:
        self._writer.submit(BatchJob(batch, done))

    async def post(self, execution_id: str, kind: str, body: bytes, *, at_us: int) -> int:
        handle = await self._handle(execution_id)

        async def work(connection: Connection) -> int:
            row = await (await connection.execute(SQL["post"], (handle, kind, body, at_us))).fetchone()
            assert row is not None
            await connection.execute(SQL["notify"], (str(handle),))
            return row[0]

        call = Call(work)
        self._writer.submit(call)
        posted = await call.result()
        self._live.loud(handle)
        return posted

    # ---- reading

    async def row(self, execution_id: str) -> ExecutionRow:
        found = await self._all("row", LEASE_S, execution_id)
        if not found and execution_id == NEWEST:
            found = await self._all("rows", LEASE_S, MAX_INTEGER, 1)
        if not found and len(execution_id) >= PREFIX_MIN:
            names = [name for (name,) in await self._all("names_from", execution_id, NAMED + 1)]
            if len(names) > 1:
                raise ambiguous(execution_id, names)
            found = await self._all("row", LEASE_S, names[0]) if names else []
        if not found:
            raise await self._unknown(execution_id)
        return self._row(found[0])

    async def rows(self, *, limit: int | None = None) -> list[ExecutionRow]:
        found = await self._all("rows", LEASE_S, MAX_INTEGER, MAX_INTEGER if limit is None else limit)
        return [self._row(row) for row in found]

    async def snapshot(self, execution_id: str, *, at: int | None = None) -> Snapshot | None:
        handle = await self._handle(execution_id)
        found = await self._all("snapshot", handle, MAX_INTEGER if at is None else at)
        return Snapshot._make(found[0]) if found else None

    async def records(
        self, execution_id: str, *, after: int = 0, to: int | None = None, limit: int | None = None
    ) -> list[Record]:
        handle = await self._handle(execution_id)
        bounds = (MAX_INTEGER if to is None else to, MAX_INTEGER if limit is None else limit)
        return [Record._make(row) for row in await self._all("records", handle, after, *bounds)]

    async def chain(self, execution_id: str, leaf: int | None) -> list[Record]:
        handle = await self._handle(execution_id)
        found: list[Record] = []
        while leaf is not None:
            page = await self._select("branch", {"handle": handle, "leaf": leaf, "limit": SLICE})
            found += walked([Record._make(row) for row in page], leaf)
            leaf = found[-1].parent
        found.reverse()
        return found

    async def receipts(self, execution_id: str, task: str) -> set[str]:
        handle = await self._handle(execution_id)
        return {receipt for (receipt,) in await self._all("receipts", handle, task)}

    async def blob(self, address: str) -> bytes:
        found = await self._all("blob", address)
        if not found or blob_address(found[0][0]) != address:
            raise LedgerDamaged(f"{self.url}: blob {address} is {'not what was stored' if found else 'missing'}.")
        return found[0][0]

    async def suspensions(self, execution_id: str) -> list[tuple[str, str, bytes, bytes | None]]:
        return await self._all("suspensions", await self._handle(execution_id))

    async def posted(self, execution_id: str) -> list[Posted]:
        handle = await self._handle(execution_id)
        if self._live.is_quiet(handle):
            return []
        self._live.looking(handle)
        found = [Posted._make(row) for row in await self._all("posted", handle)]
        if found:
            self._live.loud(handle)
        return found

    def hears(self, execution_id: str) -> bool:
        """Whether a request to this execution would be announced, so that `posted` need not ask the server."""
        return self._live.is_quiet(self._handles.get(execution_id, 0))

    async def verify(self) -> list[str]:
        async with self._reading() as connection, connection.transaction():
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            executions: list[Audited] = []
            for handle, name in await (await connection.execute(SQL["all_executions"])).fetchall():
                records = await (
                    await connection.execute(SQL["records"], (handle, 0, MAX_INTEGER, MAX_INTEGER))
                ).fetchall()
                folded = await (await connection.execute(SQL["snapshots_and_summary"], {"handle": handle})).fetchall()
                executions.append(Audited(name, [Record._make(row) for row in records], _pairs(folded)))
            blobs = await (await connection.execute(SQL["all_blobs"])).fetchall()
        return list(audit(executions, [(address, content) for address, content in blobs]))

    async def remove(self, execution_id: str) -> None:
        async def work(connection: Connection) -> None:
            row = await (await connection.execute(SQL["owner_of"], (execution_id,))).fetchone()
            if row is None:
                raise await self._unknown(execution_id)
            handle, epoch, owner, token = row
            found = await connection.execute(SQL["head_and_liveness"], (handle, token, LEASE_S))
            ((_, fresh),) = await found.fetchall()
            if self._owned(handle, epoch, token, fresh):
                raise OwnerAlive(f"{execution_id} is being run by {owner}: it cannot be removed.")
            for part in REMOVALS:
                await connection.execute(SQL[part], (handle,))

        call = Call(work)
        self._writer.submit(call)
        await call.result()
        self._handles.pop(execution_id, None)

    async def vacuum(self) -> Vacuumed:
        async def work(connection: Connection) -> int:
            await connection.execute(SQL["lock_blobs"])
            bodies = await (await connection.execute(SQL["all_bodies"])).fetchall()
            named = named_blobs(body for (body,) in bodies)
            stored = await (await connection.execute(SQL["all_addresses"])).fetchall()
            dropped = [address for (address,) in stored if address not in named]
            await connection.execute(SQL["remove_blobs"], (dropped,))
            return len(dropped)

        ((before,),) = await self._all("size")
        call = Call(work)
        self._writer.submit(call)
        blobs = await call.result()
        async with self._reading() as connection:
            await connection.execute(SQL["vacuum"])
        ((after,),) = await self._all("size")
        return Vacuumed(blobs, before, after)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True

        async def resign(connection: Connection) -> None:
            await connection.execute(SQL["resign"], (self._live.token,))

        await self._live.stop()
        self._writer.submit(Call(resign))
        await self._writer.close()
        if self._opened:
            await self._pool.close()

    async def _handle(self, execution_id: str) -> int:
        handle = self._handles.get(execution_id)
        if handle is None or self._closed:
            found = await self._all("handle", execution_id)
            if not found:
                raise await self._unknown(execution_id)
            handle = self._handles[execution_id] = found[0][0]
        return handle

    def _row(self, row: tuple[Any, ...]) -> ExecutionRow:
        handle, epoch, owner, token, name, kind, created_us, head, seq, body, fresh = row
        alive = self._owned(handle, epoch, token, fresh)
        return ExecutionRow(
            name, kind, created_us, head, epoch, owner, alive, None if seq is None else Summary(seq, body)
        )

    def _owned(self, handle: int, epoch: int, token: str | None, fresh: bool) -> bool:
        """Whether a living owner holds that execution: ours only as long as nothing of it was refused."""
        if token == self._live.token:
            return (handle, epoch) not in self._writer.poisoned
        return token is not None and fresh

    async def _unknown(self, wanted: str) -> UnknownExecution:
        return unknown(wanted, [name for (name,) in await self._all("newest_names", NAMES_SEARCHED)])

    async def _all(self, name: str, *values: object) -> list[Any]:
        return await self._select(name, values)

    async def _select(self, name: str, values: Sequence[object] | dict[str, object]) -> list[Any]:
        """What a connection that broke was asked is asked again: the pool hands out those that the server has closed meanwhile."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                async with self._reading() as connection:
                    return await (await connection.execute(SQL[name], values)).fetchall()
            except LedgerUnavailable:
                if self._closed or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(RETRY_S)

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[Connection]:
        if self._closed:
            raise LedgerUnavailable(f"{self.url}: the store has been closed.")
        if not self._opened:
            self._opened = True
            await self._pool.open()
        try:
            async with self._pool.connection() as connection:
                yield connection
        except UnicodeEncodeError as error:
            raise UnknownExecution(f"There is no execution {error.object!r}: that is no text.") from error
        except (psycopg.Error, PoolTimeout, OSError) as error:
            raise fault(error, self.url) from error


def _pairs(rows: list[Any]) -> list[tuple[str, int]]:
    return [(what, seq) for what, seq in rows]
