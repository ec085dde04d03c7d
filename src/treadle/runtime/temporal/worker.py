"""A worker: it advances what Temporal gives it, and rings for what lies in the ledger unrung."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from temporalio import activity
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from .workflow import ADVANCE, ExecutionV1, Step, Ticket

if TYPE_CHECKING:
    from temporalio.client import Client

BEAT_S = 1.0
GRACE_S = 30.0  # for those that are asked to yield at the end of the worker
CACHED = 200  # workflows whose history need not be read again


class Advancing(ABC):
    """An execution that is owned here and can be driven."""

    @abstractmethod
    async def run(self) -> Step:
        """Drives it until it rests or has yielded. The ownership is given up when this returns or raises."""

    @abstractmethod
    def hand_over(self) -> None:
        """Asks it to yield at its next boundary; returns at once."""


class Store(ABC):
    """What the worker needs of the ledger."""

    @abstractmethod
    async def claim(self, execution_id: str) -> Advancing | Step:
        """Takes it over; a Step where there is nothing to do. Any exception is tried again, here or elsewhere."""

    @abstractmethod
    async def unrung(self) -> Sequence[str]:
        """Executions that could go on and that nobody owns."""


class Advances:
    """The activity. `slice_s`: how long one goes on before the workflow is asked again."""

    def __init__(self, store: Store, *, slice_s: float) -> None:
        self._store, self._slice_s = store, slice_s

    @activity.defn(name=ADVANCE)
    async def advance(self, ticket: Ticket) -> Step:
        """Until it must wait, is asked to yield, or its slice is over."""
        async with _beating():
            found = await self._store.claim(ticket.execution)
            if isinstance(found, Step):
                return found
            async with _beside(self._ask_to_yield(found)):
                return await found.run()

    async def _ask_to_yield(self, advancing: Advancing) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(activity.wait_for_worker_shutdown(), self._slice_s)
        advancing.hand_over()


@asynccontextmanager
async def _beside(work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    """Runs it meanwhile, and no longer."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def _beating() -> AbstractAsyncContextManager[None]:
    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(BEAT_S)

    return _beside(beat())


def worker_of(client: Client, queue: str, store: Store, *, concurrency: int, slice_s: float) -> Worker:
    """What polls that queue while it is entered. Workflow code sees nothing but itself."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules("treadle")
    return Worker(
        client,
        task_queue=queue,
        workflows=[ExecutionV1],
        activities=[Advances(store, slice_s=slice_s).advance],
        workflow_runner=SandboxedWorkflowRunner(restrictions=restrictions),
        max_concurrent_activities=concurrency,
        max_cached_workflows=CACHED,
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        max_heartbeat_throttle_interval=timedelta(seconds=BEAT_S),
        default_heartbeat_throttle_interval=timedelta(seconds=BEAT_S),
        graceful_shutdown_timeout=timedelta(seconds=GRACE_S),
    )


async def sweep(store: Store, ring: Callable[[str], Awaitable[None]], *, each_s: float) -> None:
    """Rings for ever for what somebody wrote to the ledger and could not ring for; each only once as it stands."""
    while True:
        for execution_id in await store.unrung():
            await ring(execution_id)
        await asyncio.sleep(each_s)
