"""Time travel for people: a new execution from any record of an old one, in a scope of its own (FR-22, LG-01)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from anyio import CancelScope

from treadle.core import events as ev
from treadle.core.codec import decode
from treadle.core.endings import is_final
from treadle.core.errors import ConfigurationError, InputError
from treadle.core.values import replace
from treadle.effects.scope import GitScope
from treadle.effects.worktrees import Here, drop_scope, open_scope
from treadle.kernel.continuation import frame_of
from treadle.kernel.loop import advance
from treadle.kernel.states import LoopState
from treadle.ports.ledger import Record

from .carry import Carried, import_into
from .isolating import last_tree, scopes_folder
from .runtime import Runtime


class Fork(NamedTuple):
    """The new execution, and the record that it goes on from. `isolated`: its files are as they were then, in `workspace`."""

    execution_id: str
    source: str
    at: int
    workspace: str
    isolated: bool


async def fork(runtime: Runtime, execution_id: str, *, at: int | None = None, actor: str = "", name: str = "") -> Fork:
    """A new execution that goes on after record `at`; without one, from where the source could last go on. It rests until it is
    resumed. `name` is its id.

    The source is only read, and may be running. Counters are kept (FR-08). InputError for a record that is not there, or at which it
    had ended.
    """
    row = await runtime.ledger.row(execution_id)
    if row.kind != "loop":
        raise InputError(f"{row.execution_id} is a {row.kind}: only loops are forked. treadle show names its loops.")
    records = await runtime.ledger.records(row.execution_id)
    state, copied = _at(row.execution_id, records, at)
    name = name or runtime.clock.new_id()
    isolation, workspace = None, state.workspace
    told = ev.Forked(execution_id=name, source=row.execution_id, at=len(copied), actor=actor)
    here = Here()
    try:
        if state.workspace and last_tree(state):
            origin = state.scope.isolation.origin if state.scope is not None else state.workspace
            isolation, own = await open_scope(
                here, Path(origin), name, scopes_folder(runtime.settings) / name, "branch"
            )
            await GitScope(own, state_dir=runtime.settings.state_dir / "trees").revert(last_tree(state))
            workspace = str(own)
            told = replace(told, workspace=workspace, scope=isolation)
    except ConfigurationError:  # no repository, or none with a commit: the files stay as they are
        isolation = None
    try:
        carried = Carried(name, frame_of(state), state, tuple(copied), ())
        more = [ev.Interrupted(epoch=1, reason="signal")] if state.status == "running" else []
        await import_into(runtime.ledger, carried, (*more, told), owner=runtime.owner, at_us=runtime.clock.wall_us())
    except BaseException:
        with CancelScope(shield=True):
            if isolation is not None:
                await drop_scope(here, isolation)
        raise
    return Fork(name, row.execution_id, len(copied), workspace, isolation is not None)


def _at(execution_id: str, records: list[Record], at: int | None) -> tuple[LoopState, list[Record]]:
    """The state after record `at`, and the records up to it."""
    if at is not None and not 1 <= at <= len(records):
        raise InputError(f"{execution_id} has no record {at}: it has {len(records)}. treadle log numbers them.")
    state, last = LoopState(), (LoopState(), 0)
    for record in records[:at]:
        state = advance(state, decode(record.kind, record.version, record.body))
        if not _ended(state):
            last = state, record.seq
    if at is not None and _ended(state):
        raise InputError(f"{execution_id} had ended at record {at}. Before that, at record {last[1]}, it could go on.")
    return last[0], records[: last[1]]


def _ended(state: LoopState) -> bool:
    return state.accepted or is_final(state.status, state.code)
