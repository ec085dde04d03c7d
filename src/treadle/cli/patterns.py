"""`treadle patterns`: the patterns that a loop is made of, as cards."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .arguments import Namespace, Parser

if TYPE_CHECKING:
    from treadle.spec.patterns import Card

COLOURS = {
    "control": "cyan",
    "foundation": "bright_black",
    "perceive": "blue",
    "reason": "magenta",
    "act": "green",
    "verify": "yellow",
    "learn": "bright_blue",
}
LABEL, WIDE = 10, 120


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name,
        show,
        "The patterns that a loop is made of: what each is for, what it takes in and gives on, the pitfall that it is known\n"
        "for, and the test that shows that Treadle does not fall into it. treadle lint FILE checks a loop file against them.",
    )
    made.add_argument(
        "pattern", metavar="ID", nargs="?", default="", help="one of them, such as agent-07 or 7 (default: all)"
    )
    return made.json()


def show(given: Namespace) -> int:
    """Prints one, or the list. InputError for one that there is not."""
    from treadle.spec.patterns import card, cards

    wanted = [card(given.pattern)] if given.pattern else list(cards())
    if given.json:
        from .output import print_json

        made = [document(one) for one in wanted]
        print_json(made[0] if given.pattern else {"patterns": made})
    elif given.pattern:
        _page(wanted[0])
    else:
        _list(wanted)
    return 0


def document(one: Card) -> dict[str, Any]:
    """What --json prints of one."""
    return {
        "id": one.id,
        "name": one.name,
        "stage": one.stage,
        "intent": one.intent,
        "wiring": one.wiring,
        "inputs": [_object(name) for name in one.inputs],
        "outputs": [_object(name) for name in one.outputs],
        "keys": list(one.keys),
        "pitfall": one.pitfall,
        "test": one.test,
        "requirement": one.requirement,
    }


def _object(name: str) -> dict[str, str]:
    from treadle.spec.patterns import OUTSIDE, objects

    known = objects().get(name)
    return {"name": name, "type": known.type if known else "", "does": known.does if known else OUTSIDE[name]}


def _list(wanted: list[Card]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(file=sys.stdout, highlight=False, emoji=False)
    titles = ("Id", "Stage", "Pattern", *(("What it is for",) if console.width >= WIDE else ()))
    table = Table(*titles, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for one in wanted:
        row = (one.id, f"[{COLOURS[one.stage]}]{one.stage}[/]", one.name, one.intent)
        table.add_row(*row[: len(titles)])
    console.print(table)
    console.print("\ntreadle patterns ID says more of one. treadle lint FILE checks a loop file.", style="dim")


def _page(one: Card) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(file=sys.stdout, highlight=False, emoji=False)
    console.print(f"[bold]{one.id}  {one.name}[/]  [{COLOURS[one.stage]}]{one.stage}[/]")
    console.print(one.intent, end="\n\n")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", width=LABEL, no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("wiring", one.wiring)
    table.add_row("takes in", _named(one.inputs))
    table.add_row("gives on", _named(one.outputs))
    if one.keys:
        table.add_row("loop file", ", ".join(one.keys))
    table.add_row("pitfall", f"[yellow]{one.pitfall}[/]")
    table.add_row("shown by", one.test)
    console.print(table)


def _named(names: tuple[str, ...]) -> str:
    """Each with what it is; that of ours has the type's path in docs/reference/loop-objects.md and in --json."""
    return "\n".join(f"[bold]{name}[/]  [dim]{_object(name)['does']}[/]" for name in names)
