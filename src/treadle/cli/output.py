"""What reaches stdout and stderr at the end of a command: the document for programs, one banner line for people."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from treadle.app.ending import Rest
from treadle.core.spoken import plain
from treadle.runtime.document import to_json

STYLES = {
    "green": "green",
    "red": "red",
    "amber": "yellow",
    "violet": "magenta",
    "grey": "bright_black",
    "blue": "blue",
}


def print_json(value: Any) -> None:
    """One line of JSON on stdout; money as numbers."""
    sys.stdout.flush()
    sys.stdout.buffer.write(to_json(value) + b"\n")
    sys.stdout.buffer.flush()


def banner(execution_id: str, rest: Rest, *, stream: TextIO) -> None:
    """The one line of AG-17: what it has come to, why, what it took, and what to type next."""
    label = f"{execution_id} {rest.label}"
    parts = [part for part in (rest.why, rest.accounts) if part]
    try:
        if stream.isatty():
            from rich.console import Console
            from rich.text import Text

            line = Text.assemble((f"● {label}", f"bold {STYLES[rest.colour]}"), f" · {' · '.join(parts)} · next: ")
            line.append(rest.next, "bold")
            Console(file=stream, highlight=False, emoji=False).print(line, soft_wrap=True)
        else:
            stream.write(f"{label} · {' · '.join(parts)} · next: {rest.next}\n")
            stream.flush()
    except OSError:
        return  # the terminal has gone away; the same stands in the artifact


def warn(text: str) -> None:
    """Something went wrong beside the loop."""
    try:
        sys.stderr.write(f"treadle: {plain(text)}\n")
        sys.stderr.flush()
    except OSError:
        return  # nobody is there to read it
