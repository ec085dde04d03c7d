"""`treadle map`: what of a folder a model would be shown for a task, within a budget of tokens."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.core.errors import ConfigurationError

from .arguments import Namespace, Parser
from .values import whole

if TYPE_CHECKING:
    from treadle.context.map import ContextMap

DEFAULT_TOKENS = 4_000
MOST_TASK_BYTES = 1 << 20


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name,
        show_map,
        "Print what a model should see of a folder before it plans: the files and definitions that matter most to a\n"
        "task, the likeliest first, never more than the budget. Nothing is sent anywhere, and no model is asked.\n\n"
        "A path whole from the root, then its definitions as LINE:FIRST LINE; or the whole text, moved in by one space.\n"
        "The last line says what was left out. Without a task, what was changed last comes first.",
    )
    made.option("--task", metavar="TEXT", help="what is to be done, in words; '-' reads it from stdin")
    made.option("--task-file", metavar="FILE", type=Path, help="the same from a file")
    made.option(
        "--budget",
        metavar="N",
        type=whole("--budget"),
        default=DEFAULT_TOKENS,
        help=f"tokens that it may take, a token being four characters (default: {DEFAULT_TOKENS})",
    )
    made.option("--path", metavar="DIR", type=Path, default=Path(), help="the folder (default: the current one)")
    made.flag("--no-cache", help="read every file anew, and keep nothing for the next time")
    return made.json()


def show_map(given: Namespace) -> int:
    """Prints the map. ConfigurationError for a task or a folder that cannot be read."""
    from treadle.context.map import build_map
    from treadle.settings import map_cache

    task, root = _task(given), given.path.expanduser()
    try:
        found = build_map(root, task, given.budget, None if given.no_cache else map_cache())
    except OSError as error:
        raise ConfigurationError(f"--path {root} cannot be mapped: {_reason(error, root)}. Name a folder.") from error
    if given.json:
        from .output import print_json

        print_json(document(found, given.budget))
    elif found.text:
        sys.stdout.buffer.write(found.text.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.buffer.flush()
    else:
        raise ConfigurationError(f"--budget {given.budget} has no room for a map. Example: --budget {DEFAULT_TOKENS}")
    return 0


def document(found: ContextMap, budget: int) -> dict[str, Any]:
    """What --json prints. `level` of an entry is tree, skeleton or full; `lines` are those of the definitions shown."""
    return {
        "modality": found.modality,
        "budget": budget,
        "tokens": found.tokens,
        "entries": [
            {
                "path": entry.path.encode("utf-8", "backslashreplace").decode(),
                "level": entry.level,
                "lines": entry.lines,
            }
            for entry in found.entries
        ],
        "files_left": found.files_left,
        "definitions_left": found.definitions_left,
        "text": found.text,
    }


def _task(given: Namespace) -> str:
    if given.task is not None and given.task_file is not None:
        raise ConfigurationError("Both --task and --task-file are given: leave one out.")
    if given.task == "-":
        return sys.stdin.read(MOST_TASK_BYTES)
    if given.task_file is None:
        return given.task or ""
    try:
        with given.task_file.expanduser().open("rb") as file:
            return file.read(MOST_TASK_BYTES).decode(errors="replace")
    except OSError as error:
        raise ConfigurationError(
            f"--task-file {given.task_file} cannot be read: {_reason(error, given.task_file)}."
        ) from error


def _reason(error: OSError, path: Path) -> str:
    if isinstance(error, NotADirectoryError):
        return "it is no folder" if path.exists() else "it does not exist"
    return error.strerror or type(error).__name__
