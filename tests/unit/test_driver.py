"""One execution driven for real, with a scripted model and on each store: accounts, stops, takeovers and resumes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from treadle import Agent, Loop, Person, Usage, accept, reject, tool
from treadle.app.runtime import Reopening, Runtime, Session, resting
from treadle.app.stores import open_store
from treadle.core.errors import (
    AnswerRefused,
    DefinitionChanged,
    InputError,
    InputMismatch,
    OutsideRound,
    OwnerAlive,
    StaleEpoch,
)
from treadle.core.events import ModelFailed, ModelIntended
from treadle.kernel.actions import CallModel, Record
from treadle.kernel.loop import next_actions
from treadle.kernel.steering import Answer, Cancel, Extend
from treadle.models.prices import parse_price
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.ports.observer import Observer, Progress
from treadle.runtime.document import document
from treadle.settings import Settings
from treadle.testing import Fault, Reached, ScriptedModel, Turn, VirtualClock

FEE = Usage(input_tokens=100, output_tokens=10)
PLAN = Turn(text="First I look.", usage=FEE)
DONE = Turn(calls=[("finish", {"summary": "did it"})], usage=FEE)
LOOK = Turn(calls=[("look", {})], usage=FEE)


@tool(kind="read")
def look() -> str:
    """Looks."""
    return "nothing special"


def scripted(*steps: Any, **options: Any) -> ScriptedModel:
    return ScriptedModel(list(steps), price=parse_price("10,20"), **options)


class Hanging(ScriptedModel):
    """Answers with these turns, then lets the next request hang and says so."""

    def __init__(self, *turns: Turn) -> None:
        self.asked = anyio.Event()

        def decide(body: dict[str, Any]) -> Turn | Fault:
            done = sum(message["role"] == "assistant" for message in body["messages"])
            if done < len(turns):
                return turns[done]
            self.asked.set()
            return Fault(hang=True, bill=True)

        super().__init__(decide, price=parse_price("10,20"))


async def run_until(session: Session, event: anyio.Event) -> None:
    """Drives the session, and cancels it natively once the event is there."""
    async with anyio.create_task_group() as group:
        group.start_soon(session.run)
        await event.wait()
        group.cancel_scope.cancel()


class ToldOf(Observer):
    """Sets an event when a tool of this name starts."""

    def __init__(self, name: str) -> None:
        self.name, self.event = name, anyio.Event()

    def notify(self, progress: Progress) -> None:
        if progress.kind == "tool.started" and progress.data["name"] == self.name:
            self.event.set()


def a_loop(model: ScriptedModel, evaluate: Any = None, **changes: Any) -> Loop:
    agent = {key: changes.pop(key) for key in ("max_turns", "instructions", "history") if key in changes}
    return Loop(
        name="test",
        act=Agent(model=model, tools=(look,), **agent),
        evaluate=evaluate or (lambda ctx, output: accept()),
        **changes,
    )


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 't.db'}"


@asynccontextmanager
async def runtime(store: str, tmp_path: Path, **options: Any) -> AsyncIterator[Runtime]:
    ledger = await open_store(store, options.get("points", NO_CRASH_POINTS))
    made = Runtime(ledger, Settings(environ={}, state_dir=tmp_path), **options)
    try:
        yield made
    finally:
        await made.close()


def in_runtime(store: str, tmp_path: Path, test: Any, **options: Any) -> None:
    async def main() -> None:
        async with runtime(store, tmp_path, **options) as made:
            with anyio.fail_after(20):
                await test(made)

    anyio.run(main)


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


@pytest.mark.req("FR-25")
def test_a_changed_definition_is_refused_by_its_parts_and_adopted_only_when_asked(store: str, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        session = await runtime.start(a_loop(scripted(PLAN, LOOK), max_turns=2), "the task")
        assert (await session.run())["code"] == "limit"
        await session.close()
        await runtime.steer(session.execution_id, Extend(actor="ada", max_turns=9))
        changed = a_loop(scripted(PLAN, LOOK, DONE), instructions="Do it otherwise.", max_turns=2)
        with pytest.raises(DefinitionChanged) as caught:
            await runtime.resume(session.execution_id, changed, Reopening())
        assert caught.value.parts == ("act prompt",)
        assert caught.value.stored != caught.value.current
        retuned = a_loop(scripted(PLAN, LOOK, DONE), max_turns=7, max_rounds=99, max_cost_usd=Decimal(3))
        session = await runtime.resume(session.execution_id, retuned, Reopening())
        await session.close()
        session = await runtime.resume(session.execution_id, changed, Reopening(adopt=True, actor="ada"))
        assert "adopted" in {r.kind for r in await runtime.ledger.records(session.execution_id)}
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


@pytest.mark.req("TC-24")
def test_a_known_quota_is_waited_out_in_process_and_an_unknown_one_rests(store: str, tmp_path: Path) -> None:
    clock = VirtualClock()
    reset = Fault(status=429, headers={"retry-after": "120"})

    async def test(runtime: Runtime) -> None:
        model = scripted(PLAN, reset, DONE, now_us=clock.wall_us())
        session = await runtime.start(a_loop(model), "the task")
        found = await session.run()
        assert found["code"] == "accepted"
        assert sum(clock.slept) >= 119
        await session.close()
        session = await runtime.start(a_loop(scripted(PLAN, Fault(status=429))), "the task")
        found = await session.run()
        assert (found["status"], found["code"], found["pending"]["until_us"]) == ("paused", "quota", None)
        await session.close()
        again = await runtime.resume(session.execution_id, a_loop(scripted(PLAN, DONE)), Reopening())
        assert (await again.run())["code"] == "accepted"
        await again.close()

    in_runtime(store, tmp_path, test, clock=clock, quota_wait_s=None)


def test_a_quota_longer_than_the_wait_rests_until_it_is_over(store: str, tmp_path: Path) -> None:
    clock = VirtualClock()

    async def test(runtime: Runtime) -> None:
        reset = Fault(status=429, headers={"retry-after": "120"})
        session = await runtime.start(a_loop(scripted(PLAN, reset, DONE, now_us=clock.wall_us())), "the task")
        found = await session.run()
        assert (found["code"], sum(clock.slept)) == ("quota", 0)
        assert found["pending"]["until_us"] == clock.wall_us() + 120_000_000
        await session.close()
        clock.advance(121)
        again = await runtime.resume(session.execution_id, a_loop(scripted(PLAN, DONE)), Reopening())
        assert (await again.run())["code"] == "accepted"
        await again.close()

    in_runtime(store, tmp_path, test, clock=clock, quota_wait_s=60.0)


@pytest.mark.req("LG-04")
def test_passing_failures_are_retried_after_a_back_off_and_each_is_an_intent(store: str, tmp_path: Path) -> None:
    clock = VirtualClock()

    async def test(runtime: Runtime) -> None:
        faults = (Fault(status=503), Fault(close_early=True, bill=True), Fault(status=500))
        model = scripted(PLAN, *faults, DONE)
        session = await runtime.start(a_loop(model), "the task")
        found = await session.run()
        await session.close()
        assert (found["code"], model.requests) == ("accepted", 5)
        assert found["usage"]["in_doubt_requests"] == 2
        assert len([s for s in clock.slept if s > 0]) == 3
        kinds = [r.kind for r in await runtime.ledger.records(session.execution_id)]
        assert kinds.count("model.intended") == 5
        assert kinds.count("model.failed") == 3

    in_runtime(store, tmp_path, test, clock=clock)
    assert ModelFailed.__name__ != ModelIntended.__name__


@pytest.mark.req("LG-03", "LG-04")
def test_a_response_is_durable_before_anything_is_changed_and_an_intent_before_its_request(tmp_path: Path) -> None:
    points = Reached()

    async def test(runtime: Runtime) -> None:
        change = Turn(calls=[("change", {})], usage=FEE)
        loop = a_loop(scripted(PLAN, change, DONE))
        loop = replace(loop, act=replace(loop.act, tools=(look, tool(lambda: "changed", name="change"))))
        session = await runtime.start(loop, "the task")
        await session.run()
        await session.close()

    in_runtime(f"sqlite:///{tmp_path / 't.db'}", tmp_path, test, points=points)
    steps = [name for name in points.order if name in ("ledger.after-commit", "before-model", "before-tool")]
    for index, name in enumerate(steps):
        if name != "ledger.after-commit":
            assert steps[index - 1] == "ledger.after-commit"


@pytest.mark.req("TC-10", "TC-11", "TC-12")
def test_reports_of_a_check_count_once_a_receipt_and_not_outside_its_round(store: str, tmp_path: Path) -> None:
    kept = []

    async def check(ctx: Any, output: Any) -> Any:
        kept.append(ctx)
        await anyio.to_thread.run_sync(lambda: [ctx.report_usage(FEE) for _ in range(20)])
        assert await ctx.intend("r", FEE)
        for _ in range(3):
            ctx.report_usage_once("r", FEE)
        assert not await ctx.intend("r", FEE)
        await ctx.checkpoint()
        return accept()

    async def test(runtime: Runtime) -> None:
        session = await runtime.start(a_loop(scripted(PLAN, DONE), check), "the task")
        found = await session.run()
        assert found["usage"]["input_tokens"] == (2 + 20 + 1) * 100
        assert found["usage"]["in_doubt_requests"] == 0
        assert session.state.act.usage.input_tokens == 2 * 100
        with pytest.raises(OutsideRound):
            kept[0].report_usage(FEE)
        await session.close()
        assert await runtime.ledger.receipts(session.execution_id, "loop") == {"r"}

    in_runtime(store, tmp_path, test)


def test_a_check_that_raises_fails_in_its_own_words_and_is_tried_again_when_asked(store: str, tmp_path: Path) -> None:
    calls = []

    def check(ctx: Any, output: Any) -> Any:
        calls.append((ctx.attempt, ctx.idempotency_key, output))
        if len(calls) == 1:
            raise ValueError("boom")
        return accept()

    async def test(runtime: Runtime) -> None:
        session = await runtime.start(a_loop(scripted(PLAN, DONE), check), "the task")
        found = await session.run()
        await session.close()
        assert (found["status"], found["code"]) == ("failed", "failed")
        assert "boom" in found["outcome"]["evidence"]
        state = await runtime.state(session.execution_id)
        assert "--retry-incomplete" in resting(state, Reopening())
        loop = a_loop(scripted(), check)
        again = await runtime.resume(session.execution_id, loop, Reopening(retry_incomplete=True))
        assert (await again.run())["code"] == "accepted"
        await again.close()
        assert [c[0] for c in calls] == [1, 2]
        assert calls[0][1:] == calls[1][1:]

    in_runtime(store, tmp_path, test)


@pytest.mark.req("AG-10")
def test_a_takeover_goes_on_mid_flight_with_state_step_counters_calls_and_git_state(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 't.db'}"
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "a.txt").write_text("a")
    quiet = Turn(text="Hm.", usage=FEE)
    batch = Turn(calls=[("look", {}), ("run_command", {"command": "sleep 30"})], usage=FEE)

    async def test(runtime: Runtime) -> None:
        told = ToldOf("run_command")
        runtime.observers = (told,)
        loop = a_loop(scripted(PLAN, quiet, quiet, batch), workspace=workspace)
        session = await runtime.start(loop, "the first task")
        await run_until(session, told.event)
        before = session.state
        await session.close()
        assert (before.agent.state, before.agent.step, before.agent.iteration, before.agent.answered) == (
            "executing",
            "tools",
            3,
            1,
        )
        assert before.baseline
        assert await runtime.state(session.execution_id) == before
        again = await runtime.resume(session.execution_id, a_loop(scripted(DONE), workspace=workspace), Reopening())
        after = again.state
        assert after.agent == before.agent
        assert (after.task, after.baseline, after.total) == ("the first task", before.baseline, before.total)
        assert after.agent.calls[1].args == {"command": "sleep 30"}
        await again.close()

    in_runtime(store, tmp_path, test)


@pytest.mark.req("AG-11")
def test_guard_counters_survive_a_takeover(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 't.db'}"
    quiet = Turn(text="Hm.", usage=FEE)

    async def test(runtime: Runtime) -> None:
        model = Hanging(PLAN, *[quiet] * 4)
        session = await runtime.start(a_loop(model), "the task")
        await run_until(session, model.asked)
        assert session.state.agent.quiet == 4
        await session.close()
        again = await runtime.resume(session.execution_id, a_loop(scripted(PLAN, *[quiet] * 9)), Reopening())
        found = await again.run()
        assert (found["code"], found["turns_taken"]) == ("thrash", 1 + 6)
        await again.close()

    in_runtime(store, tmp_path, test)


@pytest.mark.req("FR-10")
def test_time_spent_waiting_for_a_quota_does_not_count(tmp_path: Path) -> None:
    clock = VirtualClock()

    async def test(runtime: Runtime) -> None:
        reset = Fault(status=429, headers={"retry-after": "3600"})
        session = await runtime.start(a_loop(scripted(PLAN, reset, DONE, now_us=clock.wall_us()), max_time_s=60.0), "t")
        found = await session.run()
        assert found["code"] == "accepted"
        assert sum(clock.slept) >= 3600
        assert found["elapsed_ms"] < 60_000
        await session.close()

    in_runtime("memory:", tmp_path, test, clock=clock, quota_wait_s=None)


@pytest.mark.req("AG-18")
def test_a_response_is_streamed_only_to_somebody_who_reads_it(tmp_path: Path) -> None:
    class Reader(ToldOf):
        wants_text = True

        def __init__(self) -> None:
            super().__init__("look")
            self.text = ""

        def notify(self, progress: Progress) -> None:
            self.text += progress.data if progress.kind == "text.delta" else ""

    class Uninterested(Reader):
        wants_text = False

    async def test(runtime: Runtime) -> None:
        for observer, text in ((Reader(), "First I look."), (Uninterested(), "")):
            runtime.observers = (observer,)
            session = await runtime.start(a_loop(scripted(PLAN, DONE)), "the task")
            await session.run()
            await session.close()
            assert observer.text == text

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("LG-03", "LG-04")
def test_what_a_dead_owner_had_in_flight_is_in_doubt_at_once_and_stays_so_when_it_is_cancelled(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 't.db'}"

    async def test(runtime: Runtime) -> None:
        session = await runtime.start(a_loop(scripted(PLAN, DONE)), "the task")
        for action in iter(lambda: next_actions(session.state)[0], None):
            if isinstance(action, CallModel):
                break
            event = (
                action.event
                if isinstance(action, Record)
                else await session.effects.perform(action, session.driver.host)
            )
            session.journal.emit(event)
        await session.close()  # as a kill leaves it: the intent is on disk, the answer is not
        found = document(session.execution_id, await runtime.state(session.execution_id))
        assert (found["usage"]["requests"], found["usage"]["in_doubt_requests"]) == (0, 1)
        assert found["in_doubt_usd"] > 0
        state = await runtime.steer(session.execution_id, Cancel(actor="ada"))
        assert (state.status, state.total.in_doubt.requests) == ("cancelled", 1)
        assert document(session.execution_id, state)["in_doubt_usd"] == found["in_doubt_usd"]

    in_runtime(store, tmp_path, test)
