"""Which view of progress suits the place where it is shown; names the telemetry adapters, so that the command line need not."""

from __future__ import annotations

from typing import TextIO

from treadle.telemetry.progress import Line, NoView, PlainView, View

__all__ = ["Line", "View", "progress_view"]


def progress_view(stream: TextIO, *, quiet: bool = False) -> View:
    """Drawn at a terminal, plain lines elsewhere, nothing where quiet is asked for."""
    if quiet:
        return NoView()
    if not stream.isatty():
        return PlainView(stream)
    from rich.console import Console

    console = Console(file=stream, highlight=False)
    if console.is_dumb_terminal:
        return PlainView(stream)
    from treadle.telemetry.live import LiveView

    return LiveView(console)
