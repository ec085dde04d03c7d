"""The workflow of one execution. Frozen: histories are replayed through it, so a change is a new class under a new name.

advance ──► again | wait until it is rung or it is time | rest
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

EXECUTION = "treadle.execution.v1"
ADVANCE = "treadle.advance.v1"
RING = "ring"
LOOK_AGAIN = timedelta(hours=1)  # a wait that nobody ends is looked at again: a doorbell may have been lost
AT_MOST = timedelta(hours=24)  # for one advance; a dead worker is noticed by its heartbeat
HEARTBEAT = timedelta(seconds=5)
RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=100), backoff_coefficient=1.5, maximum_interval=timedelta(seconds=3)
)


@dataclass(frozen=True)
class Ticket:
    """Which advance of which execution: all that Temporal ever knows of it."""

    execution: str
    generation: int = 1  # of the history: +1 where it is continued as new
    boundary: int = 0  # advances before this one


@dataclass(frozen=True)
class Step:
    """How an advance has ended: "again", "wait" (until the wall time, where one is known) or "rest"."""

    status: str
    until_us: int | None = None


@workflow.defn(name=EXECUTION)
class ExecutionV1:
    """Advances one execution until it rests."""

    def __init__(self) -> None:
        self._rung = False

    @workflow.signal(name=RING)
    def ring(self) -> None:
        """Something has been written to the ledger."""
        self._rung = True

    @workflow.run
    async def run(self, ticket: Ticket) -> str:
        """How it rests: "rest"."""
        boundary = ticket.boundary
        while True:
            self._rung = False
            step = await workflow.execute_activity(
                ADVANCE,
                Ticket(ticket.execution, ticket.generation, boundary),
                result_type=Step,
                start_to_close_timeout=AT_MOST,
                heartbeat_timeout=HEARTBEAT,
                retry_policy=RETRY,
            )
            boundary += 1
            if step.status == "rest" and not self._rung:
                return step.status
            if step.status == "wait":
                await self._wait(step.until_us)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(Ticket(ticket.execution, ticket.generation + 1, boundary))

    async def _wait(self, until_us: int | None) -> None:
        left = LOOK_AGAIN
        if until_us is not None:
            left = min(left, max(timedelta(0), timedelta(microseconds=until_us - workflow.time_ns() // 1000)))
        try:
            await workflow.wait_condition(lambda: self._rung, timeout=left)
        except TimeoutError:
            return
