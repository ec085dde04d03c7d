"""What an execution must be told when it arrives on another machine: where its workspace is, and where that stands."""

from __future__ import annotations

from pathlib import Path

from treadle.core import events as ev
from treadle.core.endings import is_final
from treadle.core.errors import ConfigurationError, InputError, ScopeError
from treadle.core.values import replace
from treadle.effects.scope import GitScope
from treadle.kernel.states import LoopState
from treadle.spec.commandline import decode, encode

from .carry import Carried
from .stores import store_files


async def moved(carried: Carried, workspace: Path | None, state_dir: Path, store: str, *, actor: str) -> list[ev.Event]:
    """Events to follow those that were carried. ConfigurationError where the workspace is not there."""
    state = carried.state
    if is_final(state.status, state.code):
        return []
    if not state.workspace:
        if workspace is not None:
            raise ConfigurationError("It has no workspace: leave --workspace out.")
        return []
    here = (workspace or Path(state.workspace)).expanduser().resolve()
    if not here.is_dir():
        raise ConfigurationError(f"Its workspace {here} is not there. Say where it is here: --workspace DIR.")
    told: list[ev.Event] = []
    if state.scope is not None and not state.scope.closed and str(here) != state.workspace:
        told.append(ev.ScopeClosed(how="kept", note="the execution was carried away from its scope"))
    if str(here) != state.workspace:
        told.append(_adopted(state, str(here), actor))
    scope = scope_at(here, state_dir, store)
    if state.baseline is not None and not await _is_kept(scope, state.baseline):
        tree, note = await scope.baseline(carried.execution_id, state.round)
        told.append(ev.BaselineTaken(tree=tree, note=note or "taken anew where it was imported"))
    return told


def _adopted(state: LoopState, workspace: str, actor: str) -> ev.Adopted:
    definition = state.definition
    if definition.startswith("{"):
        definition = encode(replace(decode(definition), workspace=workspace, isolate=False))
    return ev.Adopted(
        actor=actor,
        settings=state.settings,
        fingerprint=state.fingerprint,
        definition=definition,
        workspace=workspace,
    )


def scope_at(workspace: Path | str, state_dir: Path, store: str) -> GitScope:
    """The workspace with its past, as the loop itself sees it."""
    return GitScope(workspace, state_dir=state_dir / "trees", exclude=store_files(store))


def scope_of_loop(state: LoopState, state_dir: Path, store: str) -> GitScope:
    """The same of an execution; where it was isolated and that is over, of what it came from. InputError where it has no workspace."""
    if not state.workspace:
        raise InputError("It has no workspace.")
    closed = state.scope is not None and state.scope.closed
    root = state.scope.isolation.origin if state.scope is not None and closed else state.workspace
    return scope_at(root, state_dir, store)


async def _is_kept(scope: GitScope, tree: str) -> bool:
    """Whether this machine knows what the workspace was like."""
    if not tree:
        return True
    try:
        await scope.receipt(tree)
    except ScopeError:
        return False
    return True
