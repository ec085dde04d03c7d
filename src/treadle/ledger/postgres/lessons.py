"""Lessons in the tables of a Postgres store: shared by the workers of many machines (decision 21)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row, tuple_row

from treadle.core.lesson_events import OUTCOMES
from treadle.kernel.track_record import standing
from treadle.ledger.lesson_search import (
    MOST_DOCUMENTS,
    asked,
    indexed,
    lesson_of,
    matched,
    only,
    retired_for,
    storable,
    wanted,
)
from treadle.ledger.statements import named
from treadle.ports.lessons import Candidate, Lesson, Lessons, Match, Origin, Vote

from .faults import fault
from .schema import migrate
from .store import without_password
from .writer import Connection, connect

SQL = {name: text.encode() for name, text in named("postgres_lessons").items()}
Row = dict[str, Any]


class PostgresLessons(Lessons):
    """A connection of its own for each use, since a loop has three. Its tables are made with those of the store."""

    def __init__(self, url: str) -> None:
        self.url = without_password(url)
        self._address = url

    async def match(self, text: str, *, role: str, workspace: str, limit: int) -> list[Match]:
        words = asked(text)
        async with self._reading() as db:
            if db is None or not words:
                return []
            rows = await db.execute(SQL["documents"], (words,))
            documents: dict[str, int] = {word: count for word, count in await rows.fetchall() if count}
            if not documents:
                return []
            ordered = {word: documents[word] for word in words if word in documents}
            found, every = wanted(ordered)
            where = (MOST_DOCUMENTS, role, workspace, limit)
            if every:
                lessons = await _rows(db, "newest_match", (found, len(found), *where))
            else:
                lessons = await _rows(db, "match", (found, *where))
            size = (await (await db.execute(SQL["size"])).fetchone() or (0,))[0]
            return matched(lessons, documents, size, len(words))

    async def vote(self, votes: Sequence[Vote]) -> list[Lesson]:
        found: dict[str, Lesson] = {}
        async with self._writing() as db:
            for vote in sorted(
                votes, key=lambda one: one.lesson_id
            ):  # in one order, so that two loops never lock each other out
                rows = await _rows(db, "find_locked", (vote.lesson_id,))
                if not rows:
                    continue  # somebody has deleted it meanwhile
                n, outcome = rows[0]["n"], OUTCOMES.index(vote.outcome)
                values = (n, vote.step_exec_id, outcome, storable(vote.evidence), vote.at_us)
                await db.execute(SQL["add_vote"], values)
                found[vote.lesson_id] = await _settled(db, n)
        return [found[vote.lesson_id] for vote in votes if vote.lesson_id in found]

    async def add(self, candidates: Sequence[Candidate]) -> list[Lesson]:
        found: dict[str, Lesson] = {}
        async with self._writing() as db:
            for one in sorted(candidates, key=lambda one: one.id):
                n = await _added(db, one, one.at_us)
                origin = (n, one.step_exec_id, one.source, one.gate, one.round, one.at_us)
                await db.execute(SQL["add_origin"], origin)
                found[one.id] = await _settled(db, n)
        return [found[one.id] for one in candidates]

    async def get(self, lesson_id: str) -> Lesson:
        async with self._reading() as db:
            return lesson_of(only(lesson_id, []) if db is None else await _find(db, lesson_id))

    async def all(self) -> list[Lesson]:
        async with self._reading() as db:
            return [] if db is None else [lesson_of(row) for row in await _rows(db, "all", ())]

    async def origins(self, lesson_id: str) -> list[Origin]:
        async with self._reading() as db:
            if db is None:
                return []
            rows = await _rows(db, "origins", ((await _find(db, lesson_id))["n"],))
        return [Origin(step_exec_id=row.pop("step"), **row) for row in rows]

    async def votes(self, lesson_id: str) -> list[Vote]:
        async with self._reading() as db:
            if db is None:
                return []
            lesson = await _find(db, lesson_id)
            rows = await _rows(db, "votes", (lesson["n"],))
        return [
            Vote(
                step_exec_id=row["step"],
                lesson_id=lesson["id"],
                outcome=OUTCOMES[int(row["outcome"])],
                evidence=row["evidence"],
                at_us=row["at_us"],
            )
            for row in rows
        ]

    async def edit(self, lesson_id: str, *, text: str | None = None, confirm: bool = False) -> Lesson:
        async with self._writing() as db:
            n = await _locked(db, lesson_id)
            if text is not None:
                await db.execute(SQL["reword"], (storable(text), n))
            if confirm:
                await db.execute(SQL["forgive"], (n,))
                await db.execute(SQL["confirm"], (n,))
            return await _settled(db, n, words=True)

    async def retire(self, lesson_id: str, reason: str) -> Lesson:
        async with self._writing() as db:
            n = await _locked(db, lesson_id)
            await db.execute(SQL["stands"], ("retired", storable(reason), n))
            return await _settled(db, n, words=True)

    async def bring(self, lesson: Lesson, *, origins: Sequence[Origin], at_us: int) -> bool:
        async with self._writing() as db:
            new = not await _rows(db, "find", (lesson.id,))
            n = await _added(db, lesson, at_us)
            for one in origins[:1] if new else ():
                await db.execute(SQL["add_origin"], (n, one.step_exec_id, one.source, one.gate, one.round, one.at_us))
        return new

    async def close(self) -> None:
        """Nothing is open between two uses."""

    # ---- the server

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[Connection | None]:
        """None where there is no store, which reading does not make."""
        async with self._connected(create=False) as (db, version):
            yield db if version else None

    @asynccontextmanager
    async def _writing(self) -> AsyncGenerator[Connection]:
        """One transaction."""
        async with self._connected(create=True) as (db, _), db.transaction():
            yield db

    @asynccontextmanager
    async def _connected(self, *, create: bool) -> AsyncGenerator[tuple[Connection, int]]:
        db: Connection | None = None
        try:
            db = await connect(self._address)
            yield db, await migrate(db, self.url, create=create)
        except (psycopg.Error, OSError) as error:
            raise fault(error, self.url) from error
        finally:
            if db is not None:
                with contextlib.suppress(psycopg.Error):
                    await db.close()


async def _rows(db: Connection, name: str, values: tuple[Any, ...]) -> list[Row]:
    async with db.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL[name], values)
        return await cursor.fetchall()


async def _find(db: Connection, lesson_id: str) -> Row:
    if rows := await _rows(db, "find", (storable(lesson_id),)):
        return rows[0]
    return only(lesson_id, await _rows(db, "find_from", (storable(lesson_id),)) if len(lesson_id) > 1 else [])


async def _locked(db: Connection, lesson_id: str) -> int:
    return (await _rows(db, "find_locked", ((await _find(db, lesson_id))["id"],)))[0]["n"]


async def _added(db: Connection, one: Candidate | Lesson, at_us: int) -> int:
    """Its number, locked until the transaction ends; new where it was not there."""
    values = (one.id, storable(one.text), one.role, one.workspace, one.source, storable(one.task), at_us)
    made = await db.execute(SQL["add"], values)
    row = (await _rows(db, "find_locked", (one.id,)))[0]
    if made.rowcount:
        await db.execute(SQL["index"], (indexed(row["text"], row["task"]), row["n"]))
    return row["n"]


async def _settled(db: Connection, n: int, *, words: bool = False) -> Lesson:
    """Counters and standing as votes and origins make them; `words`: what it is found by may have changed."""
    async with db.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(SQL["tally"], (n, n))
        unobserved, helpful, neutral, harmful, origins = await cursor.fetchone() or (0, 0, 0, 0, 0)
    (row,) = await _rows(db, "by_number", (n,))
    confirmations = max(0, origins - 1) + helpful + row["by_person"]
    await db.execute(SQL["counted"], (unobserved, helpful, neutral, harmful, confirmations, n))
    now = standing(row["standing"], helpful=helpful, harmful=harmful, confirmations=confirmations)
    if now != row["standing"]:
        await db.execute(SQL["stands"], (now, retired_for(helpful, neutral, harmful) if now == "retired" else "", n))
    if words or now != row["standing"]:
        await db.execute(SQL["unindex"], (n,))
        if now != "retired":
            await db.execute(SQL["index"], (indexed(row["text"], row["task"]), n))
    (row,) = await _rows(db, "by_number", (n,))
    return lesson_of(row)
