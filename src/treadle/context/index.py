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
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from .skeleton import Definition, definitions_of
from .words import count_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from .scan import ScannedFile

FORMAT = 3  # of the stored index; another one is built anew
SEGMENT_ROWS = 1_000_000  # postings held in memory before they are written
MOST_SEGMENTS = 64
MOST_NEW = 200_000_000  # bytes read in one refresh; what is new beyond them waits for the next
HEAD = "\x01"  # before a term that was counted in the first lines of definitions
LOCK_SECONDS = 0.5
SETTLED_NS = 50_000_000  # a file that changed so shortly before it was read may change again without a newer time

SCHEMA = """
create table files (path text primary key, size int, mtime_ns int, doc int) without rowid;
create table docs (id integer primary key, digest blob unique, length int, heads int);
create table segments (id integer primary key);
create table postings (term text, segment int, rows blob, primary key (term, segment)) without rowid;
create table skeletons (doc integer primary key, definitions blob);
create table history (head text primary key, commits blob);
"""

KNOWN = "select path, size, mtime_ns, id, length, heads from files join docs on id = doc"

MODIFIERS = (
    r"(?:export|default|declare|abstract|async|unsafe|static|public|private|protected|final|virtual|inline|extern|const|open"
    r"|override|pub(?:\([^)\n]*\))?)"
)
KEYWORDS = (
    r"(?:def|class|func|fn|fun|function\*?|struct|enum|union|trait|interface|type|mod|module|namespace|impl|macro_rules!"
    r"|record|object|protocol)\b"
)
DEFINING = (
    rf"^[ \t]*(?:{MODIFIERS}[ \t]+)*"
    rf"(?:{KEYWORDS}[^\n]*"
    r"|(?:const|let|var)[ \t]+[\w$]++[^=\n]*+=[ \t]*(?:async|function|\(|\w+[ \t]*=>)[^\n]*"
    r"|[\w$.]++[ \t]*+=[ \t]*(?:async[ \t]+)?function[^\n]*)"
    r"|^[A-Za-z_][\w \t*&:<>,~]*+\([^;\n]*$"
    r"|^#[ \t]*define[^\n]*"
    r"|^[ \t]+(?:public|private|protected|static)[^\n=;]*\([^\n]*"
)  # first lines of definitions in any language, well enough to count their words


class Document(NamedTuple):
    """One content: how many terms it has, in all and in the first lines of definitions."""

    id: int
    length: int
    heads: int


class Index:
    """The documents of the files that `refresh` was last given. Use as a context manager, from one thread."""

    def __init__(self, root: Path, cache: Path | None) -> None:
        """`cache` is the file to keep the index in; without one, or where it cannot be used, a temporary one is taken."""
        self._root = root
        self._store = _open(cache)
        self.documents: dict[str, Document] = {}

    def close(self) -> None:
        """Gives the file back."""
        self._store.close()

    def refresh(self, files: Sequence[ScannedFile]) -> None:
        """Reads what is new among the files, source first; a file known with the same size and time is not opened."""
        self._compact(len(files))
        known: dict[str, tuple[Any, ...]] = {row[0]: row for row in self._store.execute(KNOWN)}
        segment = _Segment(self._store)
        self.documents = {}
        fresh: list[tuple[str, int, int, int]] = []
        new: list[ScannedFile] = []
        for file in files:
            row = known.pop(file.path, None)
            if row and row[1] == file.size and row[2] == file.mtime_ns:
                self.documents[file.path] = Document(*row[3:])
            elif file.readable:
                new.append(file)
        new.sort(key=lambda file: file.kind != "source")
        left = MOST_NEW
        for file in new:
            left -= file.size
            if left >= 0 and (document := self._read(file.path, segment)):
                self.documents[file.path] = document
                settled = file.mtime_ns < time.time_ns() - SETTLED_NS
                if settled and _storable(file.path):
                    fresh.append((file.path, file.size, file.mtime_ns, document.id))
        if fresh:
            self._store.executemany("insert or replace into files values (?, ?, ?, ?)", fresh)
        if known:
            self._store.executemany("delete from files where path = ?", [(path,) for path in known])
        segment.flush()
        self._store.commit()

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

    def _read(self, path: str, segment: _Segment) -> Document | None:
        try:
            data = (self._root / path).read_bytes()
        except OSError:
            return None
        digest = blake2b(data, digest_size=16, person=os.fsencode(path.rpartition(".")[2])[-16:]).digest()
        row = self._store.execute("select id, length, heads from docs where digest = ?", (digest,)).fetchone()
        return Document(*row) if row else segment.add(digest, data)

    def _compact(self, files: int) -> None:
        (docs,) = self._store.execute("select count(*) from docs").fetchone()
        (segments,) = self._store.execute("select count(*) from segments").fetchone()
        if docs > 3 * files + 1_000 or segments > MOST_SEGMENTS + files // 1_000:
            for table in ("files", "docs", "segments", "postings", "skeletons"):
                self._store.execute(f"delete from {table}")  # noqa: S608 - names from the line above


def _storable(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False  # a name that is no UTF-8 is read anew each time
    return True


class _Segment:
    """Postings of new documents, gathered in memory until there are many."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store
        self._postings: dict[str, array[int]] = {}
        self._rows = 0

    def add(self, digest: bytes, data: bytes) -> Document:
        text = "" if b"\0" in data[:8192] else data.decode(errors="replace")
        terms, heads = count_terms(text), count_terms("\n".join(re.findall(DEFINING, text, re.MULTILINE)))
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
        segment = self._store.execute("insert into segments default values").lastrowid
        rows = ((term, segment, postings.tobytes()) for term, postings in sorted(self._postings.items()))
        self._store.executemany("insert into postings values (?, ?, ?)", rows)
        self._postings, self._rows = {}, 0


def _open(cache: Path | None) -> sqlite3.Connection:
    """The store in this file, built anew where it is damaged or of another format; a temporary one where it cannot be had."""
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
    store = sqlite3.connect(cache or "", timeout=LOCK_SECONDS)
    try:
        store.execute("pragma synchronous = off")
        (found,) = store.execute("pragma user_version").fetchone()
        if found == 0:
            store.execute("pragma journal_mode = wal")
            store.executescript(f"begin immediate; {SCHEMA} pragma user_version = {FORMAT}; commit;")
        elif found != FORMAT:
            raise sqlite3.DatabaseError(f"index format {found}")
    except BaseException:
        store.close()
        raise
    return store
