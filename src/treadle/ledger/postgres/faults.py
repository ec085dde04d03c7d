"""Errors of Postgres as ours, each saying where, what, and what to do (LG-08)."""

from __future__ import annotations

import psycopg
from psycopg import errors

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

_KINDS: tuple[tuple[type[Exception], type[LedgerError], str], ...] = (
    (errors.DiskFull, LedgerFull, "the server has no space left. Free some, then resume."),
    (
        errors.ReadOnlySqlTransaction,
        LedgerReadOnly,
        "the server only reads (a standby?). Name the primary, then resume.",
    ),
    (errors.InsufficientPrivilege, LedgerReadOnly, "this user may not do that. Grant what is missing, then resume."),
    (errors.LockNotAvailable, LedgerLocked, "somebody holds it locked. Let them finish, then resume."),
    (errors.DeadlockDetected, LedgerLocked, "somebody holds it locked. Let them finish, then resume."),
    (errors.UndefinedTable, LedgerDamaged, "a table of the store is missing. Restore it from a backup."),
    (errors.UndefinedColumn, LedgerDamaged, "a column of the store is missing. Restore it from a backup."),
    (errors.DataCorrupted, LedgerDamaged, "the server reports damaged data. Restore it from a backup."),
    (errors.IntegrityError, LedgerGap, "this contradicts what is stored. Read the execution anew."),
    (errors.InvalidPassword, LedgerUnavailable, "the server refuses the password."),
    (errors.DataError, LedgerError, "this cannot be stored."),
    (psycopg.OperationalError, LedgerUnavailable, "the server cannot be reached. Check that it runs, then resume."),
    (psycopg.InterfaceError, LedgerUnavailable, "the connection is gone. Check the server, then resume."),
    (TimeoutError, LedgerUnavailable, "the server does not answer. Check that it runs, then resume."),
    (OSError, LedgerUnavailable, "the server cannot be reached. Check the address, then resume."),
)


def fault(error: Exception, where: str) -> TreadleError:
    """`error`, met while working on the store at `where`, as one of ours."""
    if isinstance(error, TreadleError):
        return error
    kind, advice = LedgerError, "this cannot be stored."  # a value that no column takes, such as a lone surrogate
    for theirs, ours, text in _KINDS:
        if isinstance(error, theirs):
            kind, advice = ours, text
            break
    detail = str(error).strip().splitlines()
    found = kind(f"{where}: {advice} ({type(error).__name__}: {detail[0] if detail else ''})")
    found.__cause__ = error
    return found


def lost(error: Exception, connection: psycopg.AsyncConnection[object]) -> bool:
    """Whether the connection broke, so that nobody knows whether the last commit landed."""
    return connection.closed or isinstance(error, OSError)
