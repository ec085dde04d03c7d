"""Errors of SQLite and of the system as ours, each saying where, what, and what to do (LG-08)."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from treadle.core.errors import (
    LedgerDamaged,
    LedgerError,
    LedgerFull,
    LedgerGap,
    LedgerLocked,
    LedgerReadOnly,
    LedgerUnavailable,
    TreadleError,
)

FULL_BELOW_BYTES = 65_536  # SQLite reports some writes to a full disk as I/O errors; so little room tells them apart
_PRIMARY = 0xFF  # an extended result code holds its primary one in the low byte

_FULL = (LedgerFull, "no space is left. Free some, then resume.")
_READ_ONLY = (LedgerReadOnly, "cannot be written. Check the permissions of the file and of its folder, then resume.")
_LOCKED = (LedgerLocked, "another process holds it locked. Let that process finish or stop it, then resume.")
_DAMAGED = (LedgerDamaged, "the file is damaged. Check it with `treadle ledger verify`, or restore a copy.")
_UNREACHABLE = (LedgerUnavailable, "cannot be opened. Check that the path names a file and that its disk is there.")
_BROKEN = (LedgerUnavailable, "reading or writing failed. Check the disk, then resume.")

_BY_CODE: dict[int, tuple[type[LedgerError], str]] = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_ERROR: _DAMAGED,  # a table or column of ours is missing
    sqlite3.SQLITE_NOTADB: (LedgerDamaged, "this is no SQLite file, so no Treadle store. Name another file."),
    sqlite3.SQLITE_CANTOPEN: _UNREACHABLE,
    sqlite3.SQLITE_IOERR: _BROKEN,
    sqlite3.SQLITE_NOMEM: (LedgerUnavailable, "out of memory."),
    sqlite3.SQLITE_CONSTRAINT: (LedgerGap, "this contradicts what is stored. Read the execution anew."),
    sqlite3.SQLITE_TOOBIG: (LedgerError, "a value is larger than the store can hold."),
}

_BY_ERRNO = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
}


def fault(error: Exception, path: Path) -> TreadleError:
    """`error`, met while working on the store at `path`, as one of ours."""
    if isinstance(error, TreadleError):
        return error
    if isinstance(error, OSError):
        kind, advice = _BY_ERRNO.get(error.errno or 0, _UNREACHABLE)
    elif isinstance(error, sqlite3.Error):
        code: int | None = getattr(error, "sqlite_errorcode", None)  # only what SQLite itself reports has one
        kind, advice = _of_code(code, path)
    else:  # a value that no column takes: a lone surrogate, a number of more than 64 bits
        kind, advice = LedgerError, "this cannot be stored."
    ours = kind(f"{path}: {advice} ({_detail(error)})")
    ours.__cause__ = error
    return ours


def _of_code(code: int | None, path: Path) -> tuple[type[LedgerError], str]:
    if code is None:
        return LedgerError, "this cannot be stored."
    primary = code & _PRIMARY
    if primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _disk_is_full(path):
        return _FULL
    if primary == sqlite3.SQLITE_CANTOPEN and not os.access(path.parent, os.W_OK):
        return _READ_ONLY
    if code == sqlite3.SQLITE_IOERR_CORRUPTFS:
        return _DAMAGED
    return _BY_CODE.get(primary, _BROKEN)


def _disk_is_full(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
    except OSError:  # the folder itself is gone: not a matter of space
        return False
    if not disk.f_blocks:  # a file system that holds no files of ours, such as /proc
        return False
    return disk.f_bavail * disk.f_frsize < FULL_BELOW_BYTES


def _detail(error: Exception) -> str:
    name: str | None = getattr(error, "sqlite_errorname", None)
    return f"{name}: {error}" if name else f"{type(error).__name__}: {error}"
