"""Numbered, forward-only migrations of a store's file, and how a store is told from other files (LG-07)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from treadle.core.errors import LedgerDamaged, LedgerTooNew

from .statements import Migration, migrations, split

APPLICATION_ID = 0x7472646C  # "trdl", in the header of every store


def version_of(db: sqlite3.Connection, path: Path) -> int:
    """The version of the store, 0 for an empty file. LedgerDamaged where it is somebody else's; sqlite3.Error."""
    application, version = _number(db, "application_id"), _number(db, "user_version")
    if application == APPLICATION_ID:
        return version
    if application or version or db.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise LedgerDamaged(f"{path}: this is an SQLite file, but no Treadle store. Name another file.")
    return 0


def migrate(db: sqlite3.Connection, path: Path, steps: tuple[Migration, ...] | None = None) -> int:
    """Brings the store to the newest version, which is returned; one transaction a step.

    LedgerTooNew, LedgerDamaged; sqlite3.Error.
    """
    steps = migrations() if steps is None else steps
    newest = steps[-1].number
    version = version_of(db, path)
    if version > newest:
        raise LedgerTooNew(f"{path}: the store has version {version}, this Treadle knows {newest}. Update Treadle.")
    for step in steps:
        if step.number > version:
            _take(db, path, step)
    return newest


def _take(db: sqlite3.Connection, path: Path, step: Migration) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        if version_of(db, path) < step.number:  # otherwise another process was quicker
            for statement in split(step.sql):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {step.number}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return db.execute(f"PRAGMA {pragma}").fetchone()[0]
