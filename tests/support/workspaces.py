"""Workspaces made by real git for tests, and what is in them."""

from __future__ import annotations

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


def contents(folder: Path, *, but: tuple[str, ...] = (".git",)) -> dict[str, object]:
    """Path -> what is there: bytes and execute bit, or where a link leads. Folders do not count."""
    found: dict[str, object] = {}
    for entry in folder.iterdir():
        if entry.name in but:
            continue
        if entry.is_symlink():
            found[entry.name] = entry.readlink()
        elif entry.is_dir():
            found |= {f"{entry.name}/{path}": what for path, what in contents(entry, but=but).items()}
        else:
            found[entry.name] = (entry.read_bytes(), bool(entry.stat().st_mode & 0o100))
    return found
