"""`treadle doctor`: what this machine lacks, and what to do about it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio

from .arguments import Namespace, Parser

if TYPE_CHECKING:
    from treadle.app.doctor import Finding

    from .place import Place

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name, doctor, "Check Python, git, ripgrep, bubblewrap, disk, store and keys. Exit code 1 where something fails."
    )
    made.option("--model", metavar="provider:model", help="also look at this model")
    made.option("--base-url", metavar="URL", help="also see whether something listens there")
    return made.store().json()


def doctor(given: Namespace) -> int:
    """Prints what was found."""
    from .output import print_json
    from .place import place

    findings = anyio.run(partial(_examine, place(given.store), given.model, given.base_url))
    if given.json:
        print_json([finding._asdict() for finding in findings])
    else:
        _print(findings)
    return 1 if any(finding.grade == "fail" for finding in findings) else 0


async def _examine(where: Place, model: str | None, base_url: str | None) -> list[Finding]:
    from treadle.app.doctor import Finding, examine
    from treadle.core.errors import ConfigurationError

    from .preflight import reachable

    defaults = where.settings.defaults
    model, base_url = model or defaults.get("model"), base_url or defaults.get("base_url")
    findings = await examine(where.settings, where.store, model, base_url)
    if base_url:
        try:
            await reachable(base_url, where.settings.environ)
            findings.append(Finding("base-url", "ok", f"{base_url}: something listens there"))
        except ConfigurationError as error:
            findings.append(Finding("base-url", "fail", str(error), "Start the server, or correct the address."))
    return findings


def _print(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from treadle.core.spoken import one_line

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for one in findings:
        said = Text(one_line(one.found, 300))
        if one.advice and one.grade != "ok":
            said.append(f"\n→ {one.advice}", "bright_black")
        table.add_row(Text(one.grade, STYLES[one.grade]), one.name, said)
    Console(highlight=False, emoji=False).print(table)
