"""How an execution inside a workflow ends is how the workflow ends, however deep it was."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from support.places import Place
from treadle.app.runtime import Runtime
from treadle.app.workflows import Decision, WorkflowResult
from treadle.core import workflow_events as ev
from treadle.core.errors import ChildFailed
from treadle.kernel.steering import Cancel, Pause
from treadle.kernel.workflow import Decide, next_actions
from treadle.ports.callback import accept, reject
from treadle.settings import load_settings
from treadle.spec.definitions import Agent, Loop
from treadle.spec.workflows import ApprovalTask, Budget, OnQuota, RunTask, Task, Workflow
from treadle.testing import Fault, ScriptedModel, Turn
from unit.test_workflow_rules import begun, fold

HOUR_US = 3_600_000_000


@pytest.fixture
def place(tmp_path: Any) -> Place:
    return Place("memory", tmp_path)


def around(what: Any, depth: int, **options: Any) -> Workflow:
    """A workflow in which it runs, `depth` workflows deep."""
    for level in range(depth):
        what = Workflow(f"level-{level}", [RunTask("inner", what, "the task")], **options)
    return what


def decided(place: Place, flow: Workflow, result: WorkflowResult, decision: str) -> WorkflowResult:
    (asked,) = result.questions
    said = Decision(
        execution_id=result.execution_id,
        task=asked["task"],
        request_id=asked["request_id"],
        decision=decision,
        actor="ada",
        text="not on a Friday",
    )
    return place.resume(flow, decisions=[said])


@pytest.mark.req("TC-22")
@pytest.mark.parametrize("depth", [1, 3])
def test_what_a_person_rejected_inside_is_rejected_outside(place: Place, depth: int) -> None:
    flow = around(Workflow("gated", [ApprovalTask("gate", "Ship it?")]), depth)
    result = decided(place, flow, place.run(flow), "reject")
    assert (result.status, result.code) == ("rejected", "rejected")
    assert result.document["tasks"]["inner"]["status"] == "rejected"
    path = "inner: " * depth
    assert f"{path}gate: rejected by ada: not on a Friday (in " in result.document["outcome"]["evidence"]
    assert result.document["outcome"]["evidence"].count("(in ") == 1, "the innermost is named, and only that"
    assert place.resume(flow, retry_incomplete=True).status == "rejected", "for good"


@pytest.mark.req("TC-22")
def test_a_rejection_in_a_task_group_of_the_callback_is_one(place: Place) -> None:
    gated = Workflow("gated", [ApprovalTask("gate", "Ship it?")])

    async def work(ctx: Any) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: ctx.run(gated, key="gated"))

    flow = Workflow("group", [Task("work", work)])
    assert decided(place, flow, place.run(flow), "reject").status == "rejected"


@pytest.mark.parametrize(
    ("others", "status", "code"),
    [
        ((), "rejected", "rejected"),
        ((ChildFailed("d", "stopped", "limit", "max_turns 1 reached"),), "stopped", "limit"),
        ((ChildFailed("d", "cancelled", "aborted", "by bob"),), "cancelled", "aborted"),
        ((ChildFailed("d", "failed", "thrash", "spinning"),), "failed", "thrash"),
        ((ValueError("boom"),), "failed", "failed"),
    ],
)
def test_of_several_that_ended_side_by_side_the_worst_names_the_ending(
    place: Place, others: tuple[Exception, ...], status: str, code: str
) -> None:
    async def work(ctx: Any) -> None:
        raise ExceptionGroup("several", [ChildFailed("c", "rejected", "rejected", "no"), *others])

    result = place.run(Workflow("group", [Task("work", work)]))
    assert (result.status, result.code) == (status, code)


def stubborn(**options: Any) -> Loop:
    """A loop that is never accepted."""

    async def act(ctx: Any, feedback: str | None) -> str:
        return "draft"

    return Loop(name="draft", act=act, evaluate=lambda ctx, value: reject("no"), max_rounds=2, **options)


@pytest.mark.req("TC-15", "TC-25")
def test_an_exhausted_loop_inside_is_exhausted_outside_and_stays_so(place: Place) -> None:
    flow = around(stubborn(), 2)
    result = place.run(flow)
    assert (result.status, result.code) == ("failed", "exhausted")
    assert str(result.error("inner")).startswith("inner: inner: "), "it is not the workflow's own loop"
    assert place.resume(flow, retry_incomplete=True).code == "exhausted"


@pytest.mark.req("TC-21", "TC-25")
def test_what_its_own_limit_stopped_inside_stops_the_whole_and_goes_on_with_more_room(place: Place) -> None:
    ran: list[str] = []

    async def step(ctx: Any) -> None:
        ran.append(ctx.task)

    def flow(attempts: int) -> Workflow:
        tasks = [Task("a", step), Task("b", step, after=("a",))]
        return around(Workflow("small", tasks, budget=Budget(max_attempts=attempts)), 2)

    result = place.run(flow(1))
    assert (result.status, result.code, ran) == ("stopped", "limit", ["a"])
    assert result.document["exit_code"] == 4
    assert result.document["tasks"]["inner"]["status"] == "stopped"
    assert place.resume(flow(1)).code == "limit", "nobody has said that it may go on"
    child = result.document["outcome"]["evidence"].rpartition("(in ")[2].rstrip(")")

    async def extend() -> None:
        from treadle.app.workflow_runtime import WorkflowRuntime

        ledger = await place.open()
        runtime = WorkflowRuntime(ledger, load_settings(), clock=place.clock)
        await runtime.extend(child, Budget(max_attempts=5), actor="ada")
        await ledger.close()

    anyio.run(extend)
    assert place.resume(flow(1), retry_incomplete=True).status == "done"
    assert ran == ["a", "b"], "what was done is not done again"


@pytest.mark.req("TC-22")
def test_what_is_cancelled_inside_is_cancelled_outside(place: Place) -> None:
    async def act(ctx: Any, feedback: str | None) -> str:
        await _steer(place, ctx.execution_id, Cancel(actor="eve", reason="too dear"))
        await anyio.sleep_forever()
        return ""

    result = place.run(around(Loop(name="draft", act=act, evaluate=lambda ctx, value: accept()), 2))
    assert (result.status, result.code) == ("cancelled", "aborted")
    assert "too dear" in result.document["outcome"]["evidence"]


async def _steer(place: Place, execution_id: str, steering: Any) -> None:
    ledger = await place.open()
    await Runtime(ledger, load_settings(), clock=place.clock).steer(execution_id, steering)
    await ledger.close()


@pytest.mark.req("TC-25")
def test_what_is_paused_inside_pauses_the_whole_and_both_go_on_together(place: Place) -> None:
    acts: list[int] = []
    beside: list[int] = []

    async def act(ctx: Any, feedback: str | None) -> str:
        acts.append(ctx.round)
        if len(acts) == 1:
            await _steer(place, ctx.execution_id, Pause(actor="eve"))
            await anyio.sleep_forever()
        return "draft"

    async def check(ctx: Any, value: Any) -> Any:
        return accept() if ctx.round == 2 else reject("again")

    async def waits(ctx: Any) -> None:
        beside.append(ctx.attempt)
        if len(beside) == 1:
            await anyio.sleep_forever()

    inner = around(Loop(name="draft", act=act, evaluate=check, max_rounds=3), 1)
    flow = Workflow("whole", [RunTask("inner", inner), Task("beside", waits)])
    result = place.run(flow)
    assert (result.status, result.code) == ("paused", "interrupted")
    result = place.resume(flow)
    assert (result.status, beside) == ("done", [1, 2])
    assert max(acts) == 2


@pytest.mark.req("TC-24")
@pytest.mark.parametrize(("max_wait_s", "status"), [(0.0, "paused"), (None, "done")])
def test_a_loop_inside_waits_for_its_quota_as_long_as_the_workflow_says(
    place: Place, max_wait_s: float | None, status: str
) -> None:
    reset_us = place.clock.wall_us() + HOUR_US
    script = [Fault(status=429, headers={"retry-after": "3600"}), Turn(calls=[("finish", {"summary": "written"})])]
    model = ScriptedModel(script, now_us=place.clock.wall_us())
    loop = Loop(name="draft", act=Agent(model=model, price="1,1"), evaluate=lambda ctx, value: accept())
    result = place.run(around(loop, 2, on_quota=OnQuota(max_wait_s=max_wait_s)))
    assert result.status == status
    if status == "paused":
        assert (result.code, result.document["pending"]["until_us"]) == ("quota", reset_us)
        assert place.clock.wall_us() < reset_us


def test_the_worst_of_several_failed_tasks_names_the_ending() -> None:
    state = begun("a", "b", on_error="continue")
    for key, code in (("a", "rejected"), ("b", "limit")):
        state = fold(
            ev.PhaseFailed(task=key, code=code, message=f"{key} said so", at_us=1, retryable=False),  # type: ignore[arg-type]
            ev.TaskFailed(task=key, code=code, message=f"{key} said so"),  # type: ignore[arg-type]
            state=state,
        )
    (decided_,) = next_actions(state)
    assert isinstance(decided_, Decide)
    assert (decided_.event.status, decided_.event.code, decided_.event.evidence) == ("stopped", "limit", "b: b said so")
    state = fold(decided_.event, ev.WorkflowReopened(actor="ada"), state=state)
    assert (list(state.active), list(state.failed)) == (["b"], ["a"]), "what a person rejected stays so"
