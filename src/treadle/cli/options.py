"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Execution = Annotated[
    str,
    typer.Argument(
        metavar="EXEC", help="The execution: its id, a unique beginning of it, or 'last'.", show_default=False
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="URL", help="Where executions are kept, as sqlite:///FILE. Default: one store for you."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no banner.")]
Actor = Annotated[
    str, typer.Option("--as", metavar="NAME", help="Who says so. Default: your user name.", show_default=False)
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.", show_default=False)]
Round = Annotated[int | None, typer.Option("--round", metavar="N", min=1, help="Only this round.")]
Workspace = Annotated[
    Path | None, typer.Option("--workspace", metavar="DIR", help="The folder to work in. Default: the current one.")
]
