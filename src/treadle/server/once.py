"""Every write carries a key of its sender's: sent again, it gets the first answer and does nothing, restarts included (SV-04)."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio.to_thread import run_sync

from treadle.core.errors import ConfigurationError

from .problems import Problem

if TYPE_CHECKING:
    from pydantic import BaseModel

    M = TypeVar("M", bound=BaseModel)

KEPT = (
    4_096  # keys; a repeated write comes within minutes, and what it asked for is checked against the sequence besides
)
FILE = "studio-keys.db"
SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
  number INTEGER PRIMARY KEY AUTOINCREMENT, store TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL, answer TEXT,
  UNIQUE (store, key)
) STRICT
"""


@dataclass(slots=True)
class _Begun:
    digest: bytes
    done: anyio.Event = field(default_factory=anyio.Event)


class Once:
    """Answers by key. A key is durable before its wish is carried out, its answer after it.

    What was begun by a service that is gone is in doubt: it is refused, unless it is safe to repeat. ConfigurationError where the file
    cannot be written.
    """

    def __init__(self, folder: Path, store: str, kept: int = KEPT) -> None:
        self._file, self._store, self._kept = folder / FILE, store, kept
        self._begun: dict[str, _Begun] = {}

    async def run(
        self, key: str, what: str, body: BaseModel, act: Callable[[], Awaitable[M]], kind: type[M], *, repeatable: bool
    ) -> M:
        """The answer of `act`, or the one that this key got before. Problem 422 for a key that was used for something else, 409 for
        one whose wish may have been carried out by a service that ended before it could say so.

        A failure is not kept: the same key may try again.
        """
        digest = blake2b(f"{what}\n{body.model_dump_json()}".encode(), digest_size=16).digest()
        while (other := self._begun.get(key)) is not None:
            self._same(other.digest, digest)
            await other.done.wait()
        begun = self._begun[key] = _Begun(digest)
        try:
            known = await run_sync(self._begin, key, digest)
            if known is not None:
                self._same(known[0], digest)
                if known[1] is not None:
                    return kind.model_validate_json(known[1])
                if not repeatable:
                    raise Problem(409, "in-doubt", IN_DOUBT)
            return await self._carry_out(key, act)
        finally:
            del self._begun[key]
            begun.done.set()

    async def _carry_out(self, key: str, act: Callable[[], Awaitable[M]]) -> M:
        answer: M | None = None
        try:
            answer = await act()
            return answer
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(self._end, key, None if answer is None else answer.model_dump_json())

    @staticmethod
    def _same(known: bytes, digest: bytes) -> None:
        if known != digest:
            raise Problem(422, "key-reused", "This Idempotency-Key was used for another request: take a new one.")

    def _begin(self, key: str, digest: bytes) -> tuple[bytes, str | None] | None:
        with self._open() as db:
            found = db.execute(
                "SELECT digest, answer FROM keys WHERE store = ? AND key = ?", (self._store, key)
            ).fetchone()
            if found is None:
                made = db.execute(
                    "INSERT INTO keys (store, key, digest) VALUES (?, ?, ?)", (self._store, key, digest)
                ).lastrowid
                db.execute("DELETE FROM keys WHERE number <= ?", ((made or 0) - self._kept,))
            return found

    def _end(self, key: str, answer: str | None) -> None:
        with self._open() as db:
            if answer is None:
                db.execute("DELETE FROM keys WHERE store = ? AND key = ?", (self._store, key))
            else:
                db.execute("UPDATE keys SET answer = ? WHERE store = ? AND key = ?", (answer, self._store, key))

    def _open(self) -> _Opened:
        return _Opened(self._file)


class _Opened:
    """One transaction on the file, which is made where it is not there."""

    def __init__(self, file: Path) -> None:
        self._path = file

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self._path, timeout=10)
            self._db.execute(SCHEMA)
            self._db.execute("BEGIN IMMEDIATE")
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(
                f"{self._path} cannot be written, so no write would be done just once: {error}"
            ) from error
        return self._db

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            (self._db.commit if kind is None else self._db.rollback)()
        finally:
            self._db.close()


IN_DOUBT = (
    "This was begun by a studio that ended before it could say what came of it. It is not done again unseen: "
    "look at the log, then ask with a new key."
)
