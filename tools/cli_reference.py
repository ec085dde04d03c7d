#!/usr/bin/env python3
"""Writes docs/reference/cli.md from the parsers of the commands themselves: `python tools/cli_reference.py`."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from pathlib import Path

from treadle.cli.arguments import Row
from treadle.cli.main import COMMANDS, parser
from treadle.core.endings import ENDINGS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
PREFACE = """\
# Command line

Made from the commands themselves by `python tools/cli_reference.py`. `treadle COMMAND --help` prints the same.

`EXEC` is an execution's id, a unique beginning of it, or `last`. Progress and the banner go to stderr; stdout carries
what programs read, and with `--json` nothing else. A first Ctrl-C stops cleanly, a second at once.
"""
ENDINGS_PREFACE = """
## Exit codes

2: the command line or the configuration is wrong, and nothing was started. Otherwise the ending decides:

| Ending | status | code | exit | goes on by |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    parts = [PREFACE]
    for name, entry in COMMANDS.items():
        parts += [_section(one) for one in [f"{name} {part}" for part in entry.parts] or [name]]
    rows = [
        f"| {row.banner} | {row.status} | {row.code} | {_exits(row.exit)} | {', '.join(row.goes_on_by) or '-'} |"
        for row in ENDINGS
        if row.exit is not None
    ]
    return "\n".join(parts) + ENDINGS_PREFACE + "\n".join(rows) + "\n"


def _exits(code: int | None) -> str:
    return "130; 143 after SIGTERM, 129 after SIGHUP" if code == 130 else str(code)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _section(name: str) -> str:
    made = parser(name)
    tables = [_table(title, list(rows)) for title, rows in groupby(made.rows, attrgetter("section"))]
    return f"## treadle {name}\n\n{made.description}\n" + "".join(tables)


def _table(title: str, rows: list[Row]) -> str:
    lines = "".join(f"| `{_cell(row.name)}` | {_cell(row.help)} |\n" for row in rows)
    return f"\n| {title or 'Argument'} | |\n| --- | --- |\n{lines}"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
