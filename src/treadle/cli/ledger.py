"""`treadle ledger`: the store as a whole: checked, tidied, carried to another store, and relieved of what is old (LG-09)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from treadle.core.spoken import count as counted

from .arguments import Namespace, Parser
from .values import days, from_zero

if TYPE_CHECKING:
    from .place import Place

MOST_SHOWN = 50


def parser(name: str) -> Parser:
    """Arguments of the one that is named: ledger verify, vacuum, export, import, prune."""
    return _PARSERS[name](name)


def _verify_parser(name: str) -> Parser:
    text = "Check every record, message, blob and state of the store, or of a file that ledger export has written. Exit 1: not sound."
    made = Parser(name, verify, text)
    made.add_argument("file", metavar="FILE", nargs="?", type=Path, help="a file instead of the store")
    return made.store()


def _vacuum_parser(name: str) -> Parser:
    text = "Drop outputs that no record names any more, and give the room of removed executions back."
    return Parser(name, vacuum, text).store()


def _export_parser(name: str) -> Parser:
    text = "Write executions, with all that ran inside them, to one file: all of the store, or those that are named."
    made = Parser(name, export, text)
    made.add_argument("file", metavar="FILE", type=Path, help="where to")
    made.add_argument("executions", metavar="EXEC", nargs="*", help="only these")
    return made.store()


def _import_parser(name: str) -> Parser:
    text = (
        "Take executions from a file into a store, as they are; what is there already is left alone.\n"
        "Go on with each in one store only. treadle frame import also says where a workspace is now."
    )
    made = Parser(name, import_, text)
    made.add_argument("file", metavar="FILE", type=Path, help="what ledger export has written")
    return made.store()


def _prune_parser(name: str) -> Parser:
    text = (
        "Remove executions that have ended, with all that ran inside them. Never one that runs, waits or is paused, nor one\n"
        "whose scope holds work. With both limits, the newest N stay however old they are."
    )
    made = Parser(name, prune, text)
    made.option("--older-than", metavar="AGE", type=days("--older-than"), help="that ended so long ago: 30d, 12h")
    made.option("--keep", metavar="N", type=from_zero("--keep"), help="all but the N newest")
    return made.flag("--dry-run", help="say which, and remove nothing").store()


_PARSERS: dict[str, Callable[[str], Parser]] = {
    "ledger verify": _verify_parser,
    "ledger vacuum": _vacuum_parser,
    "ledger export": _export_parser,
    "ledger import": _import_parser,
    "ledger prune": _prune_parser,
}


def verify(given: Namespace) -> int:
    """Says what is wrong, if anything."""
    from .place import place

    return anyio.run(partial(_verify, place(given.store), given.file))


def vacuum(given: Namespace) -> int:
    """Tidies the store."""
    from .place import place

    anyio.run(partial(_vacuum, place(given.store)))
    return 0


def export(given: Namespace) -> int:
    """Writes the file."""
    from .place import place

    anyio.run(partial(_export, place(given.store), given.file, tuple(given.executions)))
    return 0


def import_(given: Namespace) -> int:
    """Reads the file into the store."""
    from .place import place

    anyio.run(partial(_import, place(given.store), given.file))
    return 0


def prune(given: Namespace) -> int:
    """Removes what is old."""
    from treadle.core.errors import ConfigurationError

    from .place import place

    if given.older_than is None and given.keep is None:
        raise ConfigurationError("Say what may go: --older-than 30d, --keep N, or both.")
    age = None if given.older_than is None else int(given.older_than * 1e6)
    anyio.run(partial(_prune, place(given.store), age, given.keep, dry=given.dry_run))
    return 0


async def _verify(where: Place, file: Path | None) -> int:
    from treadle.app.archive import read, unsound
    from treadle.core.errors import ConfigurationError

    from .output import warn
    from .place import opened

    if file is not None:
        if not file.is_file():  # noqa: ASYNC240 - before anything runs
            raise ConfigurationError(f"There is no file {file}.")
        count = sum(1 for _ in read(file))
        warn(f"{file}: {counted(count, 'execution')}, all sound.")
        return 0
    async with opened(where) as ledger:
        found = await unsound(ledger)
    for line in found[:MOST_SHOWN]:
        sys.stdout.write(f"{line}\n")
    warn(f"{where.store}: sound." if not found else f"{where.store}: {counted(len(found), 'finding')}.")
    return 1 if found else 0


async def _vacuum(where: Place) -> None:
    from .output import warn
    from .place import opened

    async with opened(where) as ledger:
        done = await ledger.vacuum()
    warn(f"dropped {done.blobs} outputs; {done.before:,} bytes before, {done.after:,} now.")


async def _export(where: Place, file: Path, names: tuple[str, ...]) -> None:
    from treadle.app.archive import whole, write
    from treadle.core.errors import ConfigurationError

    from .output import warn
    from .place import opened

    async with opened(where) as ledger:
        rows = await whole(ledger, names)
        if not names and str(file) in ("last", *(row.execution_id for row in rows)):
            raise ConfigurationError(f"{file} is an execution; the file comes first: ledger export FILE {file}.")
        try:
            await write(file, ledger, rows)
        except OSError as error:
            raise ConfigurationError(f"{file} cannot be written: {error.strerror}.") from error
    warn(f"wrote {counted(len(rows), 'execution')} to {file}. Elsewhere: treadle ledger import {file} --store URL")


async def _import(where: Place, file: Path) -> None:
    from treadle.app.archive import take_in
    from treadle.core.errors import ConfigurationError

    from .output import warn
    from .place import running

    if not file.is_file():  # noqa: ASYNC240 - before anything runs
        raise ConfigurationError(f"There is no file {file}.")
    async with running(where, create=True) as runtime:
        took = await take_in(runtime.ledger, file, owner=runtime.owner, at_us=runtime.clock.wall_us())
    warn(f"took in {counted(took.executions, 'execution')}; {took.known} were there already.")


async def _prune(where: Place, age_us: int | None, keep: int | None, *, dry: bool) -> None:
    from treadle.app.retention import prunable, remove

    from .output import warn
    from .place import running

    async with running(where) as runtime:
        now = runtime.clock.wall_us()
        old = await prunable(runtime.ledger, where.settings, now_us=now, older_than_us=age_us, keep=keep)
        gone = 0
        for one in old:
            if dry or await remove(runtime.ledger, where.settings, one):
                sys.stdout.write(f"{one.execution_id}  {one.status}\n")
                gone += 1
    told = "would go" if dry else "removed. treadle ledger vacuum gives their room back"
    warn(f"{counted(gone, 'execution')} {told}." if gone else "there is nothing to remove.")
