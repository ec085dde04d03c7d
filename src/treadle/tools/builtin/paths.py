"""Paths inside a workspace, resolved one component at a time through open folders, so that nothing can lead out of it.

Every folder on the way is opened without following links; links are followed here, by hand, as long as they stay
inside. What was checked is what is used: a component that is exchanged for a link in between makes the call fail, not
escape.
"""

from __future__ import annotations

import difflib
import errno
import os
import stat
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from treadle.core.errors import ToolError

from .faults import tool_error

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_MOST_LINKS = 40
MISSING = -1  # the folder of a place in a folder that is not there yet
IfMissing = Literal["refuse", "allow", "make"]
_INSIDE = "Give a path inside the workspace, relative to it."


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads: `name` in the open folder `folder`. The name may not exist yet; it is no link."""

    folder: int  # a descriptor, or MISSING
    name: str  # "." for a folder that was reached as such
    path: str  # relative to the workspace, links resolved

    def stat(self) -> os.stat_result | None:
        """None where nothing is there."""
        if self.folder == MISSING:
            return None
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, flags: int, mode: int = 0o666) -> int:
        """A descriptor of it; never through a link."""
        return os.open(self.name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self.folder)


class Workspace:
    """A folder and what is in it. `root` is absolute and free of links."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).resolve(strict=True)
        self._names = {str(self.root), str(Path(root).absolute())}

    def parts(self, path: str) -> list[str]:
        """The components of a relative path, or of an absolute one that begins with the root. ToolError("safety")."""
        if "\0" in path:
            raise ToolError("argument", "a path cannot hold a NUL character", hint=_INSIDE)
        try:
            os.fsencode(path)
        except UnicodeEncodeError as error:
            raise ToolError("argument", "the path is not valid Unicode", hint=_INSIDE) from error
        if not path.startswith("/"):
            return path.split("/")
        for root in self._names:
            if path == root or path.startswith(root + "/"):
                return path[len(root) :].split("/")
        raise ToolError("safety", f"{path} is outside the workspace", hint=_INSIDE)

    @contextmanager
    def locate(self, path: str, *, missing: IfMissing = "refuse") -> Generator[Place]:
        """Where the path leads. `missing` says what to do about folders on the way that are not there.

        ToolError: safety for what leads out, or is to be made inside .git; not-found, argument.
        """
        walk = _Walk(self, path)
        try:
            try:
                place = walk.to_end(missing)
            except OSError as error:
                raise tool_error(error, path) from error
            yield place
        finally:
            walk.close()


class _Walk:
    """The open folders from the root to where a path has got so far."""

    def __init__(self, workspace: Workspace, path: str) -> None:
        self._workspace, self._path = workspace, path
        self._ahead = deque(workspace.parts(path))
        self._names: list[str] = []
        self._folders = [os.open(workspace.root, _FOLDER)]
        self._links = 0

    def close(self) -> None:
        while self._folders:
            self._leave()

    def to_end(self, missing: IfMissing) -> Place:
        while self._ahead:
            name = self._ahead.popleft()
            if name in ("", "."):
                continue
            if name == "..":
                self._up()
                continue
            mode = self._mode(name)
            if stat.S_ISLNK(mode):
                self._follow(os.readlink(name, dir_fd=self._folders[-1]))
            elif all(part in ("", ".") for part in self._ahead):
                return Place(self._folders[-1], name, "/".join([*self._names, name]))
            elif mode != 0:
                self._down(name)
            else:
                self._without(name, missing)
        return Place(self._folders[-1], ".", "/".join(self._names) or ".")

    def _without(self, name: str, missing: IfMissing) -> None:
        if missing == "refuse":
            raise not_found(self._path, self._folders[-1], name)
        refuse_internals("/".join([*self._names, name]))
        if missing == "make":
            os.mkdir(name, dir_fd=self._folders[-1])
            self._down(name)
        else:
            self._folders.append(MISSING)
            self._names.append(name)

    def _mode(self, name: str) -> int:
        if self._folders[-1] == MISSING:
            return 0
        try:
            return os.stat(name, dir_fd=self._folders[-1], follow_symlinks=False).st_mode
        except FileNotFoundError:
            return 0

    def _down(self, name: str) -> None:
        self._folders.append(os.open(name, _FOLDER, dir_fd=self._folders[-1]))
        self._names.append(name)

    def _up(self) -> None:
        if not self._names:
            raise ToolError("safety", f"{self._path} leads out of the workspace", hint=_INSIDE)
        self._names.pop()
        self._leave()

    def _leave(self) -> None:
        if (folder := self._folders.pop()) != MISSING:
            os.close(folder)

    def _follow(self, target: str) -> None:
        self._links += 1
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, "links")
        if target.startswith("/"):
            parts = self._workspace.parts(target)  # refuses what is outside
            while self._names:
                self._up()
        else:
            parts = target.split("/")
        self._ahead.extendleft(reversed(parts))


def refuse_internals(path: str) -> None:
    """ToolError("safety") for the repository's own files: what they say is run by git."""
    if any(part.casefold() == ".git" for part in path.split("/")):
        raise ToolError(
            "safety",
            f"{path} belongs to git itself and cannot be written",
            hint="Change files of the work tree; use git commands for what git keeps.",
        )


def not_found(path: str, folder: int, name: str) -> ToolError:
    """There is no such thing in the folder; names what is close to it."""
    close = difflib.get_close_matches(name, [] if folder == MISSING else names_in(folder), n=3)
    hint = f"There is: {', '.join(close)}." if close else "List the folder, or use glob to find it."
    return ToolError("not-found", f"{path} does not exist", hint=hint)


def names_in(folder: int) -> list[str]:
    """What an open folder holds, in no order."""
    reader = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        with os.scandir(reader) as entries:
            return [entry.name for entry in entries]
    finally:
        os.close(reader)
