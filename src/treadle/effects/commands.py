"""What checks and actors that are commands have in common: whether there is such a command, what it is told, how it ended."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from treadle.core.errors import ConfigurationError
from treadle.ports.callback import RoundContext
from treadle.tools.process import ProcessResult

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_UNTOLD = re.compile(r"[$`*?\[<>]")  # what only the shell can make a program of
_OWN_WORDS = frozenset(
    ". : [ break builtin case cd command continue do done echo elif else esac eval exec exit export false fi for function "
    "getopts hash if let local printf pwd read readonly return select set shift source test then time times trap true "
    "type ulimit umask unalias unset until wait while { }".split()
)
_BEFORE_A_WORD = frozenset(("(", "((", "!"))


def verify_command(
    command: str | Sequence[str], workspace: str | os.PathLike[str], *, environ: Mapping[str, str] | None = None
) -> None:
    """ConfigurationError unless the program that the command starts with is there and may be run.

    A word that only the shell understands (its own words, variables, patterns) is taken on trust.
    """
    word = _first_word(command) if isinstance(command, str) else command[0] if command else ""
    if word is None:
        return
    if not word:
        raise ConfigurationError("The command is empty.")
    inherited = os.environ if environ is None else environ  # noqa: TID251 - as the command will have it
    _find(word, Path(workspace), inherited.get("PATH", os.defpath))


def show_command(command: str | Sequence[str]) -> str:
    """As a person would type it."""
    return command if isinstance(command, str) else shlex.join(command)


def round_variables(context: RoundContext) -> dict[str, str]:
    """What every command of a round finds in its environment."""
    return {
        "TREADLE_EXECUTION_ID": context.execution_id,
        "TREADLE_ROUND": str(context.round),
        "TREADLE_PHASE": context.phase,
        "TREADLE_ATTEMPT": str(context.attempt),
        "TREADLE_IDEMPOTENCY_KEY": context.idempotency_key,
    }


def ended(result: ProcessResult) -> str:
    """How a command ended, in a few words."""
    return f"exit code {result.exit_code}" if result.signal is None else f"killed by signal {result.signal}"


def _first_word(command: str) -> str | None:
    """The program's name; empty where there is none, None where only the shell can tell."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    while True:
        try:
            word = lexer.get_token()
        except ValueError as error:
            raise ConfigurationError(f"The command cannot be read ({error}): {command}") from error
        if word is None:
            return ""
        if word in _BEFORE_A_WORD:
            continue
        if assigned := _ASSIGNMENT.match(word):
            if assigned[0] == "PATH=":
                return None
            continue
        return None if word in _OWN_WORDS or _UNTOLD.search(word) else word


def _find(word: str, workspace: Path, path: str) -> None:
    if "/" in word:
        program = workspace / Path(word).expanduser()
        if not program.is_file():
            raise ConfigurationError(f"The command was not found: there is no file {program}.")
        if not os.access(program, os.X_OK):
            raise ConfigurationError(f"The command cannot be run: {program} is not executable. Try: chmod +x {word}")
        return
    for folder in path.split(os.pathsep):
        program = workspace / folder / word
        if program.is_file() and os.access(program, os.X_OK):
            return
    hint = f" There is one in {workspace}: write ./{word}." if (workspace / word).is_file() else " Is it installed?"
    raise ConfigurationError(f"The command was not found: there is no program {word!r} on PATH.{hint}")
