"""`--loop FILE`: a loop file where flags would stand; a flag that is typed wins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.core.errors import ConfigurationError

if TYPE_CHECKING:
    from treadle.spec.commandline import CommandLineLoop
    from treadle.spec.loopfile import LoopFile

EITHER = {"check": "judge", "judge": "check", "model": "agent_command", "agent_command": "model"}


def read(path: Path) -> LoopFile:
    """The file. ConfigurationError where it cannot be read, LoopFileError with the line of every fault."""
    from treadle.spec.loopyaml import parse

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--loop {path}: cannot be read: {error}") from error
    return parse(text, name=str(path))


def define(file: LoopFile, typed: Mapping[str, Any], defaults: Mapping[str, Any], folder: Path) -> CommandLineLoop:
    """The loop that the file and the typed flags define, the flags first. ConfigurationError."""
    from treadle.core.values import replace
    from treadle.spec.loopfile import beyond_flags, flags

    from .run import defined

    said = {name: value for name, value in typed.items() if value not in (None, False)}
    from_file = {name: value for name, value in flags(file).items() if EITHER.get(name) not in said}
    usual = {name: value for name, value in defaults.items() if name != "check" or not file.verify.judge}
    return replace(defined({**from_file, **said}, usual, folder), **beyond_flags(file))
