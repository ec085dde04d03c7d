"""Workspaces made by real git for tests, and what is in them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

WHO = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")


def git(folder: Path, *arguments: str, stdin: bytes | None = None) -> str:
    command = ["git", *WHO, "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def repository(folder: Path, files: dict[str, str] | None = None, *options: str) -> Path:
    """A repository with one commit of these files."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main", *options)
    write(folder, files or {"kit.py": "def add(a, b):\n    return a - b\n", "README": "A kit.\n"})
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def contents(folder: Path, *, but: tuple[str, ...] = (".git",)) -> dict[bytes, object]:
    """Path -> what is there: bytes and execute bit, or where a link leads. Folders do not count."""
    found: dict[bytes, object] = {}
    for at, folders, files in os.walk(os.fsencode(folder)):
        folders[:] = [name for name in folders if os.fsdecode(name) not in but]
        for name in [*files, *(name for name in folders if os.path.islink(os.path.join(at, name)))]:
            path = os.path.join(at, name)
            if os.fsdecode(name) in but:
                continue
            if os.path.islink(path):
                found[os.path.relpath(path, os.fsencode(folder))] = os.readlink(path)
            else:
                with open(path, "rb") as file:
                    executable = bool(os.stat(path).st_mode & 0o100)
                    found[os.path.relpath(path, os.fsencode(folder))] = (file.read(), executable)
    return found
