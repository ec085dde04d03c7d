"""`treadle lessons`: what accepted runs have taught, where it came from, and a person's word on it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from .arguments import Namespace, Parser

if TYPE_CHECKING:
    from treadle.ports.lessons import Lesson, Lessons, Origin, Vote

ID = "its id, or a unique beginning of it"


def parser(name: str) -> Parser:
    """Arguments of the one that is named."""
    return _PARSERS[name](name)


def _ls_parser(name: str) -> Parser:
    return Parser(name, ls, "List lessons, newest first: standing, votes and text.").store().json()


def _show_parser(name: str) -> Parser:
    made = Parser(name, show, "One lesson: its text, where it came from, and what was said of it.")
    made.add_argument("lesson", metavar="LESSON", help=ID)
    return made.store().json()


def _edit_parser(name: str) -> Parser:
    text = "Give a lesson another text, or say that it holds. Either makes it trusted, even where it was retired."
    made = Parser(name, edit, text)
    made.add_argument("lesson", metavar="LESSON", help=ID)
    made.add_argument("text", metavar="TEXT", nargs="?", help="the new text; '-' reads it from stdin")
    return made.flag("--confirm", help="the text is right as it is").store()


def _retire_parser(name: str) -> Parser:
    made = Parser(name, retire, "Tell a lesson no more. treadle lessons edit LESSON --confirm brings it back.")
    made.add_argument("lesson", metavar="LESSON", help=ID)
    return made.reason("why").store()


def _export_parser(name: str) -> Parser:
    made = Parser(name, export, "Write all lessons, with where they came from, to one file (JSON).")
    made.add_argument("file", metavar="FILE", nargs="?", default="-", help="where to (default: stdout)")
    return made.store()


def _import_parser(name: str) -> Parser:
    made = Parser(name, import_, "Take in exported lessons, as candidates: what is known stays as it is here.")
    made.add_argument("file", metavar="FILE", type=Path, help="what export has written")
    return made.option(
        "--workspace", metavar="DIR", type=Path, help="where they hold here (default: the folder that they name)"
    ).store()


_PARSERS: dict[str, Callable[[str], Parser]] = {
    "lessons ls": _ls_parser,
    "lessons show": _show_parser,
    "lessons edit": _edit_parser,
    "lessons retire": _retire_parser,
    "lessons export": _export_parser,
    "lessons import": _import_parser,
}


def _lessons(given: Namespace) -> Lessons:
    from treadle.app.stores import open_lessons

    from .place import place

    return open_lessons(place(given.store).store)


def ls(given: Namespace) -> int:
    """Prints the list."""
    from .output import print_json

    found = anyio.run(_lessons(given).all)
    if given.json:
        print_json([_document(one) for one in found])
    elif not found:
        sys.stderr.write("No lessons yet. A run that is rejected first and accepted later teaches one.\n")
    else:
        _table(found)
    return 0


def _table(found: list[Lesson]) -> None:
    from rich.text import Text

    from treadle.core.spoken import one_line

    from .table import print_table

    counts = ("helpful", "neutral", "harmful")
    rows = [
        [
            Text(cell)
            for cell in (one.id, one.standing, *(str(getattr(one, name)) for name in counts), one_line(one.text, 200))
        ]
        for one in found
    ]
    print_table(("id", "standing", *counts, "lesson"), rows, right=frozenset(counts))


def show(given: Namespace) -> int:
    """Prints one."""
    from .output import print_json

    lesson, origins, votes = anyio.run(_all_of, _lessons(given), given.lesson)
    if given.json:
        import msgspec

        told = {"origins": msgspec.to_builtins(origins), "votes": msgspec.to_builtins(votes)}
        print_json(_document(lesson) | told)
        return 0
    from treadle.core.spoken import one_line

    from .listing import moment

    lines = [
        f"{lesson.id}  {lesson.standing}{f': {one_line(lesson.reason, 200)}' if lesson.reason else ''}",
        f"  {one_line(lesson.text, 700)}",
        f"for {one_line(lesson.role, 80)} in {one_line(lesson.workspace, 200) or 'any workspace'}",
        f"learnt at {one_line(lesson.task, 200)}",
    ]
    for one in origins:
        gate = f", gate {one_line(one.gate, 60)}" if one.gate else ""
        lines.append(f"  {moment(one.at_us)}  from {one_line(one.step_exec_id, 60)}, round {one.round}{gate}")
    lines += [
        f"  {moment(one.at_us)}  {one.outcome} in {one_line(one.step_exec_id, 60)}"
        f"{f': {one_line(one.evidence, 200)}' if one.evidence else ''}"
        for one in votes
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


async def _all_of(lessons: Lessons, lesson_id: str) -> tuple[Lesson, list[Origin], list[Vote]]:
    lesson = await lessons.get(lesson_id)
    return lesson, await lessons.origins(lesson.id), await lessons.votes(lesson.id)


def _document(lesson: Lesson) -> dict[str, object]:
    import msgspec

    return msgspec.to_builtins(lesson)


def edit(given: Namespace) -> int:
    """Writes the new text, without secrets."""
    from treadle.core.errors import ConfigurationError
    from treadle.memory.lessons import LONGEST, one_line

    from .output import warn
    from .place import place

    text = sys.stdin.read() if given.text == "-" else given.text
    if text is None and not given.confirm:
        raise ConfigurationError("Nothing to change. Give the new text, or --confirm that it is right as it is.")
    if text is not None:
        text = one_line(_redactor(place(given.store).settings.environ)(text), LONGEST)
        if not text:
            raise ConfigurationError("A lesson needs a text; to be rid of it: treadle lessons retire.")
    lesson = anyio.run(partial(_lessons(given).edit, given.lesson, text=text, confirm=True))
    warn(f"{lesson.id} is {lesson.standing}: {lesson.text}")
    return 0


def retire(given: Namespace) -> int:
    """It is told no more."""
    from .output import warn
    from .person import user_name

    reason = given.reason or f"retired by {user_name()}"
    lesson = anyio.run(_lessons(given).retire, given.lesson, reason)
    warn(f"{lesson.id} is retired: {lesson.text}")
    return 0


def export(given: Namespace) -> int:
    """Writes the file."""
    from treadle.app.teaching import exported
    from treadle.core.errors import ConfigurationError

    data = anyio.run(exported, _lessons(given))
    if given.file == "-":
        sys.stdout.buffer.write(data)
        return 0
    try:
        Path(given.file).write_bytes(data)
    except OSError as error:
        raise ConfigurationError(f"{given.file} cannot be written: {error.strerror}.") from error
    return 0


def import_(given: Namespace) -> int:
    """Reads the file into the store."""
    from treadle.app.teaching import take_in
    from treadle.core.errors import ConfigurationError, InputError

    from .output import warn
    from .place import place

    try:
        data = given.file.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{given.file} cannot be read: {error.strerror}.") from error
    workspace = None if given.workspace is None else str(given.workspace.expanduser().resolve())
    redact = _redactor(place(given.store).settings.environ)
    take = partial(take_in, _lessons(given), data, workspace=workspace, at_us=time.time_ns() // 1000, redact=redact)
    try:
        new, known = anyio.run(take)
    except InputError as error:
        error.args = (f"{given.file}: {error}",)
        raise
    warn(f"{new} new, {known} known already. They are candidates: treadle lessons edit LESSON --confirm trusts one.")
    return 0


def _redactor(environ: Mapping[str, str]) -> Callable[[str], str]:
    from treadle.core.redaction import Redactor, secrets_of

    return Redactor(secrets_of(environ)).redact
