"""The library's front door: run a loop, go on with one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from treadle.core.endings import ending
from treadle.core.errors import InputError
from treadle.kernel.states import LoopState
from treadle.kernel.steering import Answer
from treadle.ports.clock import NO_CRASH_POINTS, Clock, CrashPoints
from treadle.ports.observer import Observer
from treadle.runtime.document import document
from treadle.settings import Settings, load_settings
from treadle.spec.definitions import Loop

from .runtime import Reopening, Runtime, resting, retuned
from .stores import open_store


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """How an execution rests: the document that the command line prints, with its usual parts at hand."""

    document: dict[str, Any]
    state: LoopState

    def __repr__(self) -> str:
        return f"Result({self.execution_id}: {self.status}, {self.code}, ${self.cost_usd})"

    @property
    def execution_id(self) -> str:
        """What to resume it by."""
        return self.document["execution_id"]

    @property
    def status(self) -> str:
        """done, failed, stopped, paused, waiting-input, rejected or cancelled."""
        return self.document["status"]

    @property
    def code(self) -> str:
        """Which ending of that status."""
        return self.document["code"]

    @property
    def output(self) -> Any:
        """What act finished with."""
        return self.document["output"]

    @property
    def cost_usd(self) -> Decimal:
        """What was counted; `document["in_doubt_usd"]` may have been charged besides."""
        return self.document["cost_usd"]

    @property
    def is_success(self) -> bool:
        """The work was accepted, and there was some."""
        return ending(self.state.status, self.state.code).success is True

    @property
    def is_nonfailure(self) -> bool:
        """It did not fail: a budget that ran out is no failure of quality (AG-17)."""
        return ending(self.state.status, self.state.code).nonfailure is not False


@dataclass(frozen=True, slots=True)
class _Home:
    """Where executions are kept, and what they run with."""

    store: str | None
    settings: Settings
    clock: Clock | None
    points: CrashPoints
    observers: tuple[Observer, ...]
    quota_wait_s: float | None

    async def open(self) -> Runtime:
        ledger = await open_store(self.store or self.settings.store_url, self.points)
        return Runtime(
            ledger,
            self.settings,
            clock=self.clock,
            points=self.points,
            observers=self.observers,
            quota_wait_s=self.quota_wait_s,
        )


def _home(
    loop: Loop,
    store: str | None,
    clock: Clock | None,
    points: CrashPoints,
    observers: Sequence[Observer],
    quota_wait_s: float | None,
) -> _Home:
    settings = load_settings(Path(loop.workspace) if loop.workspace else None)
    return _Home(store, settings, clock, points, tuple(observers), quota_wait_s)


async def run(
    loop: Loop,
    task: Any,
    *,
    store: str | None = None,
    execution_id: str | None = None,
    clock: Clock | None = None,
    points: CrashPoints = NO_CRASH_POINTS,
    observers: Sequence[Observer] = (),
    quota_wait_s: float | None = 0.0,
) -> Result:
    """Starts the loop on a task and drives it until it rests.

    `store` is a store address (default: the user's own store). `quota_wait_s` is how long a known quota reset is waited for
    in this process; None waits as long as it takes. InputError where nothing was started; LedgerError where the store failed:
    `resume` goes on when that is mended.
    """
    runtime = await _home(loop, store, clock, points, observers, quota_wait_s).open()
    try:
        session = await runtime.start(loop, task, execution_id=execution_id)
        try:
            return Result(await session.run(), session.state)
        finally:
            await session.close()
    finally:
        await runtime.close()


async def resume(
    loop: Loop,
    execution_id: str,
    *,
    store: str | None = None,
    answer: Answer | None = None,
    retry_incomplete: bool = False,
    adopt: bool = False,
    clock: Clock | None = None,
    points: CrashPoints = NO_CRASH_POINTS,
    observers: Sequence[Observer] = (),
    quota_wait_s: float | None = 0.0,
) -> Result:
    """Goes on with an execution; one that has ended gives its stored result and calls nothing (FR-26).

    `answer` answers the open question first. UnknownExecution, OwnerAlive, DefinitionChanged, InputMismatch, AnswerRefused.
    """
    runtime = await _home(loop, store, clock, points, observers, quota_wait_s).open()
    try:
        row = await runtime.ledger.row(execution_id)
        if answer is not None:
            await runtime.steer(row.execution_id, answer)
        state = await runtime.state(row.execution_id)
        tuned = retuned(state, loop.guards)
        how = Reopening(retry_incomplete=retry_incomplete, adopt=adopt, guards=tuned)
        if resting(state, how):
            return Result(document(row.execution_id, state), state)
        session = await runtime.resume(row.execution_id, loop, how)
        try:
            return Result(await session.run(), session.state)
        finally:
            await session.close()
    finally:
        await runtime.close()


def run_sync(loop: Loop, task: Any, **options: Any) -> Result:
    """`run` from code that is not async; InputError inside a running event loop."""
    return _bridge(run, loop, task, options)


def resume_sync(loop: Loop, execution_id: str, **options: Any) -> Result:
    """`resume` from code that is not async; InputError inside a running event loop."""
    return _bridge(resume, loop, execution_id, options)


def _bridge(function: Any, loop: Loop, value: Any, options: dict[str, Any]) -> Result:
    import asyncio
    from functools import partial

    import anyio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.run(partial(function, loop, value, **options))
    raise InputError("This thread runs an event loop already: await treadle.run(...) instead.")
