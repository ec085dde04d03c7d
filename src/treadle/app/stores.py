"""Store addresses to ledgers."""

from __future__ import annotations

from pathlib import Path

from treadle.core.errors import ConfigurationError
from treadle.ports.clock import CrashPoints
from treadle.ports.ledger import Ledger
from treadle.ports.lessons import Lessons

FORMS = "sqlite:///FILE (sqlite:////ABSOLUTE/FILE), postgresql://USER@HOST/DATABASE or memory:"
ENDS = ("", "-wal", "-shm", ".owners", ".lessons", ".lessons-wal", ".lessons-shm")
NO_POSTGRES = "A store on Postgres needs an extra: pip install 'treadle[postgres]'."
POSTGRES = ("postgresql://", "postgres://")


async def open_store(url: str, points: CrashPoints, *, create: bool = True) -> Ledger:
    """The ledger at this address. ConfigurationError for a form that is none; LedgerError where it cannot be opened.

    With `create` false, a file that does not exist is a ConfigurationError, so that reading commands make none.
    """
    if url == "memory:":
        from treadle.ledger.inmemory import InMemoryLedger

        return InMemoryLedger()
    if url.startswith(POSTGRES):
        return await _open_postgres(url, points, create=create)
    path = _file_of(url)
    if not create and not path.exists():
        raise ConfigurationError(f"There is no store at {path}. Start a loop first (treadle run), or name it: --store.")
    from treadle.ledger.sqlite import open_sqlite

    return await open_sqlite(path, points=points)


async def _open_postgres(url: str, points: CrashPoints, *, create: bool) -> Ledger:
    try:
        from treadle.ledger.postgres import open_postgres
    except ImportError as error:
        raise ConfigurationError(NO_POSTGRES) from error
    return await open_postgres(url, points=points, create=create)


def open_lessons(url: str) -> Lessons:
    """The lessons that belong to the store at this address: a file beside a file, memory beside memory, tables beside tables."""
    from treadle.ledger.lessons import SqliteLessons

    if url == "memory:":
        return SqliteLessons(None)
    if url.startswith(POSTGRES):
        try:
            from treadle.ledger.postgres import PostgresLessons
        except ImportError as error:
            raise ConfigurationError(NO_POSTGRES) from error
        return PostgresLessons(url)
    return SqliteLessons(lessons_file(url))


def lessons_of(ledger: Ledger) -> Lessons:
    """The same of a store that is open: its own address may leave out the password."""
    return open_lessons(getattr(ledger, "address", ledger.url))


def lessons_file(url: str) -> Path:
    """ConfigurationError for a form that is none."""
    file = _file_of(url).resolve()
    return file.with_name(f"{file.name}.lessons")


def is_absent(url: str) -> bool:
    """Whether there is no store at this address yet. ConfigurationError for a form that is none."""
    return url != "memory:" and not url.startswith(POSTGRES) and not _file_of(url).exists()


def store_files(url: str) -> tuple[Path, ...]:
    """The files that a store consists of: no part of a workspace, even where they lie in one."""
    if url in ("", "memory:") or url.startswith(POSTGRES):
        return ()
    file = _file_of(url).resolve()
    return tuple(file.with_name(file.name + end) for end in ENDS)


def _file_of(url: str) -> Path:
    scheme, found, rest = url.partition("://")
    if scheme != "sqlite" or not found or not rest.startswith("/") or len(rest) < 2:
        raise ConfigurationError(f"--store {url!r} is no store address. Use {FORMS}.")
    return Path(rest[1:]).expanduser()
