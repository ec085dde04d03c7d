"""Executions of a store, driven where Temporal says: the ledger's side of `treadle.runtime.temporal`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from treadle.core.errors import ConfigurationError, InputError, LedgerUnavailable, OwnerAlive
from treadle.runtime.temporal.client import Address, Bell, RPCError, connect
from treadle.runtime.temporal.worker import Advancing, Store, sweep, worker_of
from treadle.runtime.temporal.workflow import Step

from .claiming import Abandoned, claimed, standing
from .listing import document_of, state_of
from .runtime import Session

if TYPE_CHECKING:
    from .runtime import Runtime
    from .workflow_runtime import WorkflowSession

SLICE_S = 300.0
SWEEP_S = 2.0
LOOK_AGAIN_S = 60.0  # until an execution that cannot go on here is offered again

Say = Callable[[str], None]


class Driven(Advancing):
    """A session that reports to Temporal how it has ended."""

    def __init__(self, session: Session | WorkflowSession, clock_us: Callable[[], int], say: Say) -> None:
        self._session, self._clock_us, self._say = session, clock_us, say

    async def run(self) -> Step:
        """A step of its document."""
        try:
            found = await self._session.run()
        finally:
            await self._session.close()
        self._say(f"{self._session.execution_id}: {found['status']}, {found['code']}")
        return step_of(found)

    def hand_over(self) -> None:
        """A loop yields at its next boundary; a workflow goes on until it rests, or is cancelled when the worker's grace is over."""
        if isinstance(self._session, Session):
            self._session.driver.hand_over()


def step_of(found: Mapping[str, Any]) -> Step:
    """What Temporal is told of this document."""
    match standing(dict(found)):
        case "waits":
            return Step("wait")
        case "goes on" if found["code"] == "quota":
            return Step("wait", found["pending"]["until_us"])
        case "goes on":
            return Step("again")
        case _:
            return Step("rest")


class LedgerStore(Store):
    """The store of a runtime that waits for no quota in process."""

    def __init__(self, runtime: Runtime, say: Say) -> None:
        self._runtime, self._say = runtime, say
        self._abandoned = Abandoned(runtime.ledger, say)
        self._rung: dict[str, tuple[int, int]] = {}  # execution -> (head, wall time) when it was rung for

    async def claim(self, execution_id: str) -> Advancing | Step:
        """OwnerAlive, LedgerError: tried again. What cannot go on here as it is defined is said, and waits."""
        runtime = self._runtime
        try:
            row = await runtime.ledger.row(execution_id)
            state = await state_of(runtime.ledger, row)
            step = step_of(document_of(row.execution_id, state))
            if step.status == "rest" or (step.status == "wait" and not self._due(step)):
                return step if not row.owner_alive else Step("wait")
            session = await claimed(runtime, row.execution_id)
        except OwnerAlive:
            raise
        except InputError as error:
            self._say(f"{execution_id}: left alone: {error}")
            return Step("wait", runtime.clock.wall_us() + int(LOOK_AGAIN_S * 1e6))
        self._say(f"{execution_id}: goes on")
        return Driven(session, runtime.clock.wall_us, self._say)

    def _due(self, step: Step) -> bool:
        return step.until_us is not None and step.until_us <= self._runtime.clock.wall_us()

    async def unrung(self) -> Sequence[str]:
        """Each once a minute as long as it stands as it does: its workflow may be about to go on with it."""
        now = self._runtime.clock.wall_us()
        with suppress(LedgerUnavailable):
            rows = {row.execution_id: row.head for row in await self._abandoned.find()}
            before = self._rung
            self._rung = {name: before.get(name, (head, 0)) for name, head in rows.items()}
            due = [
                name
                for name, head in rows.items()
                if self._rung[name][0] != head or now - self._rung[name][1] > LOOK_AGAIN_S * 1e6
            ]
            self._rung.update({name: (rows[name], now) for name in due})
            return due
        return []


async def serve(
    runtime: Runtime, address: str, *, concurrency: int, say: Say, stop: anyio.Event, slice_s: float = SLICE_S
) -> None:
    """Advances executions until `stop`; then loops in hand yield at their next boundary. ConfigurationError."""
    parsed = Address.parse(address)
    client = await connect(parsed, runtime.settings.environ)
    bell = Bell(client, parsed.queue)
    store = LedgerStore(runtime, say)

    async def ring(execution_id: str) -> None:
        try:
            await bell.ring(execution_id)
        except RPCError as error:
            say(f"{execution_id}: Temporal cannot be told that it goes on: {error}")

    worker = worker_of(client, parsed.queue, store, concurrency=concurrency, slice_s=slice_s)
    async with worker, anyio.create_task_group() as group:
        say(f"advances what Temporal at {client.service_client.config.target_host} gives it, queue {parsed.queue}")
        group.start_soon(partial(sweep, store, ring, each_s=SWEEP_S))
        await stop.wait()
        group.cancel_scope.cancel()


async def ring(runtime: Runtime, address: str, execution_id: str) -> None:
    """Tells Temporal that the ledger has news of it. ConfigurationError where the server is away: workers ring later."""
    parsed = Address.parse(address)
    client = await connect(parsed, runtime.settings.environ)
    try:
        with anyio.fail_after(10):
            await Bell(client, parsed.queue).ring(execution_id)
    except (RPCError, TimeoutError) as error:
        raise ConfigurationError(
            f"Temporal at {address} did not take the doorbell of {execution_id}: {error}"
        ) from error
