"""Gives a loop a scope of its own at its start, and finds it again, or makes it anew, when the loop goes on (FR-16)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio import to_thread

from treadle.core.scope_events import Isolation, ScopeRestored
from treadle.effects.worktrees import Here, drop_scope, facts_file, open_scope, restore_scope
from treadle.kernel.states import LoopState
from treadle.ports.clock import CrashPoints
from treadle.settings import Settings
from treadle.spec.definitions import Loop

from .build import Built

Builder = Callable[[Loop, Isolation | None], Built]


def scopes_folder(settings: Settings) -> Path:
    """Where the worktrees are, each beside a file that says what it is."""
    return settings.state_dir / "scopes"


@asynccontextmanager
async def isolated(
    loop: Loop, execution_id: str, build: Builder, settings: Settings, points: CrashPoints
) -> AsyncGenerator[tuple[Built, Isolation]]:
    """The loop, built for a scope of its own, which is given up again where it cannot be started. ConfigurationError."""
    workspace = Path(
        build(loop, None).workspace
    )  # whatever is wrong with the definition is said before anything is made
    here, folder = Here(), scopes_folder(settings) / execution_id
    if (old := await to_thread.run_sync(read_facts, facts_file(folder))) is not None:
        await drop_scope(here, old)  # of a start with this id that was killed
    points.reach("before-scope")
    try:
        isolation, own = await open_scope(here, workspace, execution_id, folder, loop.on_accept)
        points.reach("after-scope")
        yield build(replace(loop, workspace=own), isolation), isolation
    except BaseException:
        with anyio.CancelScope(shield=True):
            if (made := await to_thread.run_sync(read_facts, facts_file(folder))) is not None:
                await drop_scope(here, made)
        raise


def read_facts(file: Path) -> Isolation | None:
    """What a scope is; None where there is none, or where it was not written whole."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Isolation)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


async def reopened(state: LoopState, settings: Settings) -> tuple[Isolation | None, ScopeRestored | None]:
    """(the scope that a loop still has, what had to be done for it). ScopeError where it cannot be made anew."""
    scope = state.scope
    if scope is None or scope.closed:
        return None, None
    isolation = scope.isolation
    if await to_thread.run_sync(_is_there, isolation.folder, state.workspace):
        return isolation, None
    if state.accepted:  # there is nothing to go on with but closing it
        await to_thread.run_sync(lambda: Path(state.workspace).mkdir(parents=True, exist_ok=True))
        return isolation, None
    tree = last_tree(state)
    await restore_scope(Here(), isolation, state.workspace, tree, settings.state_dir)
    return isolation, ScopeRestored(tree=tree)


def _is_there(folder: str, workspace: str) -> bool:
    return Path(folder, ".git").exists() and Path(workspace).is_dir()


def last_tree(state: LoopState) -> str:
    """What act has left where it is being evaluated, or what its round began with."""
    receipt: dict[str, Any] | None = msgspec.json.decode(state.last_receipt_json or "null")
    return str(receipt["head"]) if receipt else (state.baseline or state.first_baseline)


def inside(loop: Loop, state: LoopState) -> Loop:
    """The loop in its scope."""
    return replace(loop, workspace=state.workspace)


async def remarks(state: LoopState) -> list[str]:
    """What a person should know of a scope that has just been opened, in sentences."""
    if state.scope is None:
        return []
    here, isolation = Here(), state.scope.isolation
    told: list[str] = []
    if await here.text(isolation.origin, "status", "--porcelain", "--untracked-files=no"):
        told.append("uncommitted changes of the workspace are not in its scope, which starts at HEAD.")
    if await to_thread.run_sync(Path(isolation.folder, ".gitmodules").exists):
        told.append("submodules are empty in its scope: git submodule update --init there, if the task needs them.")
    return told
