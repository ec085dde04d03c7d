"""Numbered, forward-only migrations of an SQLite file of ours, and how such a file is told from other files (LG-07)."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple

from treadle.core.errors import LedgerDamaged, LedgerTooNew

from .statements import Migration, migrations, split

APPLICATION_ID = 0x7472646C  # "trdl", in the header of every store


class Format(NamedTuple):
    """A kind of file: its mark in the header, the folder of its migrations, and what is said of one that is none, or newer."""

    application_id: int
    folder: str
    foreign: str
    newer: str


STORE = Format(
    APPLICATION_ID,
    "migrations",
    "this is an SQLite file, but no Treadle store. Name another file.",
    "the store has version {}, this Treadle knows {}. Update Treadle.",
)


def version_of(db: sqlite3.Connection, path: Path, what: Format = STORE) -> int:
    """The version of the file as of one instant, 0 for an empty one. LedgerDamaged where it is somebody else's; sqlite3.Error."""
    if db.in_transaction:
        return _version(db, path, what)
    db.execute("BEGIN")  # another process may make the store at this moment: its mark and its version are read together
    try:
        return _version(db, path, what)
    finally:
        if db.in_transaction:  # SQLite ends some failed ones by itself
            db.execute("ROLLBACK")


def _version(db: sqlite3.Connection, path: Path, what: Format) -> int:
    application, version = _number(db, "application_id"), _number(db, "user_version")
    if application == what.application_id:
        return version
    if application or version or db.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise LedgerDamaged(f"{path}: {what.foreign}")
    return 0


def is_current(db: sqlite3.Connection, path: Path, what: Format = STORE) -> bool:
    """Whether it needs no migration. LedgerTooNew, LedgerDamaged; sqlite3.Error."""
    version, newest = version_of(db, path, what), migrations(what.folder)[-1].number
    if version > newest:
        raise LedgerTooNew(f"{path}: {what.newer.format(version, newest)}")
    return version == newest


def migrate(
    db: sqlite3.Connection, path: Path, steps: tuple[Migration, ...] | None = None, what: Format = STORE
) -> int:
    """Brings the file to the newest version, which is returned; one transaction a step.

    LedgerTooNew, LedgerDamaged; sqlite3.Error.
    """
    steps = migrations(what.folder) if steps is None else steps
    newest = steps[-1].number
    version = version_of(db, path, what)
    if version > newest:
        raise LedgerTooNew(f"{path}: {what.newer.format(version, newest)}")
    for step in steps:
        if step.number > version:
            _take(db, path, step, what)
    return newest


def _take(db: sqlite3.Connection, path: Path, step: Migration, what: Format) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        if version_of(db, path, what) < step.number:  # otherwise another process was quicker
            for statement in split(step.sql):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {what.application_id}")
            db.execute(f"PRAGMA user_version = {step.number}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return db.execute(f"PRAGMA {pragma}").fetchone()[0]
