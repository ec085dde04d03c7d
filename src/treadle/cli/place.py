"""Where a command works: the settings, the store, and the execution that it names."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from treadle.app.runtime import Runtime
from treadle.app.stores import open_store
from treadle.core.errors import ConfigurationError, LedgerError, UnknownExecution
from treadle.kernel.states import LoopState
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.ports.ledger import ExecutionRow
from treadle.ports.observer import Observer
from treadle.settings import Settings, load_settings


@dataclass(frozen=True, slots=True)
class Place:
    """Settings and the address of the store. `named_store` is what was typed, for the commands that are suggested."""

    settings: Settings
    store: str
    named_store: str = ""


def place(store: str | None, workspace: Path | None = None) -> Place:
    """ConfigurationError for a configuration file that cannot be read."""
    settings = load_settings(workspace)
    return Place(settings, store or settings.store_url, store or "")


@asynccontextmanager
async def opened(
    where: Place, *, create: bool = False, observers: tuple[Observer, ...] = ()
) -> AsyncGenerator[Runtime]:
    """The runtime on the store. A store that cannot be opened is a ConfigurationError: nothing was started."""
    try:
        ledger = await open_store(where.store, NO_CRASH_POINTS, create=create)
    except LedgerError as error:
        raise ConfigurationError(str(error)) from error
    runtime = Runtime(ledger, where.settings, observers=observers, quota_wait_s=None)
    try:
        yield runtime
    finally:
        await runtime.close()


async def found(runtime: Runtime, execution: str) -> tuple[ExecutionRow, LoopState]:
    """The execution by id, beginning or `last`. UnknownExecution, also for one killed before its first record."""
    row = await runtime.ledger.row(execution)
    if not row.head:
        raise UnknownExecution(f"{row.execution_id} was never started: run it again.")
    return row, await runtime.state(row.execution_id)
