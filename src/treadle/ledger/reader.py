"""Reading a SQLite store on a connection that cannot write. A call is one short query; long reads are slices."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from treadle.core.digests import blob_address
from treadle.core.errors import LedgerDamaged, UnknownExecution
from treadle.ports.ledger import ExecutionRow, Posted, Record, Snapshot, Summary

from .audit import Audited, audit
from .changes import NAMES_SEARCHED, SQL, Changes
from .connection import open_reader
from .faults import fault
from .lookup import NAMED, NEWEST, PREFIX_MIN, ambiguous, unknown, walked

MAX_INTEGER = 2**63 - 1
AFTER_ANY = "\U0010ffff"  # sorts after every character that ids are made of


class Reader:
    """Committed data only, and the newest: no read transaction outlives a call. LedgerError for faults of the store."""

    def __init__(self, path: Path, changes: Changes, *, busy_timeout_s: float) -> None:
        self._path, self._changes = path, changes
        try:
            self._db = open_reader(path, busy_timeout_s=busy_timeout_s)
        except sqlite3.Error as error:
            raise fault(error, path) from error
        self._handles: dict[str, int] = {}
        self._kinds: dict[int, str] = {}

    def close(self) -> None:
        """No call may follow."""
        self._db.close()

    def handle(self, execution_id: str) -> int:
        """The handle of exactly this id. UnknownExecution."""
        handle = self._handles.get(execution_id)
        if handle is None:
            found = self._all("handle", _text(execution_id))
            if not found:
                raise self._unknown(execution_id)
            handle = self._handles[execution_id] = found[0][0]
        return handle

    def forget(self, execution_id: str) -> None:
        """It has been removed: its name may be given again."""
        self._handles.pop(execution_id, None)

    def row(self, wanted: str) -> ExecutionRow:
        """By id, unique prefix or `last`. UnknownExecution."""
        found = self._all("row", _text(wanted))
        if not found and wanted == NEWEST:
            found = self._all("rows", MAX_INTEGER, 1)
        if not found and len(wanted) >= PREFIX_MIN:
            names = [name for (name,) in self._all("names_from", wanted, wanted + AFTER_ANY, NAMED + 1)]
            if len(names) > 1:
                raise ambiguous(wanted, names)
            found = self._all("row", names[0]) if names else []
        if not found:
            raise self._unknown(wanted)
        return self._row(found[0])

    def rows(self, before: int, limit: int) -> tuple[list[ExecutionRow], int]:
        """Newest first, of those with a handle below `before`; and the last handle."""
        found = self._all("rows", before, limit)
        return [self._row(row) for row in found], found[-1][0] if found else 0

    def records(self, handle: int, after: int, to: int, limit: int) -> list[Record]:
        """In order."""
        return self._records(self._all("records", handle, after, to, limit))

    def branch(self, handle: int, leaf: int, limit: int) -> list[Record]:
        """From `leaf` some way towards the root, one message at least. DanglingMessage where it is missing."""
        return walked(self._records(self._all("branch", handle, leaf, limit)), leaf)

    def snapshot(self, handle: int, at: int | None) -> Snapshot | None:
        """The latest, at or before `at`."""
        found = self._all("snapshot", handle, MAX_INTEGER if at is None else at)
        return Snapshot._make(found[0]) if found else None

    def receipts(self, handle: int, task: str, after: str, limit: int) -> list[str]:
        """In order of their text, those after `after`."""
        return [receipt for (receipt,) in self._all("receipts", handle, task, after, limit)]

    def blob_size(self, address: str) -> int:
        """In bytes. LedgerDamaged where it is missing."""
        found = self._all("blob_size", address)
        if not found:
            raise LedgerDamaged(f"{self._path}: blob {address} is missing.")
        return found[0][0]

    def blob(self, address: str) -> bytes:
        """LedgerDamaged where it is missing or was altered."""
        found = self._all("blob", address)
        if not found or blob_address(found[0][0]) != address:
            raise LedgerDamaged(f"{self._path}: blob {address} is {'not what was stored' if found else 'missing'}.")
        return found[0][0]

    def suspensions(self, handle: int) -> list[tuple[str, str, bytes, bytes | None]]:
        """In order of opening."""
        return self._all("suspensions", handle)

    def posted(self, handle: int) -> list[Posted]:
        """Oldest first."""
        return [Posted._make(row) for row in self._all("posted", handle)]

    def verify(self) -> list[str]:
        """What is wrong, a line each, as of one instant. Reads everything."""
        lines: list[str] = []
        try:
            self._db.execute("BEGIN")
            lines += [f"file: {line}" for (line,) in self._db.execute("PRAGMA integrity_check") if line != "ok"]
            for handle, count in self._db.execute(SQL["orphans"]):
                lines.append(f"{count} records belong to no execution (handle {handle})")
            executions = (
                Audited(
                    name,
                    map(Record._make, self._db.execute(SQL["all_records"], (handle,))),
                    self._db.execute(SQL["snapshots_and_summary"], (handle,)),
                )
                for handle, name in self._db.execute(SQL["all_executions"])
            )
            lines.extend(audit(executions, self._db.execute(SQL["all_blobs"])))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:  # it cannot be read any further: that is a finding as well
            lines.append(f"file: {fault(error, self._path)}")
        return lines

    def _all(self, name: str, *values: object) -> list[Any]:
        try:
            return self._db.execute(SQL[name], values).fetchall()
        except sqlite3.Error as error:
            raise fault(error, self._path) from error

    def _row(self, row: tuple[Any, ...]) -> ExecutionRow:
        handle, epoch, owner, token, name, kind, created_us, head, seq, body = row
        alive = self._changes.owned(handle, epoch, token)
        summary = None if seq is None else Summary(seq, body)
        return ExecutionRow(name, kind, created_us, head, epoch, owner, alive, summary)

    def _records(self, rows: list[tuple[Any, ...]]) -> list[Record]:
        kinds = self._kinds
        try:
            return [
                Record(seq, kinds[kind], version, parent, at, body) for seq, kind, version, parent, at, body in rows
            ]
        except KeyError:  # a kind that came into use since
            self._kinds = dict(self._all("kinds"))
        try:
            return [Record(row[0], self._kinds[row[1]], *row[2:]) for row in rows]
        except KeyError as error:
            raise LedgerDamaged(
                f"{self._path}: a record has the kind {error}, which the store does not name."
            ) from error

    def _unknown(self, wanted: str) -> UnknownExecution:
        return unknown(wanted, [name for (name,) in self._all("newest_names", NAMES_SEARCHED)])


def _text(wanted: str) -> str:
    """An id that a store can hold at all. UnknownExecution."""
    try:
        wanted.encode()
    except UnicodeEncodeError as error:
        raise UnknownExecution(f"There is no execution {wanted!r}: that is no text.") from error
    return wanted
