"""SQL from its files: statements by name, migrations by number."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).with_name("sql")
_NAME = "-- name: "
REMOVALS = (
    "remove_execution",
    "remove_records",
    "remove_receipts",
    "remove_suspensions",
    "remove_posted",
    "remove_snapshots",
    "remove_summary",
)
"""What takes an execution out of a store, in this order: its records may go once it has gone itself."""


class Migration(NamedTuple):
    """One step from `number - 1` to `number`."""

    number: int
    sql: str


def named(file: str) -> dict[str, str]:
    """Statements of `sql/<file>.sql`, each after a line `-- name: <name>`; what precedes the first is prose."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (FOLDER / f"{file}.sql").read_text("utf-8").splitlines():
        if line.startswith(_NAME):
            lines = found[line.removeprefix(_NAME).strip()] = []
        elif not line.startswith("--"):
            lines.append(line)
    return {name: "\n".join(text).strip().removesuffix(";") for name, text in found.items()}


def migrations(folder: str = "migrations") -> tuple[Migration, ...]:
    """All migrations in that folder of `sql/`, in order."""
    files = sorted((FOLDER / folder).glob("[0-9]*.sql"))
    return tuple(Migration(int(file.name.partition("_")[0]), file.read_text("utf-8")) for file in files)


def split(script: str) -> Iterator[str]:
    """The statements of a script. `executescript` would commit by itself, and a migration is one transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
