"""A table that fits the terminal: ids and money are never cut, since people copy and add them; what may give way is said by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

LEAST, ENOUGH = 4, 16  # characters of the last column at least, and before any other gives way
LEAST_OF_OTHERS = 7


def print_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Text]],
    *,
    right: frozenset[str] = frozenset(),
    spare: str = "",
    gives: str = "",
) -> None:
    """Writes it to stdout. `right` names the columns that are set to the right.

    Where it is narrow the last column gives way first, then the one named `spare` is left out, then the one named `gives` is cut.
    """
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, emoji=False)
    heads, columns = list(heads), [list(column) for column in zip(*rows, strict=True)]
    enough = min(ENOUGH, _width(heads[-1], columns[-1]))
    if spare in heads and _room(console.width, heads, columns) < enough:
        at = heads.index(spare)
        del heads[at], columns[at]
    if gives in heads and (lacking := enough - _room(console.width, heads, columns)) > 0:
        _cut(columns[at := heads.index(gives)], max(LEAST_OF_OTHERS, _width(heads[at], columns[at]) - lacking))
    _cut(columns[-1], max(LEAST, _room(console.width, heads, columns)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bright_black")
    for name in heads:
        table.add_column(name, no_wrap=True, justify="right" if name in right else "left")
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    console.print(table)


def _width(head: str, column: Sequence[Text]) -> int:
    return max(len(head), *(cell.cell_len for cell in column))


def _room(width: int, heads: Sequence[str], columns: Sequence[Sequence[Text]]) -> int:
    """What is left for the last column."""
    return width - sum(_width(head, column) + 2 for head, column in zip(heads[:-1], columns[:-1], strict=True))


def _cut(column: Sequence[Text], width: int) -> None:
    for cell in column:
        cell.truncate(width, overflow="ellipsis")
