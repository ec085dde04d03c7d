"""`treadle demo`."""

from __future__ import annotations

import typer

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def demo() -> None:
    """A small local model writes the missing functions of a module until its tests pass; its worker is killed midway."""
    from treadle.demo.main import run_demo

    raise typer.Exit(run_demo())
