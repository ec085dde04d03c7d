"""`treadle context`: what fills the window of an execution's agent, what was compacted, and a compaction that a person asks for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from .arguments import Namespace, Parser
from .person import speaker
from .values import one_of

if TYPE_CHECKING:
    from treadle.app.window import Window
    from treadle.kernel.window_state import WindowState

    from .place import Place

DEPTHS = ("micro", "auto", "full")
WIDTH = 60
LOOKS = {
    "system": ("█", "blue"),
    "tools": ("▓", "bright_blue"),
    "task": ("█", "green"),
    "feedback": ("▓", "bright_green"),
    "directives": ("▒", "yellow"),
    "model": ("█", "cyan"),
    "tool results": ("▓", "magenta"),
    "summaries": ("▒", "bright_magenta"),
    "free": ("·", "bright_black"),
}


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name,
        context,
        "What fills the model's context window, as a bar by kind of content; what was compacted, saved, and what it cost.\n\n"
        "--compact asks for a compaction at the agent's next boundary: micro trims old tool outputs, auto summarises early\n"
        "turns, full leaves a summary, what is pinned and the last turns. It closes a breaker that has opened.",
    ).execution()
    made.option("--compact", metavar="DEPTH", type=one_of("--compact", DEPTHS), help="compact: micro, auto or full")
    return made.actor().store().json()


def context(given: Namespace) -> int:
    """Prints the window, or has it compacted."""
    from .place import place

    where = place(given.store)
    if given.compact is None:
        anyio.run(partial(_show, where, given.execution, json=given.json))
    else:
        anyio.run(partial(_compact, where, given.execution, given.compact, speaker(given.actor), json=given.json))
    return 0


async def _show(where: Place, execution: str, *, json: bool) -> None:
    from treadle.app.window import window_document, window_now
    from treadle.core.errors import InputError

    from .output import print_json
    from .place import found_loop, opened

    async with opened(where) as ledger:
        row, state = await found_loop(ledger, execution)
        now = await window_now(ledger, row.execution_id, state)
    if now is None:
        raise InputError(
            f"{row.execution_id} has sent no request yet, or no model acts in it: there is no window to show."
        )
    if json:
        print_json(window_document(row.execution_id, now))
    else:
        _print(row.execution_id, now)


async def _compact(where: Place, execution: str, depth: Any, actor: str, *, json: bool) -> None:
    from treadle.kernel.steering import Compact

    from .output import print_json, warn
    from .place import found_loop, running

    async with running(where) as runtime:
        row, before = await found_loop(runtime.ledger, execution)
        state = await runtime.steer(row.execution_id, Compact(actor=actor, depth=depth))
    said = "given to the process that runs it" if state.seq == before.seq else "recorded; treadle resume carries it out"
    if json:
        print_json(
            {"execution_id": row.execution_id, "compact": depth, "actor": actor, "recorded": state.seq > before.seq}
        )
    else:
        warn(f"{row.execution_id}: {depth} compaction {said}.")


def _print(execution_id: str, now: Window) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, emoji=False)
    counted = "counted by the provider" if now.by == "usage" else "estimated"
    percent = now.used * 100 // now.budget
    console.print(
        f"{execution_id} · {now.phase} · {now.used:,} of {now.budget:,} tokens ({percent} %, {counted}); "
        f"the model reads {now.size:,}, {now.reserved:,} are reserved for its answer",
        soft_wrap=True,
    )
    parts = [(kind, count) for kind, count in (*now.kinds.items(), ("free", now.free)) if count]
    bar = Text()
    for kind, cells in _cells(parts):
        mark, colour = LOOKS[kind]
        bar.append(mark * cells, colour)
    console.print(bar)
    for kind, count in parts:
        mark, colour = LOOKS[kind]
        console.print(Text.assemble((f"  {mark} ", colour), f"{kind:<13}{count:>9,}"))
    _print_history(console, now)


def _print_history(console: Any, now: Window) -> None:
    from treadle.core.spoken import money, one_line

    for one in now.compactions[-10:]:
        cost = f", {money(one.cost_usd)}" if one.cost_usd else ""
        came = f"{one.before:,} → {one.after:,}" if not one.failure else f"failed: {one_line(one.failure, 80)}"
        console.print(f"  {one.at}  {one.depth:<5} ({one.by}) {came}{cost}", soft_wrap=True)
    if (more := len(now.compactions) - 10) > 0:
        console.print(f"  and {more} earlier ones: treadle log lists them")
    state = now.state
    console.print(
        f"compactions {state.compactions}, saved {state.saved:,} tokens; summaries took {state.spent.requests} requests, "
        f"{money(state.spent.cost_usd)}; breaker {_breaker(state)}",
        soft_wrap=True,
    )
    usage = now.cached
    console.print(
        f"cache key {now.key}; read from the provider's cache {usage.cache_read_tokens:,} of {usage.input_tokens:,} input tokens",
        soft_wrap=True,
    )
    if state.wanted is not None:
        console.print(f"a {state.wanted.depth} compaction is asked for by {state.wanted.actor}")


def _breaker(state: WindowState) -> str:
    from treadle.kernel.window import shrinks_to_close

    if not state.open:
        return "closed"
    left = max(1, shrinks_to_close(state) - state.shrinks)
    return f"open: no summary until {left} more compaction{'s' * (left > 1)} shrank the window, or --compact auto"


def _cells(parts: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """So many cells for each part of the bar: its share, and one at least."""
    whole = sum(count for _, count in parts) or 1
    cells = [max(1, round(count * WIDTH / whole)) for _, count in parts]
    largest = cells.index(max(cells))
    cells[largest] += WIDTH - sum(cells)
    return [(kind, max(1, count)) for (kind, _), count in zip(parts, cells, strict=True)]
