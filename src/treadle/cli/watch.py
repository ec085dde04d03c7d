"""`treadle watch`: an execution as it goes, or all of them, read from the ledger alone."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from .arguments import Namespace, Parser

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rich.console import Console, RenderableType

    from treadle.app.watching import Watched
    from treadle.ports.ledger import Ledger

    from .place import Place

LOOK_S = 0.4
ENDED = ("done", "failed", "stopped", "rejected", "cancelled")
FLEET = 200  # the newest executions; what is older has long come to rest
FLEET_ROWS = 40


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name,
        watch,
        "An execution as it goes: where it is, plan, budgets, pace, last calls, and what it waits for with the command to\n"
        "answer. Without EXEC all of them. It only reads, from any process, and delays nobody. With --json, and where stdout\n"
        "is no terminal, a line for each change. It ends with the execution, or by Ctrl-C.",
    )
    made.add_argument("execution", metavar="EXEC", nargs="?", default="", help="its id, a beginning of it, or 'last'")
    made.flag("--once", help="show how it stands now, and end")
    return made.store().json()


def watch(given: Namespace) -> int:
    """Shows it until it ends."""
    from .place import place

    where = place(given.store)
    show = partial(_one, execution=given.execution) if given.execution else _fleet
    try:
        anyio.run(partial(_watch, where, show, json=given.json, once=given.once))
    except KeyboardInterrupt:
        return 0  # the usual way to stop looking
    return 0


async def _watch(where: Place, show: Callable[..., Awaitable[None]], *, json: bool, once: bool) -> None:
    from rich.console import Console

    from .place import opened

    console = Console(highlight=False, emoji=False)
    async with opened(where) as ledger:
        if json or not (console.is_terminal or once):
            await show(ledger, _Lines(json=json, store=where.named_store), once=once)
        elif once:
            await show(ledger, _Page(console, where.named_store), once=True)
        else:
            from rich.live import Live

            with Live(console=console, screen=True, auto_refresh=False, transient=True) as live:
                page = _Page(console, where.named_store, lambda drawn: live.update(drawn, refresh=True))
                await show(ledger, page, once=False)
            console.print(page.last)


async def _one(ledger: Ledger, view: _Page | _Lines, *, execution: str, once: bool) -> None:
    from treadle.app.listing import document_of
    from treadle.app.watching import Watched

    from .place import found

    row, _ = await found(ledger, execution)
    watched = Watched(ledger, row)
    while True:
        changed = await watched.refresh(await ledger.row(row.execution_id))
        view.one(watched, changed=changed)
        assert watched.state is not None
        if once or document_of(row.execution_id, watched.state)["status"] in ENDED:
            return
        await anyio.sleep(LOOK_S)


async def _fleet(ledger: Ledger, view: _Page | _Lines, *, once: bool) -> None:
    from treadle.app.watching import Fleet

    fleet = Fleet(ledger, limit=FLEET)
    while True:
        found, changed = await fleet.refresh()
        view.fleet(found, changed, fleet.throughput(_now_us()))
        if once:
            return
        await anyio.sleep(LOOK_S)


def _now_us() -> int:
    return time.time_ns() // 1000


class _Page:
    """Drawn anew at each look."""

    def __init__(self, console: Console, store: str, draw: Callable[[RenderableType], None] | None = None) -> None:
        self._console, self._store = console, store
        self._draw = draw or console.print
        self.last: Any = ""

    def one(self, watched: Watched, *, changed: bool) -> None:
        from . import dashboard

        self.last = dashboard.one(watched, _now_us(), store=self._store, width=self._console.width)
        self._draw(self.last)

    def fleet(self, found: list[Watched], changed: list[Watched], rate: Any) -> None:
        from . import dashboard

        rows = max(5, min(FLEET_ROWS, self._console.height - 4))
        self.last = dashboard.fleet(found, rate, _now_us(), rows=rows, width=self._console.width)
        self._draw(self.last)


class _Lines:
    """A line for each change: JSON for programs, words for pipes."""

    def __init__(self, *, json: bool, store: str) -> None:
        self._json, self._store = json, store
        self._said: dict[str, str] = {}

    def one(self, watched: Watched, *, changed: bool) -> None:
        if not changed:
            return
        if self._json:
            self._print(watched.document(_now_us()))
            return
        from treadle.app.views import noteworthy

        assert watched.state is not None
        self._status(watched)
        for progress in watched.notes if self._said else []:
            if not hasattr(progress.state, "settings") or watched.row.kind != "loop":
                continue
            if (line := noteworthy(progress)) is not None:
                sys.stdout.write(f"{line.text}\n")
        sys.stdout.flush()

    def fleet(self, found: list[Watched], changed: list[Watched], rate: Any) -> None:
        for watched in changed:
            self._print(watched.document(_now_us())) if self._json else self._status(watched)
        if self._json and changed:
            running = sum(one.running for one in found)
            self._print({"fleet": {"executions": len(found), "running": running, "throughput": rate._asdict()}})
        sys.stdout.flush()

    def _status(self, watched: Watched) -> None:
        from treadle.app.ending import rest_of
        from treadle.app.waits import words

        from .listing import moment

        assert watched.state is not None
        rest = rest_of(watched.execution_id, watched.state, store=self._store)
        gone = watched.state.status == "running" and not watched.row.owner_alive
        upcoming = f" · next: {rest.next}" if watched.state.status != "running" or gone else ""
        label = "owner gone" if gone else rest.label
        waits = words(watched.waits, moment)
        line = f"{watched.execution_id} {label}{f', {waits}' if waits else ''}"
        if self._said.get(watched.execution_id) != line:
            self._said[watched.execution_id] = line
            why = f" · {rest.why}" if rest.why else ""
            sys.stdout.write(f"{line}{why} · {rest.accounts}{upcoming}\n")

    def _print(self, found: dict[str, Any]) -> None:
        from .output import print_json

        print_json(found)
