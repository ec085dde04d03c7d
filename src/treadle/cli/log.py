"""`treadle log`: the records of an execution, one a line."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import anyio

from .arguments import Namespace, Parser
from .values import whole

if TYPE_CHECKING:
    from treadle.ports.ledger import Ledger, Record

    from .place import Place

LOOK_S = 0.3
ENDED = ("done", "failed", "stopped", "rejected", "cancelled")


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name,
        log,
        "Its records: number, time, kind, and what matters of each. With --json one JSON object a line, whole.",
    ).execution()
    made.flag("-f", "--follow", help="go on until it ends")
    made.option("-n", "--tail", metavar="N", type=whole("--tail"), help="only the last N")
    return made.store().json()


def log(given: Namespace) -> int:
    """Prints the records."""
    from .place import place

    where = place(given.store)
    anyio.run(partial(_log, where, given.execution, follow=given.follow, tail=given.tail, json=given.json))
    return 0


async def _log(where: Place, execution: str, *, follow: bool, tail: int | None, json: bool) -> None:
    from treadle.app.listing import document_of

    from .place import found, opened

    async with opened(where) as ledger:
        row, _ = await found(ledger, execution)
        printer = _Json() if json else _Lines()
        after = max(0, row.head - tail) if tail else 0
        after = await _print_after(ledger, row.execution_id, after, printer)
        while (
            follow and document_of(row.execution_id, (await found(ledger, row.execution_id))[1])["status"] not in ENDED
        ):
            await anyio.sleep(LOOK_S)
            after = await _print_after(ledger, row.execution_id, after, printer)


async def _print_after(ledger: Ledger, execution_id: str, after: int, printer: _Json | _Lines) -> int:
    while page := await ledger.records(execution_id, after=after, limit=500):
        for record in page:
            printer.print(record)
        after = page[-1].seq
    sys.stdout.flush()
    return after


class _Json:
    """One object a line; bodies as stored."""

    def print(self, record: Record) -> None:
        import msgspec

        from treadle.runtime.document import iso, to_json

        line = {
            "seq": record.seq,
            "at": iso(record.at_us),
            "kind": record.kind,
            "version": record.version,
            "parent": record.parent,
            "body": msgspec.Raw(record.body),
        }
        sys.stdout.buffer.write(to_json(line) + b"\n")


class _Lines:
    """For people, coloured at a terminal."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False)

    def print(self, record: Record) -> None:
        from datetime import UTC, datetime

        from rich.text import Text

        from treadle.app.describe import describe
        from treadle.core.codec import decode

        at = datetime.fromtimestamp(record.at_us / 1e6, UTC).astimezone().strftime("%H:%M:%S")
        text = describe(decode(record.kind, record.version, record.body))
        line = Text.assemble(
            (f"{record.seq:>5}  {at}  ", "bright_black"), (f"{record.kind:<18}", _style(record.kind)), f"  {text}"
        )
        self._console.print(line, soft_wrap=True)


def _style(kind: str) -> str:
    head = kind.split(".", maxsplit=1)[0]
    styles = {
        "model": "cyan",
        "tool": "blue",
        "tools": "blue",
        "judged": "green",
        "act": "green",
        "task": "green",
        "phase": "cyan",
        "round": "green",
        "prompted": "bright_black",
    }
    people = {
        "workflow",
        "quota",
        "suspended",
        "answered",
        "extended",
        "reopened",
        "adopted",
        "interrupted",
        "stopped",
        "workspace",
    }
    return "magenta" if head in people else styles.get(head, "")
