"""A step does one turn, or one round, and holds the loop there: nothing is lost, and nothing is done twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from support.driving import DONE, LOOK, PLAN, a_loop, in_runtime, scripted
from treadle import Agent, Loop, accept, reject, tool
from treadle.app.runtime import Reopening, Runtime
from treadle.core.codec import decode
from treadle.core.errors import InputError
from treadle.kernel.steering import Step
from treadle.testing import Turn


@pytest.mark.req("CV-23")
def test_each_step_does_one_turn_or_one_check_and_then_holds(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        model = scripted(PLAN, LOOK, DONE, PLAN, DONE)
        verdicts = [reject("not yet"), accept()]
        loop = a_loop(model, lambda ctx, output: verdicts.pop(0))
        session = await runtime.start(loop, "the task")
        session.driver.hold_after("turn")
        seen: list[Any] = []
        while (found := await session.run())["status"] == "paused":
            seen.append((session.state.round, session.state.phase, session.state.total.turns))
            await session.close()
            session = await runtime.resume(session.execution_id, loop, Reopening(step="turn"))
        await session.close()
        assert seen == [
            (1, "act", 1),
            (1, "act", 2),
            (1, "evaluate", 3),
            (2, "act", 3),
            (2, "act", 4),
            (2, "evaluate", 5),
        ]
        assert (found["status"], model.requests, found["in_doubt_usd"]) == ("done", 5, 0)
        reasons = [
            decode(r.kind, r.version, r.body).reason  # type: ignore[union-attr]
            for r in await runtime.ledger.records(session.execution_id)
            if r.kind == "interrupted"
        ]
        assert reasons == ["step", "taken-over"] * 6

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("CV-23")
def test_a_step_of_a_round_holds_behind_its_verdict(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        verdicts = [reject("not yet"), accept()]
        loop = a_loop(scripted(PLAN, LOOK, DONE, PLAN, DONE), lambda ctx, output: verdicts.pop(0))
        session = await runtime.start(loop, "the task")
        session.driver.hold_after("round")
        found = await session.run()
        assert (found["status"], found["code"], session.state.round, session.state.phase) == (
            "paused",
            "interrupted",
            2,
            "act",
        )
        await session.close()

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("CV-23")
def test_a_running_loop_is_held_by_its_own_process_after_the_turn(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        began, enough = anyio.Event(), anyio.Event()

        @tool(kind="read")
        async def linger() -> str:
            """Takes its time."""
            began.set()
            await enough.wait()
            return "done"

        model = scripted(PLAN, Turn(calls=[("linger", {})]), DONE)
        loop = Loop(name="test", act=Agent(model=model, tools=(linger,)), evaluate=lambda ctx, output: accept())
        session = await runtime.start(loop, "the task")
        async with anyio.create_task_group() as group:
            group.start_soon(session.run)
            await began.wait()
            await runtime.steer(session.execution_id, Step(actor="ada"))
            (posted,) = await runtime.ledger.posted(session.execution_id)
            while not session.journal.was_taken(posted.id):  # noqa: ASYNC110 - the inbox is looked at now and then
                await anyio.sleep(0.01)
            enough.set()
        assert (session.state.status, session.state.total.turns) == ("paused", 2)
        assert not session.state.agent.call
        with pytest.raises(InputError, match="does not run"):
            await runtime.steer(session.execution_id, Step(actor="ada"))
        await session.close()

    in_runtime("memory:", tmp_path, test)
