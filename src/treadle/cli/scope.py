"""`treadle scope`: the worktrees that isolated loops have left, and what is to become of them."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio

from .arguments import Namespace, Parser

if TYPE_CHECKING:
    from treadle.app.scopes import ScopeRow
    from treadle.ports.ledger import Ledger

    from .place import Place


def parser(name: str) -> Parser:
    """Arguments of the one that is named: scope ls, scope diff, scope merge, scope drop."""
    return _PARSERS[name](name)


def _ls_parser(name: str) -> Parser:
    text = (
        "List the scopes that are left: of loops that run, of those that failed or were killed, and of accepted work that\n"
        "was left as a branch or could not be merged."
    )
    return Parser(name, ls, text).store().json()


def _diff_parser(name: str) -> Parser:
    return Parser(name, diff, "What a scope has changed since its base, as a unified diff.").execution().store()


def _merge_parser(name: str) -> Parser:
    text = "Commit what is in a scope and merge it into the branch that it began at; then the scope is given up."
    return Parser(name, merge, text).execution().store()


def _drop_parser(name: str) -> Parser:
    text = "Give a scope up: its worktree and its branch."
    return (
        Parser(name, drop, text).execution().flag("--force", help="even where it holds work that is not merged").store()
    )


_PARSERS: dict[str, Callable[[str], Parser]] = {
    "scope ls": _ls_parser,
    "scope diff": _diff_parser,
    "scope merge": _merge_parser,
    "scope drop": _drop_parser,
}


def ls(given: Namespace) -> int:
    """Lists them."""
    from .place import place

    anyio.run(partial(_ls, place(given.store), json=given.json))
    return 0


def diff(given: Namespace) -> int:
    """Prints a diff."""
    from .place import place

    anyio.run(partial(_diff, place(given.store), given.execution))
    return 0


def merge(given: Namespace) -> int:
    """Merges one."""
    from .place import place

    anyio.run(partial(_merge, place(given.store), given.execution))
    return 0


def drop(given: Namespace) -> int:
    """Gives one up."""
    from .place import place

    anyio.run(partial(_drop, place(given.store), given.execution, force=given.force))
    return 0


@asynccontextmanager
async def _ledger(where: Place) -> AsyncGenerator[Ledger | None]:
    """The store, where there is one: a scope can outlive it."""
    from treadle.app.stores import is_absent

    from .place import opened

    if is_absent(where.store):
        yield None
        return
    async with opened(where) as ledger:
        yield ledger


async def _ls(where: Place, *, json: bool) -> None:
    from treadle.app.scopes import scopes

    from .output import print_json

    async with _ledger(where) as ledger:
        found = await scopes(ledger, where.settings)
    if json:
        print_json([_document(row) for row in found])
        return
    if not found:
        sys.stdout.write("No scope is left.\n")
    for row in found:
        kept = f"{row.ahead} ahead of {row.isolation.target}" if row.isolation.target else f"{row.ahead} ahead"
        place = row.isolation.branch if row.files in ("branch", "missing") else row.isolation.folder
        status = "running" if row.owner_alive else row.status
        sys.stdout.write(f"{row.execution_id}  {status:<13} {row.files:<8} {kept:<20} {place}\n")


def _document(row: ScopeRow) -> dict[str, object]:
    facts = row.isolation
    return {
        "execution_id": row.execution_id,
        "status": row.status,
        "owner_alive": row.owner_alive,
        "files": row.files,
        "ahead": row.ahead,
        "folder": facts.folder,
        "branch": facts.branch,
        "base": facts.base,
        "target": facts.target or None,
        "workspace": facts.origin,
        "on_accept": facts.on_accept,
    }


async def _named(where: Place, ledger: Ledger | None, execution: str) -> ScopeRow:
    from treadle.app.scopes import scope

    if execution == "last" and ledger is not None:
        execution = (await ledger.row("last")).execution_id
    return await scope(ledger, where.settings, execution)


async def _diff(where: Place, execution: str) -> None:
    from treadle.app.scopes import diff as difference

    async with _ledger(where) as ledger:
        sys.stdout.write(await difference(await _named(where, ledger, execution)))


async def _merge(where: Place, execution: str) -> None:
    from treadle.app.scopes import merge as merged

    from .output import warn

    async with _ledger(where) as ledger:
        row = await _named(where, ledger, execution)
        warn(f"{row.execution_id}: {await merged(row, where.settings)}.")


async def _drop(where: Place, execution: str, *, force: bool) -> None:
    from treadle.app.scopes import drop as dropped

    from .output import warn

    async with _ledger(where) as ledger:
        row = await _named(where, ledger, execution)
        await dropped(row, force=force)
        warn(f"{row.execution_id}: its scope is given up.")
