"""The scopes of isolated loops as people see them: listed, compared, merged or dropped, also long after their loops (FR-16)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from treadle.core.errors import InputError, ScopeError, UnknownExecution
from treadle.core.scope_events import Isolation
from treadle.core.spoken import count
from treadle.core.values import replace
from treadle.effects.scope import GitScope
from treadle.effects.worktrees import GitIsolated, Here, drop_scope
from treadle.ports.ledger import Ledger
from treadle.settings import Settings

from .isolating import read_facts, scopes_folder
from .listing import state_of


class ScopeRow(NamedTuple):
    """One scope. `files`: clean, dirty (not committed), missing (somebody deleted it) or branch (only that is left).

    `status` is that of its execution, "none" where the store has no such execution. `ahead`: commits that its target lacks.
    """

    execution_id: str
    status: str
    owner_alive: bool
    files: str
    ahead: int
    isolation: Isolation


async def scopes(ledger: Ledger | None, settings: Settings) -> list[ScopeRow]:
    """All that are left, by id. Without a ledger their executions are unknown."""
    files = await to_thread.run_sync(lambda: sorted(scopes_folder(settings).glob("*.json")))
    known = [(file.stem, await to_thread.run_sync(read_facts, file)) for file in files]
    return [await _row(ledger, name, isolation) for name, isolation in known if isolation is not None]


async def scope(ledger: Ledger | None, settings: Settings, name: str) -> ScopeRow:
    """The one of an execution, by its id or a unique beginning. InputError."""
    files = await to_thread.run_sync(lambda: sorted(scopes_folder(settings).glob("*.json")))
    named = [file for file in files if file.stem == name] or [file for file in files if file.stem.startswith(name)]
    if len(named) != 1:
        known = ", ".join(file.stem for file in (named or files)[:5]) or "none is left"
        raise InputError(f"{'More than one' if named else 'No'} scope is that of {name!r}. Scopes: {known}.")
    isolation = await to_thread.run_sync(read_facts, named[0])
    if isolation is None:
        raise InputError(f"{named[0]} cannot be read.")
    return await _row(ledger, named[0].stem, isolation)


async def _row(ledger: Ledger | None, name: str, isolation: Isolation) -> ScopeRow:
    status, alive = "none", False
    if ledger is not None:
        try:
            row = await ledger.row(name)
            if row.execution_id == name and row.head:
                status, alive = (await state_of(ledger, row)).status, row.owner_alive
        except UnknownExecution:
            pass
    files, ahead = await _files(Here(), isolation)
    return ScopeRow(name, status, alive, files, ahead, isolation)


async def _files(here: Here, isolation: Isolation) -> tuple[str, int]:
    """(what is in the worktree, commits ahead)."""
    if not await to_thread.run_sync(Path(isolation.origin).is_dir):
        return "missing", 0
    tip = await here.text(isolation.origin, "rev-parse", "--verify", "-q", _ref(isolation), ok=(0, 1, 128))
    ahead = 0
    if tip:
        against = f"refs/heads/{isolation.target}" if isolation.target else isolation.base
        counted = await here.text(isolation.origin, "rev-list", "--count", f"{against}..{tip}", ok=(0, 128))
        ahead = int(counted or 0)
    if not await to_thread.run_sync(Path(isolation.folder, ".git").exists):
        return "branch" if ahead else "missing", ahead
    dirty = await here.text(isolation.folder, "status", "--porcelain", ok=(0, 128))
    return "dirty" if dirty else "clean", ahead


def _ref(isolation: Isolation) -> str:
    return f"refs/heads/{isolation.branch}"


async def diff(row: ScopeRow) -> str:
    """Everything that it has changed since its base, what is not committed included. ScopeError."""
    here, isolation = Here(), row.isolation
    if row.files in ("branch", "missing"):
        if not await here.text(isolation.origin, "rev-parse", "--verify", "-q", _ref(isolation), ok=(0, 1, 128)):
            raise InputError(
                f"Its worktree and its branch {isolation.branch} are no more, so there is nothing to show."
                f" treadle resume {row.execution_id} makes them anew; treadle scope drop {row.execution_id} forgets them."
            )
        asked = ("diff", "--no-ext-diff", isolation.base, _ref(isolation))
        return (await here.run(isolation.origin, *asked)).out.decode(errors="replace")
    await here.run(isolation.folder, "add", "-A", "-N")  # so that new files are shown as well
    return (await here.run(isolation.folder, "diff", "--no-ext-diff", isolation.base)).out.decode(errors="replace")


async def merge(row: ScopeRow, settings: Settings) -> str:
    """Commits what is there, and merges it. In words. InputError while it runs; ScopeError names what is in conflict."""
    _not_running(row)
    isolation = row.isolation
    if not isolation.target:
        raise InputError(
            f"It has no branch to merge into: HEAD was detached. git merge {isolation.branch} where you want it."
        )
    here = Here()
    isolated = GitIsolated(isolation, GitScope(isolation.folder, state_dir=settings.state_dir / "trees"), here)
    message = f"Work of {row.execution_id}"
    if row.files in ("dirty", "clean"):
        await here.run(isolation.folder, "add", "-A")
        commit = await isolated.commit("", "", message=message)
    else:
        commit = await here.text(isolation.origin, "rev-parse", "--verify", "-q", _ref(isolation), ok=(0, 1, 128))
    if not commit:
        raise ScopeError(f"the branch {isolation.branch} is no more; treadle scope drop {row.execution_id} forgets it")
    if paths := (await isolated.conflicts(commit, ())).paths:
        raise ScopeError(
            f"{isolation.branch} is in conflict with {isolation.target} in: {', '.join(paths)}. In {isolation.origin}:"
            f" git merge {isolation.branch}, settle them, then treadle scope drop {row.execution_id}"
        )
    asked = replace(isolation, on_accept="merge")
    closed = await GitIsolated(asked, isolated.trees, here).close(commit, message=f"Merge {isolation.branch}")
    if closed.how == "kept":
        raise ScopeError(closed.note)
    return "there was nothing to merge" if closed.how == "unchanged" else f"merged into {isolation.target}"


async def drop(row: ScopeRow, *, force: bool) -> None:
    """Gives it up. InputError while it runs, or where it holds work that is merged nowhere, unless `force`."""
    _not_running(row)
    if not force and (row.ahead or row.files == "dirty"):
        target = row.isolation.target
        held = f"{count(row.ahead, 'commit')} that {f'{target} lacks' if target else 'no branch but its own has'}"
        held = held if row.ahead else "changes that are not committed"
        raise InputError(
            f"The scope of {row.execution_id} holds {held}: treadle scope diff shows them, --force drops them."
        )
    await drop_scope(Here(), row.isolation)


def _not_running(row: ScopeRow) -> None:
    if row.owner_alive:
        raise InputError(f"{row.execution_id} is being run: stop it first.")
