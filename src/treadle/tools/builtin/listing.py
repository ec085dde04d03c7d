"""What files there are: one folder, or all that git would not ignore."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.core.errors import ToolError
from treadle.core.spoken import count
from treadle.tools.globs import ignore_spec

from .faults import tool_error
from .paths import Workspace, names_in, not_found

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST_ENTRIES = 1000
_MOST_WALKED = 200_000
_LONGEST_PATTERN = 512
_MOST_ALTERNATIVES = 64
_MOST_STARS = 3  # in one part of a pattern, and `**` in all of it: matching takes names to that power

_Rules = tuple[tuple[str, "GitIgnoreSpec"], ...]  # folder of a .gitignore, what it says


def list_dir(workspace: Workspace, path: str) -> str:
    """One line an entry, sorted: `folder/`, `file (bytes)`, `link -> target`. ToolError as of the path."""
    with workspace.locate(path) as place:
        try:
            folder = place.open(os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError as error:
            raise not_found(path, place.folder, place.name) from error
        except OSError as error:
            raise tool_error(error, place.path) from error
        try:
            names = sorted(names_in(folder))
            lines = [_entry(folder, name) for name in names[:MOST_ENTRIES]]
        finally:
            os.close(folder)
    if len(names) > MOST_ENTRIES:
        lines.append(f"[and {len(names) - MOST_ENTRIES:,} more: use glob]")
    return "\n".join(lines) or f"[{path} is empty]"


def _entry(folder: int, name: str) -> str:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            return shown(f"{name} -> {os.readlink(name, dir_fd=folder)}")
    except OSError:  # gone meanwhile
        return shown(name)
    if stat.S_ISDIR(found.st_mode):
        return shown(f"{name}/")
    return shown(f"{name} ({count(found.st_size, 'byte')})")


def shown(name: str) -> str:
    """A name from the file system as valid Unicode."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def matching(pattern: str) -> GitIgnoreSpec:
    """A glob over paths relative to the workspace: without `/` at any depth; `**` spans folders, `{a,b}` is either.

    ToolError: safety for a pattern that leads out, argument for one that cannot be matched in reasonable time.
    """
    parts = pattern.split("/")
    if pattern.startswith("/") or ".." in parts:
        raise ToolError(
            "safety", f"{pattern} leads out of the workspace", hint="Give a pattern relative to the workspace."
        )
    stars = max(len(re.findall(r"\*+", part)) for part in parts)
    if len(pattern) > _LONGEST_PATTERN or stars > _MOST_STARS or parts.count("**") > _MOST_STARS:
        raise ToolError(
            "argument", f"the pattern has more than {_MOST_STARS} wildcards in one part", hint="Simplify it."
        )
    while parts[0] == "." and len(parts) > 1:
        parts = parts[1:]
    lines = [f"\\{line}" if line[:1] in ("!", "#") else line for line in _alternatives("/".join(parts))]
    try:
        return ignore_spec(lines)
    except ValueError as error:
        raise ToolError(
            "argument", f"the pattern cannot be understood: {error}", hint="Use *, **, ? and []."
        ) from error


def _alternatives(pattern: str) -> list[str]:
    """`a.{b,c}` as a.b and a.c."""
    done: list[str] = []
    ahead = [pattern]
    while ahead:
        if len(done) + len(ahead) > _MOST_ALTERNATIVES:
            raise ToolError("argument", "the pattern has too many {alternatives}", hint="Ask for fewer at once.")
        line = ahead.pop()
        found = re.search(r"\{([^{}]*,[^{}]*)\}", line)
        if found is None:
            done.append(line)
        else:
            ahead += [line[: found.start()] + choice + line[found.end() :] for choice in found[1].split(",")]
    return done


def walk(root: Path, under: str = "") -> Iterator[str]:
    """Files below a folder (or that file), relative to the root, as its .gitignore files say; where git is not asked."""
    if (root / under).is_file():
        yield under
    else:
        yield from islice(_walk(root, "" if under == "." else under), _MOST_WALKED)


def _walk(root: Path, start: str) -> Iterator[str]:
    ahead: list[tuple[str, _Rules]] = [(start, ())]
    while ahead:
        folder, rules = ahead.pop()
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError:  # not ours to read, gone meanwhile, or too deep: it holds nothing for us
            continue
        for entry in entries:
            if entry.name == ".gitignore" and entry.is_file(follow_symlinks=False):
                rules = (*rules, (f"{folder}/" if folder else "", _ignore_file(Path(entry.path))))
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or _ignored(path + "/" * is_folder, rules):
                continue
            if is_folder:
                ahead.append((path, rules))
            elif entry.is_file(follow_symlinks=False):
                yield path


def _ignore_file(path: Path) -> GitIgnoreSpec:
    lines: list[str] = []
    for line in path.read_text(errors="replace").splitlines():
        with suppress(ValueError):  # git ignores what it cannot understand, too
            ignore_spec([line])
            lines.append(line)
    return ignore_spec(lines)


def _ignored(path: str, rules: _Rules) -> bool:
    for base, spec in reversed(rules):
        verdict = spec.check_file(path[len(base) :]).include
        if verdict is not None:
            return verdict
    return False
