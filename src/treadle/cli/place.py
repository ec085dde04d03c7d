"""Where a command works: the settings, the store, and the execution that it names."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.app.listing import AnyState, Parent, parents_of, state_of
from treadle.app.stores import open_store
from treadle.core.errors import ConfigurationError, InputError, LedgerError, UnknownExecution
from treadle.kernel.states import LoopState
from treadle.ports.clock import NO_CRASH_POINTS, CrashPoints
from treadle.ports.ledger import ExecutionRow, Ledger
from treadle.settings import Settings, load_settings

if TYPE_CHECKING:
    from treadle.app.runtime import Runtime
    from treadle.app.workflow_runtime import WorkflowRuntime
    from treadle.ports.observer import Observer


@dataclass(frozen=True, slots=True)
class Place:
    """Settings and the address of the store. `named_store` is what was typed, for the commands that are suggested."""

    settings: Settings
    store: str
    named_store: str = ""

    @property
    def flag(self) -> str:
        """What a suggested command needs to name the same store; empty for the usual one."""
        return f" --store {shlex.quote(self.named_store)}" if self.named_store else ""


def place(store: str | None, workspace: Path | None = None) -> Place:
    """ConfigurationError for a configuration file that cannot be read."""
    settings = load_settings(workspace)
    return Place(settings, store or settings.store_url, store or "")


@asynccontextmanager
async def opened(where: Place, *, create: bool = False) -> AsyncGenerator[Ledger]:
    """The store. One that cannot be opened is a ConfigurationError: nothing was started."""
    try:
        ledger = await open_store(where.store, _points(where.settings), create=create)
    except LedgerError as error:
        raise ConfigurationError(str(error)) from error
    try:
        yield ledger
    finally:
        await ledger.close()


@asynccontextmanager
async def running(
    where: Place, *, create: bool = False, observers: tuple[Observer, ...] = ()
) -> AsyncGenerator[Runtime]:
    """What can start, resume and steer executions of the store. It waits for a known quota reset as long as it takes."""
    from treadle.app.runtime import Runtime

    async with opened(where, create=create) as ledger:
        points = _points(where.settings)
        yield Runtime(ledger, where.settings, points=points, observers=observers, quota_wait_s=None)


def workflows(runtime: Runtime) -> WorkflowRuntime:
    """The same for workflows: it, too, waits for a known quota reset as long as it takes."""
    from treadle.app.workflow_runtime import workflows_of

    return workflows_of(runtime)


def _points(settings: Settings) -> CrashPoints:
    """None but in tests, which kill this very process at a named one."""
    if not settings.crash_at:
        return NO_CRASH_POINTS
    from treadle.testing.crash import crash_points

    return crash_points(settings.crash_at)


async def found(ledger: Ledger, execution: str) -> tuple[ExecutionRow, AnyState]:
    """The execution by id, beginning or `last`. UnknownExecution, also for one killed before its first record."""
    row = await ledger.row(await _newest(ledger) if execution == "last" else execution)
    if not row.head:
        raise UnknownExecution(f"{row.execution_id} was never started: run it again.")
    return row, await state_of(ledger, row)


async def _newest(ledger: Ledger) -> str:
    """What `last` means to a person: not the latest execution inside a workflow, but that workflow."""
    names = [row.execution_id for row in await ledger.rows()]
    inside = await parents_of(ledger, names)
    return next((name for name in names if name not in inside), "last")


async def found_loop(ledger: Ledger, execution: str) -> tuple[ExecutionRow, LoopState]:
    """The same for what only loops have: turns, a frame, a workspace. InputError for a workflow."""
    row, state = await found(ledger, execution)
    if not isinstance(state, LoopState):
        raise InputError(
            f"{row.execution_id} is a workflow, and only loops have that: a folder, a conversation, changes of a round."
            f" treadle show {row.execution_id} names the loops inside it; name one of those."
        )
    return row, state


async def parent_of(ledger: Ledger, execution_id: str) -> Parent | None:
    """The workflow that it runs inside."""
    return (await parents_of(ledger, [execution_id])).get(execution_id)
