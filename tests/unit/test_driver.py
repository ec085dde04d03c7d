"""One execution driven for real, with a scripted model and on each store: accounts, stops, takeovers and answers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.driving import (
    DONE,
    FEE,
    LOOK,
    PLAN,
    Hanging,
    a_loop,
    in_runtime,
    run_until,
    runtime,
    scripted,
)
from treadle import Agent, Loop, Person, accept, reject, tool
from treadle.app.runtime import Reopening, Runtime, resting
from treadle.core.codec import decode
from treadle.core.errors import (
    AnswerRefused,
    DefinitionChanged,
    InputError,
    InputMismatch,
    OwnerAlive,
    StaleEpoch,
    ToolError,
)
from treadle.kernel.steering import Answer, Cancel, Extend, Pause
from treadle.models.prices import parse_price
from treadle.ports.toolset import ToolContext
from treadle.testing import Fault, ScriptedModel, Turn


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 't.db'}"


@pytest.mark.req("FR-08", "AG-27")
def test_a_loop_runs_to_its_end_with_every_turn_and_dollar_counted(store: str, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        model = scripted(PLAN, LOOK, DONE, PLAN, DONE)
        verdicts = [reject("not yet"), accept()]
        session = await runtime.start(a_loop(model, lambda ctx, output: verdicts.pop(0)), "the task")
        found = await session.run()
        assert (found["status"], found["code"], found["rounds"]) == ("done", "accepted", 2)
        assert (found["turns_taken"], found["act_turns_taken"], found["usage"]["requests"]) == (5, 5, 5)
        assert found["cost_usd"] == 5 * (100 * 10 + 10 * 20) / Decimal(1_000_000)
        assert found["output"] == "did it"
        assert model.requests == 5
        await session.close()
        intents = [r for r in await runtime.ledger.records(session.execution_id) if r.kind == "model.intended"]
        digests = {r.body.split(b'"request":"')[1][:24] for r in intents}
        assert len(digests) == 5

    in_runtime(store, tmp_path, test)


@pytest.mark.req("TC-05")
def test_each_request_and_each_tool_call_has_a_key_of_the_execution_and_of_its_own(store: str, tmp_path: Path) -> None:
    given: list[str] = []

    @tool
    def pay(context: ToolContext) -> str:
        """Pays."""
        given.append(context.key)
        return "paid"

    async def test(runtime: Runtime) -> None:
        model = ScriptedModel([PLAN, Turn(calls=[("pay", {}), ("pay", {})]), Turn(calls=[("pay", {})]), DONE])
        loop = Loop(name="test", act=Agent(model=model, tools=(pay,)), evaluate=lambda ctx, output: accept())
        session = await runtime.start(loop, "the task", execution_id="x1-test")
        await session.run()
        await session.close()
        asked = [charge.key for charge in model.bill.charges]
        assert (len(given), len(asked)) == (3, 4)
        assert len({*given, *asked}) == 7
        assert all(key.startswith("x1-test:r1.act.t") for key in (*given, *asked))

    in_runtime(store, tmp_path, test)


@pytest.mark.req("FR-14")
def test_a_call_that_failed_has_touched_what_it_was_to_touch(store: str, tmp_path: Path) -> None:
    @tool(kind="mutating")
    def send() -> str:
        """Sends."""
        raise ToolError("timeout", "no answer")

    async def test(runtime: Runtime) -> None:
        model = scripted(PLAN, Turn(calls=[("send", {})], usage=FEE), DONE)
        loop = Loop(name="test", act=Agent(model=model, tools=(send,)), evaluate=lambda ctx, output: accept())
        session = await runtime.start(loop, "the task")
        await session.run()
        await session.close()
        assert session.state.carried.effects == ("external.mutation send",)

    in_runtime(store, tmp_path, test)


@pytest.mark.req("LG-02")
def test_each_turn_writes_its_own_records_and_no_more_later_than_at_the_start(tmp_path: Path) -> None:
    @tool(kind="read")
    def look_at(line: int) -> str:
        """Looks."""
        return f"line {line}"

    async def test(runtime: Runtime) -> None:
        looks = [Turn(calls=[("look_at", {"line": n})], usage=FEE) for n in range(100, 140)]
        act = Agent(model=scripted(PLAN, *looks, DONE), tools=(look_at,), max_turns_per_act=60)
        loop = Loop(name="test", act=act, evaluate=lambda ctx, output: accept())
        session = await runtime.start(loop, "the task")
        assert (await session.run())["code"] == "accepted"
        await session.close()
        execution = runtime.ledger._store.executions[session.execution_id]  # type: ignore[attr-defined]
        turns: list[int] = []
        for record in execution.records:
            if record.kind == "model.intended":
                turns.append(0)
            if turns:
                turns[-1] += len(record.body)
        assert len(turns) == 42
        assert max(turns[5:40]) < 1.1 * min(turns[5:40])
        assert len(execution.snapshots) == 2  # one that was due, one at the end

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-26")
def test_a_finished_execution_rests_and_its_stored_state_is_all_there_is(store: str, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        session = await runtime.start(a_loop(scripted(PLAN, DONE)), "the task")
        await session.run()
        await session.close()
        state = await runtime.state(session.execution_id)
        assert resting(state, Reopening()) == "it has ended"
        assert resting(state, Reopening(retry_incomplete=True)) == "it has ended"

    in_runtime(store, tmp_path, test)


@pytest.mark.req("LG-04", "FR-08")
def test_a_cancelled_request_is_in_doubt_and_is_sent_again_under_an_intent_of_its_own(
    store: str, tmp_path: Path
) -> None:
    async def test(runtime: Runtime) -> None:
        model = Hanging(PLAN)
        session = await runtime.start(a_loop(model), "the task")
        await run_until(session, model.asked)
        assert session.state.total.in_doubt.requests == 1
        await session.close()
        again = await runtime.resume(session.execution_id, a_loop(scripted(PLAN, LOOK, DONE)), Reopening())
        found = await again.run()
        assert found["code"] == "accepted"
        assert (found["usage"]["requests"], found["usage"]["in_doubt_requests"]) == (3, 1)
        assert found["in_doubt_usd"] > 0
        await again.close()
        records = await runtime.ledger.records(session.execution_id)
        assert sum(r.kind == "model.intended" for r in records) == 4

    in_runtime(store, tmp_path, test)


@pytest.mark.req("RT-01")
def test_an_interrupt_stops_cleanly_and_the_execution_goes_on_later(store: str, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        model = Hanging(PLAN)
        session = await runtime.start(a_loop(model), "the task")
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await model.asked.wait()
                session.driver.interrupt()

            group.start_soon(stop)
            found = await session.run()
        assert (found["status"], found["code"], found["exit_code"]) == ("paused", "interrupted", 130)
        await session.close()
        again = await runtime.resume(session.execution_id, a_loop(scripted(PLAN, DONE)), Reopening())
        assert (await again.run())["code"] == "accepted"
        await again.close()

    in_runtime(store, tmp_path, test)


@pytest.mark.req("FR-09", "FR-10")
def test_the_time_limit_ends_a_request_that_hangs(store: str, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        session = await runtime.start(a_loop(scripted(PLAN, Fault(hang=True)), max_time_s=0.2), "the task")
        found = await session.run()
        assert (found["status"], found["code"]) == ("stopped", "limit")
        assert "max_time" in found["outcome"]["evidence"]
        await session.close()
        state = await runtime.steer(session.execution_id, Extend(actor="ada", max_duration_us=60_000_000))
        assert state.status == "running"
        again = await runtime.resume(session.execution_id, a_loop(scripted(PLAN, DONE), max_time_s=0.2), Reopening())
        assert (await again.run())["code"] == "accepted"
        await again.close()

    in_runtime(store, tmp_path, test)


@pytest.mark.req("CV-23")
def test_a_pause_from_outside_stops_a_running_execution_and_it_goes_on_later(store: str, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        model = Hanging(PLAN)
        session = await runtime.start(a_loop(model), "the task")
        async with anyio.create_task_group() as group:

            async def pause() -> None:
                await model.asked.wait()
                await runtime.steer(session.execution_id, Pause(actor="ada"))

            group.start_soon(pause)
            found = await session.run()
        assert (found["status"], found["code"]) == ("paused", "interrupted")
        await session.close()
        assert not await runtime.ledger.posted(session.execution_id)
        with pytest.raises(InputError, match="does not run"):
            await runtime.steer(session.execution_id, Pause(actor="ada"))
        again = await runtime.resume(session.execution_id, a_loop(scripted(PLAN, DONE)), Reopening())
        assert (await again.run())["code"] == "accepted"
        await again.close()

    in_runtime(store, tmp_path, test)


@pytest.mark.req("TC-22")
def test_a_cancellation_from_outside_ends_a_running_execution(store: str, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        model = Hanging(PLAN)
        session = await runtime.start(a_loop(model), "the task")
        async with anyio.create_task_group() as group:

            async def cancel() -> None:
                await model.asked.wait()
                await runtime.steer(session.execution_id, Cancel(actor="ada", reason="enough"))

            group.start_soon(cancel)
            found = await session.run()
        assert (found["status"], found["code"]) == ("cancelled", "aborted")
        assert "ada" in found["outcome"]["evidence"]
        assert found["usage"]["in_doubt_requests"] == 1
        await session.close()
        assert not await runtime.ledger.posted(session.execution_id)

    in_runtime(store, tmp_path, test)


@pytest.mark.req("TC-23")
def test_a_question_waits_for_its_answer_across_sessions(store: str, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        ask = Turn(calls=[("ask_person", {"question": "Which?", "choices": ["left", "right"]})], usage=FEE)
        session = await runtime.start(a_loop(scripted(PLAN, ask)), "the task")
        found = await session.run()
        assert (found["status"], found["code"], found["exit_code"]) == ("waiting-input", "question", 3)
        assert found["pending"]["choices"] == ["left", "right"]
        await session.close()
        request = found["pending"]["request_id"]
        for wrong in (
            Answer(request_id="other", decision="answer", text="left", actor="ada"),
            Answer(request_id=request, decision="answer", text="up", actor="ada"),
            Answer(request_id=request, decision="answer", text=" ", actor="ada"),
            Answer(request_id=request, decision="answer", text="left", actor=" "),
            Answer(request_id=request, decision="approve", text="", actor="ada"),
        ):
            with pytest.raises(AnswerRefused):
                await runtime.steer(session.execution_id, wrong)
        right = Answer(request_id=request, decision="answer", text="left", actor="ada")
        await runtime.steer(session.execution_id, right)
        with pytest.raises(AnswerRefused):
            await runtime.steer(session.execution_id, right)
        told = []

        def decide(body: dict[str, Any]) -> Turn:
            told.append(body["messages"][-1]["content"])
            return DONE

        model = ScriptedModel(decide, price=parse_price("1,1"))
        again = await runtime.resume(session.execution_id, a_loop(model), Reopening())
        assert (await again.run())["code"] == "accepted"
        assert told == ["left"]
        await again.close()

    in_runtime(store, tmp_path, test)


def test_a_person_evaluates_between_sessions(store: str, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        loop = a_loop(scripted(PLAN, DONE, PLAN, DONE), Person())
        session = await runtime.start(loop, "the task")
        found = await session.run()
        assert (found["code"], found["pending"]["kind"]) == ("approval", "evaluation")
        await session.close()
        request = found["pending"]["request_id"]
        with pytest.raises(AnswerRefused, match="reason"):
            await runtime.steer(session.execution_id, Answer(request_id=request, decision="reject", text="", actor="a"))
        refusal = Answer(request_id=request, decision="reject", text="add tests", actor="ada")
        await runtime.steer(session.execution_id, refusal)
        again = await runtime.resume(session.execution_id, loop, Reopening())
        found = await again.run()
        assert found["rounds"] == 2
        approval = Answer(request_id=found["pending"]["request_id"], decision="approve", text="", actor="ada")
        await again.steer(approval)
        assert (await again.run())["code"] == "accepted"
        await again.close()

    in_runtime(store, tmp_path, test)


@pytest.mark.req("TC-26", "RT-03")
def test_a_fenced_owner_commits_nothing_more(tmp_path: Path) -> None:
    async def test(runtime_a: Runtime) -> None:
        model = Hanging(PLAN)
        session = await runtime_a.start(a_loop(model), "the task")
        async with runtime(store, tmp_path) as runtime_b, anyio.create_task_group() as group:
            with pytest.raises(OwnerAlive):
                await runtime_b.resume(session.execution_id, a_loop(scripted(PLAN, DONE)), Reopening())

            async def take_over() -> None:
                await model.asked.wait()
                other = await runtime_b.resume(
                    session.execution_id, a_loop(scripted(PLAN, DONE)), Reopening(force=True)
                )
                assert (await other.run())["code"] == "accepted"
                await other.close()
                session.driver.interrupt()  # the old owner wakes up and wants to commit

            group.start_soon(take_over)
            with pytest.raises(StaleEpoch):
                await session.run()
        records = await runtime_a.ledger.records(session.execution_id)
        assert [r.seq for r in records] == list(range(1, len(records) + 1))

    store = f"sqlite:///{tmp_path / 't.db'}"
    in_runtime(store, tmp_path, test)


@pytest.mark.req("AG-22")
def test_reads_of_a_batch_run_at_once_and_their_results_come_in_the_order_of_the_calls(
    store: str, tmp_path: Path
) -> None:
    second = anyio.Event()

    @tool(kind="read")
    async def slow() -> str:
        """Waits for the other."""
        await second.wait()
        return "slow"

    @tool(kind="read")
    async def quick() -> str:
        """Does not wait."""
        second.set()
        return "quick"

    async def test(runtime: Runtime) -> None:
        model = scripted(PLAN, Turn(calls=[("slow", {}), ("quick", {})], usage=FEE), DONE)
        loop = Loop(name="test", act=Agent(model=model, tools=(slow, quick)), evaluate=lambda ctx, output: accept())
        session = await runtime.start(loop, "the task")
        assert (await session.run())["code"] == "accepted"
        await session.close()
        records = await runtime.ledger.records(session.execution_id)
        body = next(record.body for record in records if record.kind == "tools.finished")
        assert body.index(b'"slow"') < body.index(b'"quick"')

    in_runtime(store, tmp_path, test)


@pytest.mark.req("FR-25")
def test_a_changed_definition_is_refused_by_its_parts_and_adopted_only_when_asked(store: str, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        session = await runtime.start(a_loop(scripted(PLAN, LOOK), max_turns=2), "the task")
        assert (await session.run())["code"] == "limit"
        await session.close()
        await runtime.steer(session.execution_id, Extend(actor="ada", max_turns=9, max_cost_usd=Decimal(5)))
        changed = a_loop(scripted(PLAN, LOOK, DONE), instructions="Do it otherwise.", max_turns=2)
        with pytest.raises(DefinitionChanged) as caught:
            await runtime.resume(session.execution_id, changed, Reopening())
        assert caught.value.parts == ("act prompt",)
        assert (
            f"act prompt changed. Restore it, or adopt the change: treadle resume {session.execution_id} --adopt"
            in str(caught.value)
        )
        retuned = a_loop(scripted(PLAN, LOOK, DONE), max_turns=7, max_rounds=99, max_cost_usd=Decimal(3))
        session = await runtime.resume(session.execution_id, retuned, Reopening())
        await session.close()
        session = await runtime.resume(session.execution_id, changed, Reopening(adopt=True, actor="ada"))
        assert "adopted" in {r.kind for r in await runtime.ledger.records(session.execution_id)}
        await session.close()
        assert session.state.settings.act_policy.max_turns == 9  # limits are not adopted
        assert session.state.settings.limits.max_cost_usd == 5
        session = await runtime.resume(session.execution_id, changed, Reopening())  # and need not be adopted again
        await session.close()

    in_runtime(store, tmp_path, test)


@pytest.mark.req("FR-03")
def test_a_stored_input_is_validated_against_todays_type_before_anything_runs(store: str, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        loop = a_loop(scripted(PLAN, LOOK), max_turns=2, input_type=dict[str, int])
        with pytest.raises(InputError, match="a"):
            await runtime.start(loop, {"a": "x"})
        session = await runtime.start(loop, {"a": 1})
        await session.run()
        await session.close()
        await runtime.steer(session.execution_id, Extend(actor="ada", max_turns=9))
        model = scripted(PLAN, LOOK, DONE)
        with pytest.raises(InputMismatch):
            await runtime.resume(session.execution_id, a_loop(model, input_type=dict[int, int]), Reopening())
        assert model.requests == 0

    in_runtime(store, tmp_path, test)


@pytest.mark.req("LG-04")
def test_what_is_reserved_for_a_request_is_not_told_by_a_conversation_that_is_over(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        long = Turn(text="word " * 2_000, calls=[("look", {})], usage=FEE)
        model = scripted(PLAN, long, DONE, PLAN, DONE)
        verdicts = [reject("not yet"), accept()]
        session = await runtime.start(a_loop(model, lambda ctx, output: verdicts.pop(0), history="fresh"), "the task")
        await session.run()
        records = await runtime.ledger.records(session.execution_id)
        intents = [decode(r.kind, r.version, r.body) for r in records if r.kind == "model.intended"]
        first, anew = intents[0], intents[3]
        assert anew.reserve.input_tokens > first.reserve.input_tokens  # the same prompt, and the feedback
        await session.close()

    in_runtime("memory:", tmp_path, test)
