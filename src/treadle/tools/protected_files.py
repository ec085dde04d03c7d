"""Keeps the content of protected files, and puts back what has changed."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from treadle.core.errors import DefinitionError

from .globs import ignore_spec

MOST_KEPT = 64 * 1024 * 1024  # bytes, all files together
_CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")  # made by any test run: removed without a word
_NOT_SEARCHED = (".git", "node_modules", ".venv", ".tox")  # unless a glob names them from the root
_SQLITE = b"SQLite format 3\0"
_Signature = tuple[int, int, int, int, int]


class _Kept(NamedTuple):
    signature: _Signature
    content: bytes | None  # of a file, or the target of a link; None: too much to keep
    mtime_ns: int


class ProtectedFiles:
    """The files below `root` that match a glob. DefinitionError for a glob that cannot be understood."""

    def __init__(self, root: Path, globs: Sequence[str]) -> None:
        self._root = root
        try:
            self._spec = ignore_spec(globs)
        except ValueError as error:
            raise DefinitionError(f"A protected path cannot be understood: {error}") from error
        self._starts = _starts(globs)
        self._kept: dict[str, _Kept] = {}
        self._links: set[str] = set()  # folders above the files that are links, and are to stay so

    def matches(self, path: str) -> bool:
        """Whether a path relative to the workspace is protected, itself or as a part of a protected folder."""
        return self._spec.match_file(path) or self._spec.match_file(path + "/")

    def keep(self) -> None:
        """Takes note of the files as they are now; reads only those whose inode, size, mode or times are new."""
        before, room = self._kept, MOST_KEPT
        self._kept = {}
        self._links = {
            folder for start in self._starts for folder in _above(start) if (self._root / folder).is_symlink()
        }
        for path, found in self._present():
            signature = _signature(found)
            known = before.get(path)
            if known is None or known.signature != signature:
                known = _Kept(signature, self._read(path, found, room), found.st_mtime_ns)
            room -= len(known.content or b"")
            self._kept[path] = known

    def put_back(self) -> tuple[list[str], list[str]]:
        """Makes the files as they were at the last `keep`. (paths put back, paths that could not be)."""
        present = dict(self._present())
        restored: list[str] = []
        lost: list[str] = []
        for path in sorted(present.keys() - self._kept.keys()):
            done = self._try(lambda path=path: self._remove(path))
            if not any(part in _CACHES for part in path.split("/")):
                (restored if done else lost).append(path)
        for path, kept in self._kept.items():
            found = present.get(path)
            if found is not None and (_signature(found) == kept.signature or self._same(path, found, kept)):
                continue
            done = kept.content is not None and self._try(lambda path=path, kept=kept: self._restore(path, kept))
            (restored if done else lost).append(path)
        return restored, lost

    def _try(self, change: Callable[[], None]) -> bool:
        try:
            change()
        except OSError:  # the path is reported as not put back
            return False
        return True

    def _present(self) -> Iterator[tuple[str, os.stat_result]]:
        for start in self._starts:
            yield from self._below(start)

    def _below(self, start: str) -> Iterator[tuple[str, os.stat_result]]:
        ahead = [start]
        while ahead:
            path = ahead.pop()
            try:
                found = (self._root / path).lstat()
                if stat.S_ISDIR(found.st_mode):
                    names = (entry.name for entry in os.scandir(self._root / path))
                    ahead += [f"{path}/{name}" if path else name for name in names if name not in _NOT_SEARCHED]
                elif self._spec.match_file(path) and not self._is_database(path, found):
                    yield path, found
            except OSError:  # not there, or not ours to read: then it cannot be kept either
                continue

    def _is_database(self, path: str, found: os.stat_result) -> bool:
        """Or what belongs to one: putting back what a living writer has open would destroy it."""
        if path.endswith(("-wal", "-shm", "-journal")):
            return True
        if not stat.S_ISREG(found.st_mode) or found.st_size < len(_SQLITE):
            return False
        with (self._root / path).open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE

    def _read(self, path: str, found: os.stat_result, room: int) -> bytes | None:
        full = self._root / path
        if stat.S_ISLNK(found.st_mode):
            return os.fsencode(full.readlink())
        if not stat.S_ISREG(found.st_mode) or found.st_size > room:
            return None
        return full.read_bytes()

    def _same(self, path: str, found: os.stat_result, kept: _Kept) -> bool:
        """Only touched, or replaced by the same."""
        if kept.content is None or stat.S_IFMT(found.st_mode) != stat.S_IFMT(kept.signature[3]):
            return False
        return found.st_mode == kept.signature[3] and self._read(path, found, MOST_KEPT) == kept.content

    def _restore(self, path: str, kept: _Kept) -> None:
        full = self._root / path
        self._make_folders(path)
        self._remove(path)
        if stat.S_ISLNK(kept.signature[3]):
            full.symlink_to(os.fsdecode(kept.content or b""))
            return
        full.write_bytes(kept.content or b"")
        full.chmod(stat.S_IMODE(kept.signature[3]))
        os.utime(full, ns=(kept.mtime_ns, kept.mtime_ns))

    def _make_folders(self, path: str) -> None:
        """Real folders all the way: a link or a file that has taken the place of one is removed."""
        here = self._root
        for part in path.split("/")[:-1]:
            here /= part
            is_link = here.is_symlink() and str(here.relative_to(self._root)) not in self._links
            if is_link or not here.is_dir():
                here.unlink(missing_ok=True)
                here.mkdir()
            elif not os.access(here, os.W_OK | os.X_OK):
                here.chmod(0o755)

    def _remove(self, path: str) -> None:
        full = self._root / path
        if full.is_dir() and not full.is_symlink():
            shutil.rmtree(full)
        else:
            full.unlink(missing_ok=True)


def _signature(found: os.stat_result) -> _Signature:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode, found.st_ino


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _starts(globs: Sequence[str]) -> tuple[str, ...]:
    """The folders or files to look in: the fixed beginning of each glob, or everything."""
    starts: set[str] = set()
    for glob in globs:
        parts = glob.strip("/").split("/")
        fixed = [part for part in parts if not set(part) & set("*?[!\\")]
        anchored = len(parts) > 1 or glob.startswith("/")
        if glob.startswith("!") or not anchored or fixed != parts[: len(fixed)] or not fixed:
            return ("",)
        starts.add("/".join(fixed))
    return tuple(sorted(start for start in starts if not any(start.startswith(f"{o}/") for o in starts)))
