"""Usage, receipts and budgets of workflows: over rounds, retries, resumes and children, and side by side."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import anyio
import pytest

from support.places import Place, X, fee
from treadle.app.workflow_ending import next_command
from treadle.core import receipts
from treadle.core.errors import DefinitionError, InputError, InvalidReceipt, InvalidUsage, OutsideRound
from treadle.core.usage import Usage
from treadle.models.prices import parse_price
from treadle.ports.callback import accept, reject
from treadle.spec.definitions import Agent, Loop
from treadle.spec.workflows import Budget, LoopTask, PauseTask, RunTask, Task, Workflow
from treadle.testing import ScriptedModel, Turn


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Any) -> Place:
    return Place(request.param, tmp_path)


def one(perform: Any, **options: Any) -> Workflow:
    return Workflow("one", [Task("a", perform)], **options)


@pytest.mark.req("TC-10")
def test_reports_count_from_any_thread_and_not_outside_the_phase(place: Place) -> None:
    kept = []

    async def work(ctx: Any) -> None:
        kept.append(ctx)
        for bad in (Usage(requests=-1), Usage(input_tokens=True), Usage(cost_usd=Decimal("NaN")), None):
            with pytest.raises(InvalidUsage):
                ctx.report_usage(bad)
        await anyio.to_thread.run_sync(lambda: [ctx.report_usage(fee()) for _ in range(20)])

    result = place.run(one(work))
    assert result.status == "done", result.document
    assert result.document["usage"]["requests"] == 20
    assert result.document["cost_usd"] == Decimal("0.20")
    for report in (lambda: kept[0].report_usage(fee()), lambda: kept[0].report_usage_once("r", fee())):
        with pytest.raises(OutsideRound):
            report()


@pytest.mark.req("TC-10")
def test_a_context_of_an_earlier_phase_reports_nothing_while_a_later_one_runs(place: Place) -> None:
    kept: list[Any] = []

    async def attempt(ctx: Any, feedback: str | None) -> int:
        kept.append(ctx)
        return 1

    async def check(ctx: Any, candidate: int) -> Any:
        reports = (
            lambda: kept[0].report_usage(fee()),
            lambda: kept[0].report_usage_once("r", fee()),
        )
        for report in reports:
            with pytest.raises(OutsideRound):
                report()
        with pytest.raises(OutsideRound):
            await kept[0].intend("r", fee())
        return accept()

    result = place.run(Workflow("w", [LoopTask("a", attempt, check, max_rounds=1)]))
    assert (result.status, result.document["usage"]["requests"]) == ("done", 0)


@pytest.mark.req("TC-11")
def test_a_receipt_counts_once_over_rounds_retries_and_resumes(place: Place) -> None:
    fail = [True]

    async def attempt(ctx: Any, feedback: str | None) -> int:
        for receipt in ("same", "same", f"round {ctx.round}"):
            ctx.report_usage_once(receipt, fee())
        return 1

    async def check(ctx: Any, candidate: int) -> Any:
        with pytest.raises(InvalidUsage):
            ctx.report_usage_once("left free", Usage(requests=-1))
        ctx.report_usage_once("same", fee())
        ctx.report_usage_once("left free", fee())
        if fail:
            raise RuntimeError("no")
        return accept() if ctx.round == 2 else reject("again")

    flow = Workflow("w", [LoopTask("loop", attempt, check, max_rounds=2)])
    assert place.run(flow).document["usage"]["requests"] == 3
    fail.clear()
    assert place.resume(flow, retry_incomplete=True).document["usage"]["requests"] == 4


@pytest.mark.req("TC-11")
@pytest.mark.parametrize("receipt", ["", "x" * 513, 7])
def test_a_receipt_has_1_to_512_characters(place: Place, receipt: Any) -> None:
    async def work(ctx: Any) -> str:
        ctx.report_usage_once("é" * 512, fee())
        with pytest.raises(InvalidReceipt):
            ctx.report_usage_once(receipt, fee())
        with pytest.raises(InvalidReceipt):
            await ctx.intend(receipt, fee())
        return "refused"

    assert place.run(one(work)).outputs == {"a": "refused"}


@pytest.mark.req("TC-11")
@pytest.mark.slow
def test_a_task_has_at_most_so_many_receipts(tmp_path: Any) -> None:
    async def work(ctx: Any) -> str:
        for number in range(receipts.MOST):
            ctx.report_usage_once(f"{number}", Usage())
        ctx.report_usage_once("0", Usage())
        with pytest.raises(InvalidReceipt, match="65,536"):
            ctx.report_usage_once("one more", Usage())
        return "full"

    assert place_in_memory(tmp_path).run(one(work)).outputs == {"a": "full"}


def place_in_memory(tmp_path: Any) -> Place:
    return Place("memory", tmp_path)


@pytest.mark.req("TC-11")
def test_an_announced_charge_that_is_never_reported_is_in_doubt(place: Place) -> None:
    async def work(ctx: Any) -> None:
        assert await ctx.intend("a", fee(5))
        assert await ctx.intend("b", fee(7))
        ctx.report_usage_once("a", fee(1))
        assert not await ctx.intend("a", fee(5))

    result = place.run(one(work))
    assert (result.document["cost_usd"], result.document["in_doubt_usd"]) == (Decimal("0.01"), Decimal("0.07"))
    assert result.state.reserved == Usage()


@pytest.mark.req("TC-21")
def test_what_is_in_doubt_counts_against_the_budget(place: Place) -> None:
    async def work(ctx: Any) -> None:
        assert await ctx.intend("a", fee(7))

    async def after(ctx: Any) -> None:
        raise AssertionError("the budget is used up")

    flow = Workflow("w", [Task("a", work), Task("b", after, after=("a",))], budget=Budget(max_cost_usd=Decimal("0.07")))
    result = place.run(flow)
    assert (result.status, result.code) == ("stopped", "limit")
    assert "in doubt" in result.document["outcome"]["evidence"]


@pytest.mark.req("TC-10", "TC-21")
def test_a_limit_stops_before_check_and_counts_over_resumes(place: Place) -> None:
    log: list[str] = []

    async def attempt(ctx: Any, feedback: str | None) -> int:
        log.append(f"attempt {ctx.round}")
        ctx.report_usage(fee(10))
        return ctx.round

    async def check(ctx: Any, candidate: int) -> Any:
        log.append(f"check {ctx.round}")
        return reject("more")

    flow = Workflow("w", [LoopTask("loop", attempt, check, max_rounds=9)], budget=Budget(max_cost_usd=Decimal("0.20")))
    result = place.run(flow)
    assert (result.status, result.code) == ("stopped", "limit")
    assert log == ["attempt 1", "check 1", "attempt 2"]
    assert place.resume(flow, retry_incomplete=True).status == "stopped"
    result = place.resume(flow, extend=Budget(max_cost_usd=Decimal("0.30")))
    assert (result.status, log[3:]) == ("stopped", ["check 2", "attempt 3"])
    assert result.document["cost_usd"] == Decimal("0.30")


@pytest.mark.req("TC-21")
@pytest.mark.parametrize(
    ("limit", "runs"),
    [
        ({"max_attempts": 2}, 2),
        ({"max_requests": 3}, 3),
        ({"max_input_tokens": 20}, 2),
        ({"max_output_tokens": 20}, 4),
        ({"max_tokens": 30}, 2),
    ],
)
def test_each_limit_trips_at_its_value(place: Place, limit: dict[str, int], runs: int) -> None:
    async def work(ctx: Any) -> None:
        ctx.report_usage(fee())

    flow = Workflow("w", [Task(f"t{n}", work) for n in range(6)], budget=Budget(**limit), concurrency=1)
    result = place.run(flow)
    assert (result.status, result.code, len(result.outputs)) == ("stopped", "limit", runs)


@pytest.mark.req("TC-21")
@pytest.mark.parametrize(
    ("usage", "options", "code"),
    [
        (Usage(requests=1), {"budget": Budget(max_tokens=100)}, "usage-unavailable"),
        (Usage(requests=1, input_tokens=1), {"budget": Budget(max_cost_usd=Decimal(1))}, "usage-unavailable"),
        (Usage(requests=1, input_tokens=1), {"budget": Budget(max_cost_usd=Decimal(1)), "price": "10,20"}, "accepted"),
        (Usage(requests=1), {}, "accepted"),
    ],
)
def test_incomplete_usage_under_a_cap_is_a_stop_of_its_own(place: Place, usage: Usage, options: Any, code: str) -> None:
    async def work(ctx: Any) -> None:
        ctx.report_usage(usage)

    result = place.run(Workflow("w", [Task("a", work), Task("b", work, after=("a",))], **options))
    assert result.code == code
    if "price" in options:
        assert result.document["cost_usd"] == 2 * Decimal("0.00001")


@pytest.mark.req("TC-21")
def test_parallel_charges_reserve_their_worst_case_and_do_not_overshoot_together(place: Place) -> None:
    most = [Decimal(0)]
    open_now = [Decimal(0)]

    async def work(ctx: Any) -> None:
        await ctx.intend("r", fee(30))
        open_now[0] += Decimal("0.30")
        most[0] = max(most[0], open_now[0])
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        open_now[0] -= Decimal("0.30")
        ctx.report_usage_once("r", fee(10))
        await ctx.checkpoint()

    flow = Workflow(
        "w", [Task(f"t{n}", work) for n in range(6)], budget=Budget(max_cost_usd=Decimal("0.70")), concurrency=6
    )
    result = place.run(flow)
    assert result.status == "done", result.document["outcome"]
    assert result.document["cost_usd"] == Decimal("0.60")
    assert most[0] <= Decimal("0.60")


@pytest.mark.req("TC-21")
def test_a_charge_that_has_no_room_left_stops_the_workflow_and_replays_when_it_is_extended(place: Place) -> None:
    log = []

    async def work(ctx: Any) -> str:
        log.append(ctx.attempt)
        for n in range(3):
            await ctx.intend(f"{n}", fee(50))
            ctx.report_usage_once(f"{n}", fee(50))
        return "paid"

    flow = one(work, budget=Budget(max_cost_usd=Decimal(1)))
    result = place.run(flow)
    assert (result.code, result.document["cost_usd"]) == ("limit", Decimal(1))
    result = place.resume(flow, extend=Budget(max_cost_usd=Decimal(5)))
    assert (result.outputs, log) == ({"a": "paid"}, [1, 2])
    assert result.document["cost_usd"] == Decimal("1.50")


FEE = Usage(input_tokens=1000, output_tokens=100)
DONE = Turn(calls=[("finish", {"summary": "did it"})], usage=FEE)


def agent_loop(log: list[Any], *, price: str | None = "100,200", turns: int = 1) -> Loop:
    model = ScriptedModel(
        [Turn(text="I look.", usage=FEE), *[Turn(text="On.", usage=FEE)] * (turns - 1), DONE],
        price=None if price is None else parse_price(price),
    )

    def check(ctx: Any, output: Any) -> Any:
        log.append(output)
        return accept()

    return Loop(name="inner", act=Agent(model=model), evaluate=check)


@pytest.mark.req("TC-25", "TC-21")
def test_a_childs_usage_is_charged_once_and_a_finished_one_is_found_by_a_replay(place: Place) -> None:
    log: list[Any] = []
    seen = []
    broken = [True]
    loop = agent_loop(log)

    async def work(ctx: Any) -> str:
        result = await ctx.run(loop, "the task", key="draft")
        seen.append(result.execution_id)
        if broken:
            raise RuntimeError("after the child")
        return result.output

    flow = one(work, budget=Budget(max_cost_usd=Decimal(10)))
    result = place.run(flow)
    cost = result.document["cost_usd"]
    assert (result.status, cost > 0) == ("failed", True)
    broken.clear()
    result = place.resume(flow, retry_incomplete=True)
    assert (result.status, result.outputs, result.document["cost_usd"]) == ("done", {"a": "did it"}, cost)
    assert (len(log), len(set(seen)), len(seen)) == (1, 1, 2)
    assert not seen[0].startswith(X)


@pytest.mark.req("TC-21")
def test_a_child_gets_no_more_than_what_is_left_and_goes_on_when_the_parent_is_extended(place: Place) -> None:
    log: list[Any] = []
    flow = Workflow(
        "w", [RunTask("a", agent_loop(log, turns=3), "the task")], budget=Budget(max_cost_usd=Decimal("0.20"))
    )
    result = place.run(flow)
    assert (result.status, result.code, log) == ("stopped", "limit", [])
    result = place.resume(flow, extend=Budget(max_cost_usd=Decimal(9)))
    assert (result.status, result.outputs) == ("done", {"a": "did it"})
    assert result.document["usage"]["requests"] == 4


@pytest.mark.req("TC-21")
def test_an_unpriced_model_under_a_cap_is_refused_before_anything_runs(place: Place) -> None:
    from treadle.core.errors import DefinitionError

    flow = Workflow("w", [RunTask("a", agent_loop([], price=None), "t")], budget=Budget(max_cost_usd=Decimal(1)))
    with pytest.raises(DefinitionError, match="price"):
        place.run(flow)


@pytest.mark.req("TC-21")
def test_active_time_has_a_limit_and_waiting_does_not_count(place: Place) -> None:
    async def work(ctx: Any) -> str:
        place.clock.advance(6)
        return ctx.task

    tasks = [Task("a", work), PauseTask("pause", for_s=1000, after=("a",)), Task("b", work, after=("pause",))]
    flow = Workflow("timed", [*tasks, Task("c", work, after=("b",))], budget=Budget(max_time_s=12))
    stopped = place.run(flow)
    assert (stopped.status, stopped.code, list(stopped.outputs)) == ("stopped", "limit", ["a", "pause", "b"])
    assert stopped.document["outcome"]["evidence"] == "max_time 12 s reached (12 s)"
    assert next_command(X, stopped.state) == f"treadle extend {X} --max-time 24s && treadle resume {X}"
    with pytest.raises(InputError, match="would not extend"):
        place.resume(flow, extend=Budget(max_time_s=11))
    assert place.resume(flow, extend=Budget(max_time_s=24)).status == "done"


@pytest.mark.req("TC-21")
@pytest.mark.parametrize("value", [0, -1, True, "10", float("nan"), float("inf")])
def test_a_time_limit_is_a_span(value: Any) -> None:
    with pytest.raises(DefinitionError, match="max_time_s"):
        Budget(max_time_s=value)
