"""A budget as a bar that shows on any terminal: what is used in its colour, and the rest as a track."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

HOT, WARM = 0.9, 0.75


def bar(share: float, width: int) -> Text:
    """`share` of the width is used: green, from three quarters on yellow, from nine tenths on red. Anything used shows."""
    from rich.text import Text

    used = min(width, round(share * width) or int(share > 0))
    return Text.assemble(("━" * used, warmth(share)), ("┄" * (width - used), "bright_black"))


def warmth(share: float) -> str:
    """The colour of a budget that is used so far."""
    return "red" if share >= HOT else "yellow" if share >= WARM else "green"
