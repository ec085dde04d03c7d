"""Quotas, failures, durability and takeovers of one driven execution, on each store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.driving import (
    DONE,
    FEE,
    PLAN,
    Hanging,
    ToldOf,
    a_loop,
    in_runtime,
    look,
    run_until,
    scripted,
)
from support.places import LateLedger
from treadle import Agent, Loop, accept, reject, tool
from treadle.app.runtime import Reopening, Runtime, resting
from treadle.core.errors import OutsideRound, ToolError
from treadle.core.events import ModelFailed, ModelIntended
from treadle.kernel.actions import CallModel, Record
from treadle.kernel.loop import next_actions
from treadle.kernel.steering import Answer, Cancel
from treadle.ledger.inmemory import InMemoryLedger
from treadle.ports.observer import Progress
from treadle.runtime.document import document
from treadle.settings import Settings
from treadle.testing import Fault, Reached, ScriptedModel, Turn, VirtualClock


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 't.db'}"


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


@pytest.mark.req("TC-24")
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


@pytest.mark.req("LG-03")
def test_a_response_is_durable_while_the_reads_that_it_asked_for_still_run(store: str, tmp_path: Path) -> None:
    seen: list[bool] = []

    async def test(runtime: Runtime) -> None:
        @tool(kind="read")
        async def wait() -> None:
            """Returns once the response that asked for it is on disk."""
            with anyio.move_on_after(5):
                while not seen:
                    kinds = [record.kind for record in await runtime.ledger.records("x1-test")]
                    if kinds.count("model.responded") == 2:
                        seen.append(True)
                    await anyio.sleep(0.005)

        model = scripted(PLAN, Turn(calls=[("wait", {})], usage=FEE), DONE)
        loop = Loop(name="test", act=Agent(model=model, tools=(wait,)), evaluate=lambda ctx, output: accept())
        session = await runtime.start(loop, "the task", execution_id="x1-test")
        assert (await session.run())["code"] == "accepted"
        await session.close()

    in_runtime(store, tmp_path, test)
    assert seen


@pytest.mark.req("SE-01")
def test_a_secret_in_a_task_or_a_tools_words_is_seen_by_no_model_and_stored_nowhere(tmp_path: Path) -> None:
    secret, bodies = "correct-horse-staple", list[str]()
    steps = [PLAN, Turn(calls=[("tell", {}), ("fail", {})], usage=FEE), DONE]

    def answer(body: dict[str, Any]) -> Turn:
        bodies.append(repr(body))
        return steps.pop(0)

    @tool(kind="read")
    def tell() -> str:
        """Tells."""
        return f"it is {secret.upper()}"

    @tool(kind="read")
    def fail() -> str:
        """Fails."""
        raise ToolError("not-found", f"nothing at {secret}")

    async def main() -> None:
        made = Runtime(InMemoryLedger(), Settings(environ={"APP_PASSWORD": secret}, state_dir=tmp_path))
        agent = Agent(model=ScriptedModel(answer), tools=(tell, fail))
        loop = Loop(name="test", act=agent, evaluate=lambda ctx, output: accept())
        session = await made.start(loop, f"Log in with {secret}")
        assert (await session.run())["code"] == "accepted"
        await session.close()
        stored = b"".join(record.body for record in await made.ledger.records(session.execution_id))
        assert secret.encode() not in stored.lower()
        assert stored.count(b"[redacted]") >= 4  # task, input, result and failure
        await made.close()

    anyio.run(main)
    assert len(bodies) == 3
    assert all(secret not in body.lower() for body in bodies)
    assert bodies[-1].count("[redacted]") == 3


@pytest.mark.req("TC-12")
def test_a_checkpoint_of_a_check_waits_until_what_it_reported_is_durable(tmp_path: Path) -> None:
    ledger = LateLedger()

    async def check(ctx: Any, output: Any) -> Any:
        ctx.report_usage(FEE)
        await ctx.checkpoint()
        kinds = [record.kind for record in await ledger.records(ctx.execution_id)]
        return accept() if "usage.reported" in kinds else reject("it is not durable")

    async def main() -> None:
        made = Runtime(ledger, Settings(environ={}, state_dir=tmp_path))
        session = await made.start(a_loop(scripted(PLAN, DONE), check, max_rounds=1), "the task")
        assert (await session.run())["code"] == "accepted"
        await session.close()
        await made.close()

    anyio.run(main)


@pytest.mark.req("TC-10", "TC-11")
def test_reports_of_a_check_count_once_a_receipt_and_not_outside_its_round(store: str, tmp_path: Path) -> None:
    kept = []
    runtimes: list[Runtime] = []

    async def check(ctx: Any, output: Any) -> Any:
        await anyio.to_thread.run_sync(lambda: [ctx.report_usage(FEE) for _ in range(20)])
        assert await ctx.intend("r", FEE)
        for _ in range(3):
            ctx.report_usage_once("r", FEE)
        assert not await ctx.intend("r", FEE)
        ctx.report_usage(FEE)
        await ctx.checkpoint()
        kinds = [record.kind for record in await runtimes[0].ledger.records(ctx.execution_id)]
        assert kinds.count("usage.reported") == 20 + 1 + 1
        return accept()

    async def gate(ctx: Any, output: Any) -> Any:
        kept.append(ctx)
        return accept()

    async def check_after_gate(ctx: Any, output: Any) -> Any:
        with pytest.raises(OutsideRound):  # the gate is over, and something else runs
            kept[0].report_usage(FEE)
        return await check(ctx, output)

    async def test(runtime: Runtime) -> None:
        runtimes.append(runtime)
        loop = a_loop(scripted(PLAN, DONE), check_after_gate, gates={"gate": gate})
        session = await runtime.start(loop, "the task")
        found = await session.run()
        assert found["usage"]["input_tokens"] == (2 + 20 + 1 + 1) * 100
        assert found["usage"]["in_doubt_requests"] == 0
        assert session.state.act.usage.input_tokens == 2 * 100
        with pytest.raises(OutsideRound):
            kept[0].report_usage(FEE)
        await session.close()
        assert await runtime.ledger.receipts(session.execution_id, "loop") == {"r"}

    in_runtime(store, tmp_path, test)


@pytest.mark.req("TC-05")
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
        assert session.state.agent.guards.no_call == 4
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


@pytest.mark.req("FR-10")
def test_time_at_work_counts_and_time_waited_or_between_processes_does_not(tmp_path: Path) -> None:
    clock = VirtualClock()

    @tool(kind="mutating")
    def work() -> str:
        """Works for 3 s."""
        clock.advance(3)
        return "done"

    def loop() -> Loop:
        ask = Turn(calls=[("work", {}), ("ask_person", {"question": "Well?"})], usage=FEE)
        model = scripted(PLAN, ask, Turn(calls=[("work", {})], usage=FEE), DONE)

        def check(ctx: Any, output: Any) -> Any:
            clock.advance(5)
            return accept()

        return Loop(name="test", act=Agent(model=model, tools=(work,)), evaluate=check)

    async def test(runtime: Runtime) -> None:
        session = await runtime.start(loop(), "the task")
        await session.run()
        await session.close()
        pending = session.state.pending
        assert pending is not None
        clock.advance(1_000)
        said = Answer(request_id=pending.id, decision="answer", text="go on", actor="ada")
        await runtime.steer(session.execution_id, said)
        clock.advance(1_000)
        session = await runtime.resume(session.execution_id, loop(), Reopening())
        found = await session.run()
        await session.close()
        assert (found["elapsed_ms"], found["act_elapsed_ms"]) == (11_000, 6_000)

    in_runtime("memory:", tmp_path, test, clock=clock)
