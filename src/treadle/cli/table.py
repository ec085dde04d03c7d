"""A table whose last column gives way where the terminal is narrow: what stands before it, such as an id, is copied by people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

LEAST = 4  # characters of the last column


def print_table(heads: Sequence[str], rows: Sequence[Sequence[Text]], *, right: frozenset[str] = frozenset()) -> None:
    """Writes it to stdout. `right` names the columns that are set to the right."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, emoji=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bright_black")
    for name in heads:
        table.add_column(name, no_wrap=True, justify="right" if name in right else "left")
    taken = sum(max(len(head), *(row[at].cell_len for row in rows)) + 2 for at, head in enumerate(heads[:-1]))
    for row in rows:
        row[-1].truncate(max(LEAST, console.width - taken), overflow="ellipsis")
        table.add_row(*row)
    console.print(table)
