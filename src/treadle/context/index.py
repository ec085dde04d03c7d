"""What the files of a workspace say, kept by content hash, so that a second scan reads only what has changed.

One SQLite file a workspace. A document is one content; it never changes, so its postings are only ever added, in segments;
what no file refers to any more is passed over, and the whole is built anew when that is most of it. The cache may be
deleted at any time. Memory is bounded by the number of files, not by their size.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from array import array
from contextlib import closing
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from .skeleton import Definition, definitions_of
from .words import count_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from .scan import ScannedFile

FORMAT = 1  # of the stored index; another one is built anew
SEGMENT_ROWS = 1_000_000  # postings held in memory before they are written
MOST_SEGMENTS = 64
HEAD = "\x01"  # before a term that was counted in the first lines of definitions
LOCK_SECONDS = 0.5
SETTLED_NS = 50_000_000  # a file that changed so shortly before it was read may change again without a newer time

SCHEMA = """
create table if not exists files (path blob primary key, size int, mtime_ns int, doc int) without rowid;
create table if not exists docs (id integer primary key, digest blob unique, length int, heads int);
create table if not exists postings (term text, segment int, rows blob, primary key (term, segment)) without rowid;
create table if not exists skeletons (doc integer primary key, definitions blob);
create table if not exists history (head text primary key, commits blob);
"""

DEFINING = re.compile(
    r"^[ \t]*(?:(?:export|default|declare|abstract|async|unsafe|static|public|private|protected|final|virtual|inline"
    r"|extern|const|open|override|pub(?:\([^)]*\))?)[ \t]+)*"
    r"(?:(?:def|class|func|fn|fun|function\*?|struct|enum|union|trait|interface|type|mod|module|namespace|impl|macro_rules!"
    r"|record|object|protocol)\b[^\n]*"
    r"|(?:const|let|var)[ \t]+[\w$]+[^=\n]*=[ \t]*(?:async|function|\(|\w+[ \t]*=>)[^\n]*"
    r"|[\w$.]+[ \t]*=[ \t]*(?:async[ \t]+)?function[^\n]*)"
    r"|^[A-Za-z_][\w \t*&:<>,~]*\([^;\n]*$"
    r"|^#[ \t]*define[^\n]*"
    r"|^[ \t]+(?:public|private|protected|static)[^\n=;]*\([^\n]*",
    re.M,
)


class Document(NamedTuple):
    """One content: how many terms it has, in all and in the first lines of definitions."""

    id: int
    length: int
    heads: int


class Index:
    """The documents of the files that `refresh` was last given. Use as a context manager, from one thread."""

    def __init__(self, root: Path, cache: Path | None) -> None:
        """`cache` is the file to keep the index in; without one, or where it cannot be used, it lives in memory."""
        self._root = os.fsencode(root)
        self._store = _open(cache)
        self.documents: dict[str, Document] = {}

    def close(self) -> None:
        """Gives the file back."""
        self._store.close()

    def refresh(self, files: Sequence[ScannedFile]) -> None:
        """Reads what is new among the files; a file known with the same size and time is not opened."""
        with self._store:
            self._compact(len(files))
            known = {row[0]: row[1:] for row in self._store.execute("select path, size, mtime_ns, doc from files")}
            docs = {row[0]: Document(*row) for row in self._store.execute("select id, length, heads from docs")}
            segment = _Segment(self._store)
            self.documents = {}
            current: list[tuple[bytes, int, int, int]] = []
            for file in files:
                if not file.readable:
                    continue
                key = os.fsencode(file.path)
                size, mtime_ns, doc = known.pop(key, (-1, -1, -1))
                if size != file.size or mtime_ns != file.mtime_ns or doc not in docs:
                    document = self._read(key, file.path, segment, docs)
                    if document is None:
                        continue
                    settled = file.mtime_ns < time.time_ns() - SETTLED_NS
                    current.append((key, file.size, file.mtime_ns if settled else -1, document.id))
                    doc = document.id
                self.documents[file.path] = docs[doc]
            self._store.executemany("insert or replace into files values (?, ?, ?, ?)", current)
            self._store.executemany("delete from files where path = ?", [(path,) for path in known])
            segment.flush()

    def lookup(self, terms: Iterable[str]) -> dict[str, list[tuple[int, int]]]:
        """For each term, the documents that hold it and how often (at most 255), dead documents among them."""
        found: dict[str, list[tuple[int, int]]] = {}
        for term in terms:
            for (blob,) in self._store.execute("select rows from postings where term = ?", (term,)):
                rows = array("I")
                rows.frombytes(blob)
                found.setdefault(term, []).extend((row >> 8, row & 255) for row in rows)
        return found

    def definitions(self, path: str, data: bytes) -> list[Definition]:
        """The skeleton of a file with this content, parsed once for all files that share it."""
        document = self.documents[path]
        row = self._store.execute("select definitions from skeletons where doc = ?", (document.id,)).fetchone()
        if row is not None:
            return msgspec.msgpack.decode(row[0], type=list[Definition])
        found = definitions_of(path, data)
        self._store.execute("insert into skeletons values (?, ?)", (document.id, msgspec.msgpack.encode(found)))
        return found

    def history(self, head: str) -> bytes | None:
        """What `keep_history` stored for this commit."""
        row = self._store.execute("select commits from history where head = ?", (head,)).fetchone()
        return row and row[0]

    def keep_history(self, head: str, commits: bytes) -> None:
        """Stores the one history that is worth keeping, the newest."""
        self._store.execute("delete from history")
        self._store.execute("insert into history values (?, ?)", (head, commits))

    def commit(self) -> None:
        """Writes skeletons and history that were added."""
        self._store.commit()

    def _read(self, key: bytes, path: str, segment: _Segment, docs: dict[int, Document]) -> Document | None:
        try:
            with open(os.path.join(self._root, key), "rb") as file:
                data = file.read()
        except OSError:
            return None
        digest = blake2b(data, digest_size=16, person=path.rsplit(".", 1)[-1].encode()[:16]).digest()
        row = self._store.execute("select id from docs where digest = ?", (digest,)).fetchone()
        if row is not None:
            return docs[row[0]]
        document = segment.add(digest, data)
        docs[document.id] = document
        return document

    def _compact(self, files: int) -> None:
        (docs,) = self._store.execute("select count(*) from docs").fetchone()
        (segments,) = self._store.execute("select coalesce(max(segment), 0) from postings").fetchone()
        if docs > 3 * files + 1_000 or segments > MOST_SEGMENTS + files // 1_000:
            for table in ("files", "docs", "postings", "skeletons"):
                self._store.execute(f"delete from {table}")  # noqa: S608


class _Segment:
    """Postings of new documents, gathered in memory until there are many."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store
        self._postings: dict[str, array[int]] = {}
        self._rows = 0

    def add(self, digest: bytes, data: bytes) -> Document:
        text = "" if b"\0" in data[:8192] else data.decode(errors="replace")
        terms, heads = count_terms(text), count_terms("\n".join(DEFINING.findall(text)))
        length, defining = terms.total(), heads.total()
        cursor = self._store.execute(
            "insert into docs (digest, length, heads) values (?, ?, ?)", (digest, length, defining)
        )
        doc = cursor.lastrowid or 0
        for prefix, counts in (("", terms), (HEAD, heads)):
            for term, count in counts.items():
                self._postings.setdefault(prefix + term, array("I")).append(doc << 8 | min(count, 255))
            self._rows += len(counts)
        if self._rows > SEGMENT_ROWS:
            self.flush()
        return Document(doc, length, defining)

    def flush(self) -> None:
        if not self._postings:
            return
        (last,) = self._store.execute("select coalesce(max(segment), 0) from postings").fetchone()
        rows = ((term, last + 1, postings.tobytes()) for term, postings in sorted(self._postings.items()))
        self._store.executemany("insert into postings values (?, ?, ?)", rows)
        self._postings, self._rows = {}, 0


def _open(cache: Path | None) -> sqlite3.Connection:
    """The store in this file, built anew where it is damaged or of another format; in memory where it cannot be had."""
    if cache is not None:
        for _ in range(2):
            try:
                cache.parent.mkdir(parents=True, exist_ok=True)
                return _prepared(cache)
            except sqlite3.OperationalError:
                break  # locked, read-only, or no file at all
            except sqlite3.DatabaseError:
                cache.unlink(missing_ok=True)
            except OSError:
                break
    return _prepared(None)


def _prepared(cache: Path | None) -> sqlite3.Connection:
    store = sqlite3.connect(cache or ":memory:", timeout=LOCK_SECONDS)
    try:
        store.execute("pragma journal_mode = wal")
        store.execute("pragma synchronous = off")
        (found,) = store.execute("pragma user_version").fetchone()
        if found not in (0, FORMAT):
            raise sqlite3.DatabaseError(f"index format {found}")
        store.executescript(SCHEMA)
        store.execute(f"pragma user_version = {FORMAT}")
        store.execute("begin immediate")
        store.commit()
    except BaseException:
        store.close()
        raise
    return store
