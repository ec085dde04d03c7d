"""Lessons as a file: written from a store, and read back into another as candidates."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from treadle.core.errors import InputError
from treadle.core.values import Value, replace
from treadle.memory.lessons import LONGEST, QUERY_CHARACTERS, one_line
from treadle.ports.lessons import Lesson, Lessons, Origin

KIND, VERSION = "treadle.lessons", 1
MOST_BYTES = 200_000_000


class Taught(Value, frozen=True, kw_only=True):
    """A lesson with the loops that it came from."""

    lesson: Lesson
    origins: tuple[Origin, ...] = ()


class LessonsFile(Value, frozen=True, kw_only=True):
    """What export writes."""

    kind: str
    version: int
    lessons: tuple[Taught, ...]


async def exported(lessons: Lessons) -> bytes:
    """All of them, retired ones included, oldest first. LedgerError."""
    found = [Taught(lesson=one, origins=tuple(await lessons.origins(one.id))) for one in reversed(await lessons.all())]
    return (
        msgspec.json.format(msgspec.json.encode(LessonsFile(kind=KIND, version=VERSION, lessons=tuple(found)))) + b"\n"
    )


async def take_in(
    lessons: Lessons, data: bytes, *, workspace: str | None, at_us: int, redact: Callable[[str], str]
) -> tuple[int, int]:
    """(how many are new, how many were known) of an exported file. All are read before one is taken; they come as candidates.

    Retired ones stay away. `workspace` is where they hold from now on; None: where they did. InputError says where a file is wrong.
    """
    new = known = 0
    for one in read(data).lessons:
        lesson = one.lesson
        if lesson.standing == "retired":
            continue
        lesson = replace(
            lesson,
            text=one_line(redact(lesson.text), LONGEST),
            task=one_line(redact(lesson.task), QUERY_CHARACTERS),
            workspace=lesson.workspace if workspace is None else workspace,
        )
        if await lessons.bring(lesson, origins=one.origins, at_us=at_us):
            new += 1
        else:
            known += 1
    return new, known


def read(data: bytes) -> LessonsFile:
    """InputError for a file that is none, too large, or of a newer version."""
    if len(data) > MOST_BYTES:
        raise InputError(f"it has {len(data):,} bytes; a file of lessons has at most {MOST_BYTES:,}.")
    try:
        file = msgspec.json.decode(data, type=LessonsFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"it is no file of lessons: {error}") from error
    if file.kind != KIND:
        raise InputError(f"it is no file of lessons: its kind is {file.kind!r}, not {KIND!r}.")
    if file.version > VERSION:
        raise InputError(f"it has version {file.version}, and this Treadle reads up to {VERSION}. Update Treadle.")
    for place, one in enumerate(file.lessons):
        if not one.lesson.id.strip() or not one.lesson.text.strip():
            raise InputError(f"lesson {place + 1} of it has no id or no text.")
    return file
