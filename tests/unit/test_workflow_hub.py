"""Observations: what is observed, to whom it goes, and that nobody waits for a sink."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.places import Place, X, fee
from treadle.app.workflow_runtime import WorkflowRuntime
from treadle.app.workflows import Decision
from treadle.ledger.inmemory import InMemoryLedger
from treadle.ports.callback import accept, reject
from treadle.ports.task import Observation, QuotaReached
from treadle.settings import Settings
from treadle.spec.workflows import ApprovalTask, Asks, Budget, LoopTask, Retry, Task, Workflow
from treadle.telemetry.hub import Hub


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Any) -> Place:
    return Place(request.param, tmp_path)


@pytest.mark.req("TC-27")
def test_a_full_queue_drops_the_oldest_and_waits_for_nobody() -> None:
    gate, seen = threading.Event(), []
    entered = threading.Event()

    def slow(observation: Observation) -> None:
        entered.set()
        gate.wait()
        seen.append(observation.kind)

    quick: list[str] = []
    hub = Hub(lambda: 7)
    subscription = hub.subscribe(slow, size=2)
    hub.subscribe(lambda o: quick.append(o.kind))
    hub.observe("k0")
    entered.wait()
    for number in range(1, 6):
        hub.observe(f"k{number}")
    assert subscription.dropped == 3
    gate.set()
    hub.close()
    assert seen == ["k0", "k4", "k5"]
    assert quick == [f"k{n}" for n in range(6)]


@pytest.mark.req("TC-06")
def test_a_sink_that_raises_changes_nothing_and_goes_on_getting(place: Place) -> None:
    seen = []

    def broken(observation: Observation) -> None:
        seen.append(observation.kind)
        raise RuntimeError("sink")

    async def work(ctx: Any) -> str:
        return "fine"

    assert place.run(Workflow("w", [Task("a", work)]), sinks=[broken]).status == "done"
    assert seen == ["start", "attempt", "task", "finish"]


@pytest.mark.req("TC-06")
def test_a_tasks_hub_is_scoped_to_execution_task_and_attempt(place: Place) -> None:
    seen: list[Observation] = []

    async def work(ctx: Any) -> None:
        ctx.observation.observe("mine", {"n": 1})
        ctx.observation.scoped(attempt=7).observe("nested")
        ctx.observation.scoped(execution_id="inner").observe("nested")
        if ctx.attempt == 1:
            raise OSError("once")

    place.run(Workflow("w", [Task("a", work, retry=Retry(attempts=2))]), sinks=[seen.append])
    mine = [(o.execution_id, o.task, o.attempt, o.data) for o in seen if o.kind == "mine"]
    assert mine == [(X, "a", 1, {"n": 1}), (X, "a", 2, {"n": 1})]
    nested = [(o.execution_id, o.task, o.attempt) for o in seen if o.kind == "nested"]
    assert nested == [(X, "a", 7), ("inner", "a", 1), (X, "a", 7), ("inner", "a", 2)]


@pytest.mark.req("TC-27")
def test_everything_is_observed_and_a_resume_repeats_nothing(place: Place) -> None:
    first: list[Observation] = []
    second: list[Observation] = []
    third: list[Observation] = []

    async def attempt(ctx: Any, feedback: str | None) -> int:
        ctx.report_usage(fee())
        await ctx.checkpoint()
        if ctx.interaction.answer is None:
            await ctx.interaction.suspend("Well?")
        return 1

    async def check(ctx: Any, candidate: int) -> Any:
        return accept() if ctx.round == 2 else reject("no")

    async def flaky(ctx: Any) -> None:
        if ctx.attempt == 1:
            raise OSError("once")
        if ctx.attempt == 2:
            raise QuotaReached("later", reset_at_us=place.clock.wall_us() + 1)

    flow = Workflow(
        "w",
        [
            Task("flaky", flaky, retry=Retry(attempts=2)),
            LoopTask("ask", attempt, check, max_rounds=2, interaction=Asks(), after=("flaky",)),
            ApprovalTask("gate", "Go?", after=("flaky",)),
        ],
        budget=Budget(max_requests=3),
    )
    place.run(flow, sinks=[first.append], quota_wait_s=5.0)
    answers = [
        Decision(execution_id=X, task="ask", request_id="ask.q1", decision="answer", actor="ada", text="so"),
        Decision(execution_id=X, task="gate", request_id="gate.q1", decision="approve", actor="ada"),
    ]
    place.resume(flow, sinks=[second.append], decisions=answers)
    again = Decision(execution_id=X, task="ask", request_id="ask.q2", decision="answer", actor="ada", text="so")
    result = place.resume(flow, sinks=[third.append], decisions=[again])
    assert result.code == "limit"
    kinds = {o.kind for o in [*first, *second, *third]}
    assert kinds == set(
        "start resume task attempt retry loop usage checkpoint gate decision question answer quota budget finish".split()
    )
    recorded = [o.seq for o in [*first, *second, *third] if o.seq and o.kind not in ("budget", "finish")]
    assert recorded == sorted(set(recorded))


class Told(Hub):
    """Keeps what is published, at once."""

    def __init__(self) -> None:
        super().__init__(lambda: 7)
        self.kinds: list[str] = []

    def publish(self, observation: Observation) -> None:
        self.kinds.append(observation.kind)


@pytest.mark.req("TC-27")
def test_nothing_is_observed_before_its_record_is_durable() -> None:
    hub = Told()
    told: list[int] = []

    async def work(ctx: Any) -> None:
        ctx.report_usage(fee())
        ctx.journal.flush_soon()
        ctx.report_usage(fee())  # is in no batch yet
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        told.append(hub.kinds.count("usage"))
        await ctx.checkpoint()
        told.append(hub.kinds.count("usage"))

    async def main() -> None:
        settings = Settings(environ={}, state_dir=Path("unused"))
        runtime = WorkflowRuntime(InMemoryLedger(), settings, hub=hub)
        session = await runtime.start(Workflow("w", [Task("a", work)]))
        assert (await session.run())["status"] == "done"
        await session.close()

    anyio.run(main)
    assert told == [1, 2]
