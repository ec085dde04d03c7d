"""The `treadle` command: finds the module of a subcommand, and turns every error into a message and an exit code.

Subcommands are imported when they are named, and the overview is written from the table here, so that help is instant.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from treadle.core.errors import TreadleError

    from .arguments import Parser

E = TypeVar("E", bound=BaseException)


class Entry(NamedTuple):
    """A subcommand: the module that has it, its line in the overview, and the commands below it."""

    module: str
    help: str
    parts: tuple[str, ...] = ()


COMMANDS: dict[str, Entry] = {
    "run": Entry("run", "Work on a task until the check accepts."),
    "resume": Entry("resume", "Go on with an execution, or print how it ended."),
    "ls": Entry("listing", "List executions, newest first."),
    "show": Entry("show", "One execution: ending, accounts, rounds; or one turn of it."),
    "why": Entry("show", "Why it ended as it did, and what to do next."),
    "watch": Entry("watch", "One execution as it goes, or all of them."),
    "context": Entry("context", "What fills the model's window; or compact it."),
    "log": Entry("log", "Its session log, one record a line; -f follows."),
    "last": Entry("show", "The output of the last tool call, or of a named one."),
    "diff": Entry("workspace", "What it has changed in the workspace."),
    "revert": Entry("workspace", "Put the workspace back to how it was before it, or before a round."),
    "answer": Entry("steering", "Answer the question that it waits with."),
    "approve": Entry("steering", "Say yes to what it waits with."),
    "reject": Entry("steering", "Say no, with a reason."),
    "cancel": Entry("steering", "End it for good."),
    "extend": Entry("steering", "Raise limits, so that it can go on."),
    "lease": Entry("lease", "Show, grant or revoke what its agent may touch.", ("ls", "grant", "revoke")),
    "plan": Entry(
        "plan", "Show, edit, approve, reject or mark its plan.", ("show", "edit", "approve", "reject", "mark")
    ),
    "frame": Entry(
        "frame",
        "Show, follow, verify, export or import its continuation.",
        ("show", "history", "verify", "export", "import"),
    ),
    "fork": Entry("fork", "A new execution from any record of an old one."),
    "scope": Entry(
        "scope", "Worktrees of isolated loops: list, compare, merge, drop.", ("ls", "diff", "merge", "drop")
    ),
    "lessons": Entry(
        "lessons",
        "What accepted runs have taught; edit, retire, export or import it.",
        ("ls", "show", "edit", "retire", "export", "import"),
    ),
    "ledger": Entry(
        "ledger",
        "The store as a whole: check, tidy, carry, remove what is old.",
        ("verify", "vacuum", "export", "import", "prune"),
    ),
    "map": Entry("map", "What of a folder a model should see for a task, within a budget."),
    "patterns": Entry("patterns", "The patterns that a loop is made of, and how each can go wrong."),
    "lint": Entry("lint", "Check a loop file against the patterns."),
    "worker": Entry("worker", "Keep going on with executions that nobody owns; made for systemd."),
    "recover": Entry("worker", "The same, once."),
    "studio": Entry("studio", "Compose, watch and steer loops in a browser."),
    "doctor": Entry("doctor", "Check what Treadle needs on this machine."),
    "init": Entry("init", "Write a commented configuration file for a workspace."),
    "demo": Entry("demo", "The main job for real, with a small local model and no key."),
}
HELP_WIDTH = 10
USAGE = 2
CRASHED = 1


def overview() -> str:
    """What `treadle --help` prints."""
    lines = [f"  {name:<{HELP_WIDTH}}{entry.help}" for name, entry in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: treadle COMMAND [OPTIONS]",
            "",
            "Runs an AI agent in a bounded act-evaluate loop that survives anything.",
            "",
            '  treadle run "Fix the failing test" --check "pytest -q" --model openai:NAME',
            "",
            "Commands:",
            *lines,
            "",
            "treadle COMMAND --help says more. treadle --version prints the version.",
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and ends the process with its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("--help", "-h", "help"):
        sys.stdout.write(overview())
        sys.exit(0 if given else USAGE)
    if given[0] in ("--version", "-V"):
        from importlib.metadata import version

        sys.stdout.write(f"treadle {version('treadle')}\n")
        sys.exit(0)
    if given[0] in COMMANDS and COMMANDS[given[0]].parts and given[1:2] in ([], ["--help"], ["-h"]):
        sys.stdout.write("".join(f"treadle {given[0]} {part}\n" for part in COMMANDS[given[0]].parts))
        sys.exit(0 if given[1:] else USAGE)
    sys.exit(_run(given))


def _named(given: list[str]) -> tuple[str, list[str]]:
    """(the subcommand, its arguments). InputError for one that is none."""
    name, rest = given[0], given[1:]
    if name not in COMMANDS:
        raise _unknown(name, COMMANDS, "treadle --help")
    if parts := COMMANDS[name].parts:
        if not rest or rest[0] not in parts:
            raise _unknown(f"{name} {rest[0] if rest else ''}".rstrip(), [f"{name} {part}" for part in parts], "")
        name, rest = f"{name} {rest[0]}", rest[1:]
    return name, rest


def _unknown(name: str, known: Collection[str], where: str) -> TreadleError:
    from difflib import get_close_matches

    from treadle.core.errors import InputError

    close = get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    there = f"{where} lists them." if where else f"There are {', '.join(known)}."
    return InputError(f"there is no command {name!r}.{hint} {there}")


def _check_text(arguments: list[str]) -> None:
    """InputError for an argument that is not UTF-8: what is stored and sent is."""
    for place, argument in enumerate(arguments, 1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            from treadle.core.errors import InputError

            shown = argument.encode(errors="backslashreplace").decode()[:200]
            raise InputError(f"argument {place} is not UTF-8 text: {shown}") from None


def parser(name: str) -> Parser:
    """The parser of a subcommand."""
    from importlib import import_module

    made: Parser = import_module(f"treadle.cli.{COMMANDS[name.split(maxsplit=1)[0]].module}").parser(name)
    return made


def _run(arguments: list[str]) -> int:
    from treadle.core.errors import TreadleError

    from .refusal import interrupted, refused, signals_heard, unread

    json, command = "--json" in arguments, arguments[0] if arguments[0] in COMMANDS else ""
    try:
        with signals_heard():
            _check_text(arguments)
            name, rest = _named(arguments)
            given = parser(name).parse_args(rest)
            code = int(given.run(given))
            sys.stdout.flush()  # here it is still known what a reader that has gone away means
            return code
    except SystemExit as ended:  # --help
        if isinstance(ended.__context__, BrokenPipeError):  # rich has met it first
            return unread()
        return ended.code if isinstance(ended.code, int) else 1
    except KeyboardInterrupt as stopped:
        return interrupted(getattr(stopped, "exit_code", 130), "interrupted.", json=json)
    except BaseExceptionGroup as group:
        known, unknown = group.split(TreadleError)
        if known is not None and unknown is None:
            return refused(_first(known), json=json, command=command)
        return _crashed(_first(group), json=json)
    except TreadleError as error:
        return refused(error, json=json, command=command)
    except BrokenPipeError:
        return unread()
    except Exception as error:  # noqa: BLE001 - the last resort: a person gets a message, never a traceback
        return _crashed(error, json=json)


def _first(group: BaseExceptionGroup[E]) -> E:
    first = group.exceptions[0]
    return _first(cast("BaseExceptionGroup[E]", first)) if isinstance(first, BaseExceptionGroup) else first


def _crashed(error: BaseException, *, json: bool) -> int:
    from treadle.core.errors import ConfigurationError
    from treadle.core.spoken import one_line
    from treadle.settings import load_settings

    try:
        debug = bool(load_settings().environ.get("TREADLE_DEBUG"))
    except ConfigurationError:
        debug = False
    if debug:
        import traceback

        traceback.print_exception(error)
    sys.stderr.write(
        f"treadle: this is a fault of Treadle's own: {type(error).__name__}: {one_line(str(error), 300)}\n"
        "What was committed is safe; treadle ls shows it. Please report this with what you typed and what the\n"
        "same command prints with TREADLE_DEBUG=1, at the project's issue tracker (check it for secrets first).\n"
    )
    if json:
        from .refusal import document

        document(type(error).__name__, one_line(str(error), 300), "treadle ls", CRASHED)
    return CRASHED


if __name__ == "__main__":
    main()
