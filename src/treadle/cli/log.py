"""`treadle log`: the session log of an execution, one entry a line."""

from __future__ import annotations

import sys
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import anyio

from .arguments import Namespace, Parser
from .values import whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from treadle.app.logs import Entry, Follower, Wanted

    from .place import Place

    Print = Callable[[Entry], None]

LOOK_S = 0.3
ENDED = ("done", "failed", "stopped", "rejected", "cancelled")
HEAD_STYLES = {
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
PEOPLE = frozenset(
    "workflow quota suspended answered extended reopened adopted interrupted stopped workspace plan guard escalated".split()
)


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name,
        log,
        "Its session log: number, time, kind, and what matters of each record. With --json one object a line, long texts cut.",
    ).execution()
    made.flag("-f", "--follow", help="go on until it ends")
    made.option(
        "--kind", metavar="KIND", action="append", help="only these: model.responded, or model for all of model's"
    )
    made.round()
    made.option("--since", metavar="SEQ", type=whole("--since"), help="only what came after this record")
    made.option("--tail", metavar="N", type=whole("--tail"), help="only the last N of them")
    made.store().json()
    return made.flag("--whole", help="with --json: bodies as they are stored, however long")


def log(given: Namespace) -> int:
    """Prints the entries."""
    from treadle.app.logs import Wanted
    from treadle.core.errors import ConfigurationError

    from .place import place

    if given.whole and not given.json:
        raise ConfigurationError("--whole goes with --json. One turn whole: treadle show EXEC --turn N.")
    wanted = Wanted(kinds=tuple(given.kind or ()), round=given.round, since=given.since or 0)
    where = place(given.store)
    redact = _redact(where)
    show = partial(_print_json, redact=redact, whole=given.whole) if given.json else _lines()
    anyio.run(partial(_log, where, given.execution, wanted, show, redact, follow=given.follow, tail=given.tail))
    return 0


def _redact(where: Place) -> Callable[[str], str]:
    from treadle.core.redaction import Redactor, secrets_of

    return Redactor(secrets_of(where.settings.environ)).redact


async def _log(
    where: Place,
    execution: str,
    wanted: Wanted,
    show: Print,
    redact: Callable[[str], str],
    *,
    follow: bool,
    tail: int | None,
) -> None:
    from treadle.app.listing import document_of
    from treadle.app.logs import Follower

    from .place import found, opened

    async with opened(where) as ledger:
        row, state = await found(ledger, execution)
        follower = Follower(ledger, row.execution_id, redact, wanted)
        if tail:
            held: deque[Entry] = deque(maxlen=tail)
            async for entry in follower.more():
                held.append(entry)
            for entry in held:
                show(entry)
        await _print(follower, show)
        while follow and document_of(row.execution_id, state)["status"] not in ENDED:
            await anyio.sleep(LOOK_S)
            _, state = await found(ledger, row.execution_id)
            await _print(follower, show)


async def _print(follower: Follower, show: Print) -> None:
    async for entry in follower.more():
        show(entry)
    sys.stdout.flush()


def _print_json(entry: Entry, *, redact: Callable[[str], str], whole: bool) -> None:
    from treadle.app.logs import document
    from treadle.runtime.document import iso, to_json

    line = document(entry, redact, whole=whole)
    line["at"] = iso(line.pop("at_us"))
    sys.stdout.buffer.write(to_json(line) + b"\n")


def _lines() -> Print:
    """For people, coloured at a terminal."""
    from datetime import UTC, datetime

    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, emoji=False)

    def show(entry: Entry) -> None:
        at = datetime.fromtimestamp(entry.at_us / 1e6, UTC).astimezone().strftime("%H:%M:%S")
        task = f"{entry.task}: " if entry.task and not entry.round else ""
        line = Text.assemble(
            (f"{entry.seq:>5}  {at}  ", "bright_black"),
            (f"{entry.kind:<18}", _style(entry.kind)),
            f"  {task}{entry.text}",
        )
        console.print(line, soft_wrap=True)

    return show


def _style(kind: str) -> str:
    head = kind.split(".", maxsplit=1)[0]
    return "magenta" if head in PEOPLE else HEAD_STYLES.get(head, "")
