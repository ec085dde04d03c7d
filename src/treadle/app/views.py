"""Which view of progress suits the place where it is shown: a live one, plain lines, or none."""

from __future__ import annotations

from typing import TextIO

from treadle.telemetry.bars import bar
from treadle.telemetry.behind import Behind
from treadle.telemetry.live import budgets
from treadle.telemetry.progress import Line, NoView, PlainView, View, noteworthy

__all__ = ["Line", "View", "bar", "budgets", "noteworthy", "progress_view"]


def progress_view(stream: TextIO, *, quiet: bool = False) -> View:
    """Drawn at a terminal, plain lines elsewhere, nothing where quiet is asked for."""
    if quiet:
        return NoView()
    return Behind(_view(stream))


def _view(stream: TextIO) -> View:
    if not stream.isatty():
        return PlainView(stream)
    from rich.console import Console

    console = Console(file=stream, highlight=False)
    if console.is_dumb_terminal:
        return PlainView(stream)
    from treadle.telemetry.live import LiveView

    return LiveView(console)
