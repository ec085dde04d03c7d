"""Lessons in an SQLite file of their own, with a full-text index (decision 21); without a file, in memory."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from treadle.core.errors import LedgerDamaged
from treadle.core.lesson_events import OUTCOMES
from treadle.kernel.track_record import standing
from treadle.ports.lessons import Candidate, Lesson, Lessons, Match, Origin, Vote

from .connection import prepare_for_log
from .faults import fault
from .lesson_search import MOST_DOCUMENTS, asked, lesson_of, matched, only, retired_for, storable, unknown, wanted
from .migrate import Format, is_current, migrate
from .statements import named

BUSY_TIMEOUT_S = 10.0
FILE = Format(
    0x74726C73,  # "trls", in the header of every such file
    "lessons",
    "this is an SQLite file, but no store of lessons. Move it away.",
    "these lessons were written by a newer Treadle (version {}, this one knows {}). Update Treadle.",
)
SQL = named("lessons")

T = TypeVar("T")


class SqliteLessons(Lessons):
    """Any number of processes and loops may use the same file. It is made when something is first written."""

    def __init__(self, path: Path | None, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.url = f"sqlite:///{path}" if path else "memory:"
        self._path, self._busy_timeout_s = path, busy_timeout_s
        self._db: sqlite3.Connection | None = None  # the one in memory; a file is opened for each use
        self._lock = threading.Lock()

    async def match(self, text: str, *, role: str, workspace: str, limit: int) -> list[Match]:
        return await self._read(partial(_match, text=text, role=role, workspace=workspace, limit=limit), [])

    async def vote(self, votes: Sequence[Vote]) -> list[Lesson]:
        return await self._write(partial(_vote, votes=votes))

    async def add(self, candidates: Sequence[Candidate]) -> list[Lesson]:
        return await self._write(lambda db: [_add(db, one) for one in candidates])

    async def get(self, lesson_id: str) -> Lesson:
        found = await self._read(lambda db: lesson_of(_find(db, lesson_id)), None)
        if found is None:
            raise unknown(lesson_id)
        return found

    async def all(self) -> list[Lesson]:
        return await self._read(lambda db: [lesson_of(row) for row in db.execute(SQL["all"])], [])

    async def origins(self, lesson_id: str) -> list[Origin]:
        def read(db: sqlite3.Connection) -> list[Origin]:
            names = ("step_exec_id", "source", "gate", "round", "at_us")
            rows = db.execute(SQL["origins"], (_find(db, lesson_id)["n"],))
            return [Origin(**dict(zip(names, row, strict=True))) for row in rows]

        return await self._read(read, [])

    async def votes(self, lesson_id: str) -> list[Vote]:
        def read(db: sqlite3.Connection) -> list[Vote]:
            row = _find(db, lesson_id)
            return [
                Vote(
                    step_exec_id=vote["step"],
                    lesson_id=row["id"],
                    outcome=OUTCOMES[int(vote["outcome"])],
                    evidence=vote["evidence"],
                    at_us=vote["at_us"],
                )
                for vote in db.execute(SQL["votes"], (row["n"],))
            ]

        return await self._read(read, [])

    async def edit(self, lesson_id: str, *, text: str | None = None, confirm: bool = False) -> Lesson:
        def write(db: sqlite3.Connection) -> Lesson:
            n = _find(db, lesson_id)["n"]
            if text is not None:
                db.execute(SQL["reword"], (storable(text), n))
            if confirm:
                db.execute(SQL["forgive"], (n,))
                db.execute(SQL["confirm"], (n,))
            return _settled(db, n)

        return await self._write(write)

    async def retire(self, lesson_id: str, reason: str) -> Lesson:
        def write(db: sqlite3.Connection) -> Lesson:
            n = _find(db, lesson_id)["n"]
            db.execute(SQL["stands"], ("retired", storable(reason), n))
            return _settled(db, n)

        return await self._write(write)

    async def bring(self, lesson: Lesson, *, origins: Sequence[Origin], at_us: int) -> bool:
        def write(db: sqlite3.Connection) -> bool:
            text, task = storable(lesson.text), storable(lesson.task)
            values = (lesson.id, text, lesson.role, lesson.workspace, lesson.source, task, at_us)
            added = db.execute(SQL["add"], values).rowcount > 0
            n = _find(db, lesson.id)["n"]
            for one in origins[:1] if added else ():
                db.execute(SQL["add_origin"], (n, one.step_exec_id, one.source, one.gate, one.round, one.at_us))
            return added

        return await self._write(write)

    async def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    # ---- the file

    async def _read(self, work: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        if self._db is None and (self._path is None or not self._path.exists()):
            return nothing
        return await anyio.to_thread.run_sync(partial(self._work, work))

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def transaction(db: sqlite3.Connection) -> T:
            db.execute("BEGIN IMMEDIATE")
            try:
                result = work(db)
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
            return result

        return await anyio.to_thread.run_sync(partial(self._work, transaction))

    def _work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._path is not None:
                with closing(_opened(self._path, self._busy_timeout_s)) as db:
                    return work(db)
            with self._lock:
                if self._db is None:
                    self._db = _opened(None, self._busy_timeout_s)
                    weakref.finalize(self, self._db.close)
                return work(self._db)
        except (sqlite3.Error, OSError) as error:
            found = fault(error, self._path or Path("memory"))
            if isinstance(found, LedgerDamaged):
                advice = "Move the file away: lessons begin anew, and nothing else is in it."
                found = LedgerDamaged(f"{self._path}: the lessons are damaged: {error}. {advice}")
            raise found from error


def _opened(path: Path | None, busy_timeout_s: float) -> sqlite3.Connection:
    """Ready for work, made where there is none. LedgerDamaged, LedgerTooNew; sqlite3.Error, OSError."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path or ":memory:", timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)
    try:
        db.row_factory = sqlite3.Row
        if path is None:
            migrate(db, Path("memory"), what=FILE)
        elif not is_current(db, path, FILE):
            prepare_for_log(db, path, busy_timeout_s)
            migrate(db, path, what=FILE)
        db.execute("PRAGMA synchronous = FULL")
    except BaseException:
        db.close()
        raise
    return db


# ---- what is done in it


def _match(db: sqlite3.Connection, text: str, role: str, workspace: str, limit: int) -> list[Match]:
    """By the rarest words first, as many as do not make the query long: the time does not grow with the store."""
    words = asked(text)
    documents = {word: row[0] for word in words if (row := db.execute(SQL["documents"], (f'"{word}"',)).fetchone())[0]}
    if not documents:
        return []
    found, every = wanted(documents)
    query = (" AND " if every else " OR ").join(f'"{word}"' for word in found)
    where = (query, role, workspace, limit, MOST_DOCUMENTS)
    rows = db.execute(SQL["newest_match" if every else "match"], where).fetchall()
    return matched(rows, documents, db.execute(SQL["size"]).fetchone()[0], len(words))


def _vote(db: sqlite3.Connection, votes: Sequence[Vote]) -> list[Lesson]:
    found: list[Lesson] = []
    for vote in votes:
        if (row := db.execute(SQL["find"], (vote.lesson_id,)).fetchone()) is None:
            continue  # somebody has deleted it meanwhile
        outcome = OUTCOMES.index(vote.outcome)
        db.execute(SQL["add_vote"], (row["n"], vote.step_exec_id, outcome, storable(vote.evidence), vote.at_us))
        found.append(_settled(db, row["n"]))
    return found


def _add(db: sqlite3.Connection, one: Candidate) -> Lesson:
    values = (one.id, storable(one.text), one.role, one.workspace, one.source, storable(one.task), one.at_us)
    db.execute(SQL["add"], values)
    n = _find(db, one.id)["n"]
    db.execute(SQL["add_origin"], (n, one.step_exec_id, one.source, one.gate, one.round, one.at_us))
    return _settled(db, n)


def _settled(db: sqlite3.Connection, n: int) -> Lesson:
    """Counters and standing as votes and origins make them."""
    unobserved, helpful, neutral, harmful, origins = db.execute(SQL["tally"], (n,)).fetchone()
    row = db.execute("SELECT * FROM lessons WHERE n = ?", (n,)).fetchone()
    confirmations = max(0, origins - 1) + helpful + row["by_person"]
    db.execute(SQL["counted"], (unobserved, helpful, neutral, harmful, confirmations, n))
    now = standing(row["standing"], helpful=helpful, harmful=harmful, confirmations=confirmations)
    if now != row["standing"]:
        db.execute(
            SQL["stands"],
            (
                now,
                retired_for(helpful, neutral, harmful) if now == "retired" else "",
                n,
            ),
        )
    return lesson_of(db.execute("SELECT * FROM lessons WHERE n = ?", (n,)).fetchone())


def _find(db: sqlite3.Connection, lesson_id: str) -> sqlite3.Row:
    lesson_id = storable(lesson_id)
    row = db.execute(SQL["find"], (lesson_id,)).fetchone()
    if row is not None:
        return row
    return only(lesson_id, db.execute(SQL["find_from"], (lesson_id,)).fetchall() if len(lesson_id) > 1 else [])
