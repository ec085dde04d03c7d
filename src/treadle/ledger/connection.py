"""Connections to a store's file: the one that writes, made ready for work, and those that only read."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from treadle.core.errors import ConfigurationError, LedgerReadOnly, LedgerUnavailable, TreadleError

from .faults import fault
from .migrate import migrate, version_of

SYNCHRONOUS = ("FULL", "EXTRA", "NORMAL", "OFF")
PAGE_BYTES = 8192  # of a new store: records of some hundred bytes fill it better than 4096, and a commit costs the same
CHECKPOINT_PAGES = 500  # 4 MB of log, then a commit moves it into the file as far as readers allow
RETRY_S = 0.01  # between tries to switch to WAL


def located(path: str | Path) -> Path:
    """The one name of a store's file, however it was written: its log and its owners are found beside it."""
    return Path(path).expanduser().resolve()


def open_writer(path: Path, *, synchronous: str, busy_timeout_s: float) -> sqlite3.Connection:
    """A store ready for writing, made or migrated where needed. Blocks. LedgerError, ConfigurationError.

    A file that is no store of ours is left as it was.
    """
    if synchronous not in SYNCHRONOUS:
        raise ConfigurationError(f"synchronous must be one of {', '.join(SYNCHRONOUS)}, not {synchronous!r}")
    db: sqlite3.Connection | None = None
    try:
        _make_folder(path.parent)
        _check_writable(path)
        # The writer's thread uses it, and whoever opens it only until that thread starts.
        db = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)
        version_of(db, path)
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        _use_wal(db, path, busy_timeout_s)
        db.execute(f"PRAGMA synchronous = {synchronous}")
        db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        migrate(db, path)
    except Exception as error:  # whatever it was, nothing stays open; what is not ours yet is translated
        if db is not None:
            db.close()
        if isinstance(error, TreadleError):
            raise
        raise fault(error, path) from error
    return db


def open_reader(path: Path, *, busy_timeout_s: float) -> sqlite3.Connection:
    """A connection that cannot write, for the thread that opens it. sqlite3.Error."""
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=busy_timeout_s, isolation_level=None)


def prepare_for_log(db: sqlite3.Connection, path: Path, busy_timeout_s: float) -> None:
    """Switches the file to a write-ahead log, once for all. LedgerUnavailable; sqlite3.Error."""
    _use_wal(db, path, busy_timeout_s)


def rewrite(path: Path, *, busy_timeout_s: float) -> None:
    """The file without its empty pages. Blocks, and locks it meanwhile. LedgerError."""
    db = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None)
    try:
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        raise fault(error, path) from error
    finally:
        db.close()


def _make_folder(folder: Path) -> None:
    """Folders that did not exist survive a power cut like what is then stored in them."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        parent = os.open(each.parent, os.O_RDONLY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)


def _check_writable(path: Path) -> None:
    if path.is_dir():
        raise LedgerUnavailable(f"{path}: this is a folder. Name a file.")
    for place in (path.parent, path):
        if place.exists() and not os.access(place, os.W_OK):
            raise LedgerReadOnly(
                f"{place}: cannot be written. Check the permissions of the file and of its folder. To look into a store"
                f" where nothing may be written, copy {path.name} and {path.name}-wal elsewhere and name the copy."
            )


def _use_wal(db: sqlite3.Connection, path: Path, busy_timeout_s: float) -> None:
    """Switches to a write-ahead log. SQLite waits for others here, but not in every race of several first openers."""
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            mode: str = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)
            continue
        if mode != "wal":
            raise LedgerUnavailable(f"{path}: this file system has no shared memory for SQLite. Use a local disk.")
        return
