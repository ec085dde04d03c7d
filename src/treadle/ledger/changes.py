"""What may be changed in a SQLite store, as steps inside a transaction that somebody else begins and commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treadle.core.errors import InputError, LedgerGap, OwnerAlive, StaleEpoch
from treadle.ports.ledger import Batch, Ownership, Record

from .audit import named_blobs
from .lookup import busy, unknown
from .statements import REMOVALS, named

if TYPE_CHECKING:
    from treadle.ports.clock import CrashPoints

    from .owners import Owners

SQL = named("statements")
_ADD_RECORDS = [(n, SQL["add_record"] + ", (?, ?, ?, ?, ?, ?, ?)" * (n - 1)) for n in (128, 32, 8, 4, 3, 2, 1)]
"""Many rows a statement: each one is a step that gives the interpreter's lock away and waits to have it back."""
SNAPSHOT_SPAN = 512  # records; besides the newest snapshot, one a span is kept
NAMES_SEARCHED = 200  # newest executions among which close ids are looked for


class Changes:
    """Each method refuses by raising; the transaction that it ran in must then be rolled back.

    Used by the thread that owns the connection; only `owned` may be asked from any.
    """

    def __init__(self, db: sqlite3.Connection, owners: Owners, points: CrashPoints) -> None:
        self._db, self._owners, self._points = db, owners, points
        self._kinds: dict[str, int] = {}
        self._heads: dict[int, tuple[int, int]] = {}  # handle -> (epoch, head) as of `_data_version`, ours alone
        self._data_version = -1
        self._rows: list[Any] = []  # of records that are to be added in this transaction
        self._poisoned: set[tuple[int, int]] = set()

    def begun(self) -> None:
        """A transaction has begun: what was read before holds unless another connection has written meanwhile."""
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        if version != self._data_version:
            self._heads.clear()
            self._data_version = version

    def write(self, batch: Batch) -> None:
        """All of the batch, its records with the next `add_records`. StaleEpoch, LedgerGap; sqlite3.Error."""
        own, execute = batch.ownership, self._db.execute
        head = self._head(own)
        if batch.records:
            head = self._queue(own, head, batch.records)
            self._heads[own.handle] = own.epoch, head
        for task, receipt in batch.receipts:
            execute(SQL["add_receipt"], (own.handle, task, receipt))
        for blob in batch.blobs:
            execute(SQL["add_blob"], blob)
        for name, kind, body in batch.opened:
            execute(SQL["open_suspension"], (own.handle, name, kind, body))
        for name, body in batch.closed:
            if execute(SQL["close_suspension"], (body, own.handle, name)).rowcount != 1:
                raise LedgerGap(f"{own.execution_id}: {name!r} is not open, so it cannot be answered.")
        for posted in batch.taken:
            if execute(SQL["take_posted"], (posted, own.handle)).rowcount != 1:
                raise LedgerGap(f"{own.execution_id}: request {posted} is not waiting, so it cannot be taken.")
        if (snapshot := batch.snapshot) is not None:
            if snapshot.seq > head:
                raise LedgerGap(f"{own.execution_id}: a snapshot of {snapshot.seq} is beyond the last record {head}.")
            execute(SQL["put_snapshot"], (own.handle, *snapshot))
            execute(SQL["thin_snapshots"], (own.handle, snapshot.seq, SNAPSHOT_SPAN))
        if batch.summary is not None:
            execute(SQL["put_summary"], (own.handle, *batch.summary))

    def add_records(self) -> None:
        """Adds what `write` has queued; sqlite3.Error."""
        rows, self._rows = self._rows, []
        start, left = 0, len(rows) // 7
        for count, sql in _ADD_RECORDS:
            while left >= count:
                self._db.execute(sql, rows[start : start + 7 * count])
                start, left = start + 7 * count, left - count

    def create(self, execution_id: str, kind: str, owner: str, at_us: int) -> Ownership:
        """InputError where the id is taken; OSError, sqlite3.Error."""
        token = self._owners.hold()
        if self._db.execute(SQL["handle"], (execution_id,)).fetchone():
            raise InputError(f"There is an execution {execution_id!r} in this store already.")
        handle = self._db.execute(SQL["create_execution"], (execution_id, kind, at_us, owner, token)).lastrowid
        assert handle is not None
        return Ownership(execution_id, handle, epoch=1, head=0)

    def acquire(self, execution_id: str, owner: str, *, force: bool) -> Ownership:
        """UnknownExecution, OwnerAlive; OSError, sqlite3.Error."""
        token = self._owners.hold()
        row = self._db.execute(SQL["owner_of"], (execution_id,)).fetchone()
        if row is None:
            raise self.unknown(execution_id)
        handle, epoch, last_owner, last_token, head = row
        if not force and self.owned(handle, epoch, last_token):
            raise busy(execution_id, last_owner)
        self._heads.pop(handle, None)
        self._db.execute(SQL["take_over"], (owner, token, handle))
        self._points.reach("ledger.in-acquire")
        return Ownership(execution_id, handle, epoch + 1, head)

    def release(self, own: Ownership) -> None:
        """Nothing where it is not ours any more; sqlite3.Error."""
        self._heads.pop(own.handle, None)
        self._db.execute(SQL["release"], (own.handle, own.epoch, self._owners.token))

    def post(self, execution_id: str, kind: str, body: bytes, at_us: int) -> int:
        """UnknownExecution; sqlite3.Error."""
        row = self._db.execute(SQL["handle"], (execution_id,)).fetchone()
        if row is None:
            raise self.unknown(execution_id)
        posted = self._db.execute(SQL["post"], (row[0], kind, body, at_us)).lastrowid
        assert posted is not None
        return posted

    def remove(self, execution_id: str) -> None:
        """UnknownExecution, OwnerAlive; sqlite3.Error."""
        row = self._db.execute(SQL["owner_of"], (execution_id,)).fetchone()
        if row is None:
            raise self.unknown(execution_id)
        handle, epoch, owner, token, _ = row
        if self.owned(handle, epoch, token):
            raise OwnerAlive(f"{execution_id} is being run by {owner}: it cannot be removed.")
        self._heads.pop(handle, None)
        for part in REMOVALS:
            self._db.execute(SQL[part], (handle,))

    def drop_blobs(self) -> int:
        """How many were named by no record; sqlite3.Error."""
        named = named_blobs(body for (body,) in self._db.execute(SQL["all_bodies"]))
        stored = [address for (address,) in self._db.execute(SQL["all_addresses"])]
        dropped = [(address,) for address in stored if address not in named]
        self._db.executemany(SQL["remove_blob"], dropped)
        return len(dropped)

    def owned(self, handle: int, epoch: int, token: str | None) -> bool:
        """Whether a living owner holds that execution: ours only as long as nothing of it was refused."""
        if token is None:
            return False
        if token == self._owners.token:
            return (handle, epoch) not in self._poisoned
        return self._owners.alive(token)

    def unknown(self, execution_id: str) -> InputError:
        """The error for an id that is not there."""
        return unknown(execution_id, [name for (name,) in self._db.execute(SQL["newest_names"], (NAMES_SEARCHED,))])

    def poison(self, own: Ownership) -> None:
        """A batch was refused: no later one of that owner may land behind the hole."""
        self._poisoned.add((own.handle, own.epoch))
        self._heads.pop(own.handle, None)

    def rolled_back(self) -> None:
        """What was added meanwhile is gone."""
        self._kinds.clear()
        self._heads.clear()
        self._rows.clear()

    def _head(self, own: Ownership) -> int:
        known = self._heads.get(own.handle)
        if known is not None and known[0] == own.epoch:
            return known[1]
        row = self._db.execute(SQL["fence"], (own.handle,)).fetchone()
        if row is None or row[0] != own.epoch or row[1] != self._owners.token:
            raise StaleEpoch(
                f"{own.execution_id} is another owner's by now (epoch {row[0] if row else 'none'}, this one's was {own.epoch}): "
                "this one stops. Nothing is lost or done twice."
            )
        if (own.handle, own.epoch) in self._poisoned:
            raise LedgerGap(f"{own.execution_id}: an earlier batch was refused. Acquire the execution anew.")
        return row[2]

    def _queue(self, own: Ownership, head: int, records: Sequence[Record]) -> int:
        """The head after these records."""
        rows = self._rows
        for seq, kind, version, parent, at_us, body in records:
            head += 1
            if seq != head:
                raise LedgerGap(f"{own.execution_id}: record {seq} does not follow {head - 1}.")
            rows += own.handle, seq, self._kinds.get(kind) or self._kind(kind), version, parent, at_us, body
        return head

    def _kind(self, kind: str) -> int:
        if self._db.execute(SQL["find_kind"], (kind,)).fetchone() is None:
            self._db.execute(SQL["add_kind"], (kind,))
        number: int = self._db.execute(SQL["find_kind"], (kind,)).fetchone()[0]
        self._kinds[kind] = number
        return number
