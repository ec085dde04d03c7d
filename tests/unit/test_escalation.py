"""The ladder of models: when the next one takes over, what it keeps, and what is not sent to it (FR-21)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.driving import DONE, LOOK, PLAN, in_runtime, look, scripted
from support.machine import RESERVE, Machine, call, finish, refold, verdict
from treadle import Agent, Loop, Rung, accept, reject
from treadle.app.build import build
from treadle.app.runtime import Reopening
from treadle.core import events as ev
from treadle.core.errors import ConfigurationError, DefinitionError
from treadle.core.messages import ModelResponded, ToolCall
from treadle.core.settings import AgentSettings
from treadle.core.usage import Usage
from treadle.kernel import actions as act
from treadle.kernel.continuation import frame_of
from treadle.models.extra import response_of
from treadle.runtime.clock import SystemClock
from treadle.settings import Settings
from treadle.testing import Fault

LADDER = ("test:small", "test:middle", "test:big")


class Ladder(Machine):
    """Intents name the model that the state stands on, as the effect does."""

    def outcome(self, action: act.Action) -> Any:
        found = super().outcome(action)
        if isinstance(found, ev.ModelIntended):
            rung = self.state.rung if self.state.phase == "act" else self.state.evaluate_rung
            return ev.ModelIntended(call=found.call, reserve=found.reserve, request="d", model=LADDER[rung])
        return found

    def models(self) -> list[str]:
        return [event.model for event in self.seen(ev.ModelIntended)]


def a_ladder(*turns: Any, verdicts: Any = (True,), own: dict[str, Any] | None = None, **changes: Any) -> Ladder:
    machine = Ladder(turns=list(turns), verdicts=list(verdicts))
    settings = AgentSettings(ladder=LADDER, **(own or {}))
    return machine.start(act_agent=settings, evaluate_agent=settings, **changes)  # type: ignore[return-value]


@pytest.mark.req("FR-21")
def test_the_nth_rejection_leads_to_the_next_model_and_the_count_begins_anew() -> None:
    rounds = ["plan", [finish()]] * 6
    machine = a_ladder(*rounds, verdicts=["no"] * 5 + [True])
    assert machine.rest().code == "accepted"
    assert machine.models() == ["test:small"] * 4 + ["test:middle"] * 4 + ["test:big"] * 4
    assert [event.reason for event in machine.seen(ev.Escalated)] == ["2 rejections", "2 rejections"]
    assert machine.state.rung == 2


@pytest.mark.req("FR-21")
def test_a_guard_that_would_stop_it_escalates_and_only_the_last_model_is_stopped() -> None:
    machine = a_ladder("plan", *["hm"] * 18)
    state = machine.rest()
    assert state.outcome == "thrash: no-call"
    assert [event.rung for event in machine.seen(ev.Escalated)] == [1, 2]
    assert dict(state.fires) == {"no-call": 6}


@pytest.mark.req("FR-21")
def test_a_provider_that_fails_for_good_escalates_but_a_quota_waits() -> None:
    machine = a_ladder("plan", [finish()])
    machine.to(act.CallModel)
    machine.emit(_failed(machine, "auth"))
    machine.to(act.CallModel)
    assert (machine.state.rung, machine.state.agent.failures) == (1, 0)
    machine.emit(_failed(machine, "quota"))
    assert machine.rest().code == "quota"
    assert machine.state.rung == 1


@pytest.mark.req("FR-21")
def test_a_judges_ladder_is_its_own() -> None:
    quiet = ["hm"] * 6
    machine = a_ladder("plan", [finish()], *quiet, [call("verdict", "verdict", accept=True)], evaluate="agent")
    assert machine.rest().code == "accepted"
    assert (machine.state.rung, machine.state.evaluate_rung) == (0, 1)
    assert machine.models()[-1] == "test:middle"


@pytest.mark.req("FR-21", "FR-08")
def test_escalation_keeps_accounts_and_transcript_and_is_latched() -> None:
    machine = a_ladder("plan", [call("look")], *["hm"] * 6, [finish()], "plan", [finish()], verdicts=["no", True])
    while not machine.seen(ev.Escalated):
        before = machine.state
        machine.perform(machine.action())
    after = machine.state
    assert (after.total, after.act, after.agent.leaf) == (before.total, before.act, before.agent.leaf)
    assert (after.agent.iteration, after.agent.turn) == (before.agent.iteration, before.agent.turn)
    assert machine.rest().code == "accepted"
    assert machine.models()[-2:] == ["test:middle", "test:middle"]
    assert frame_of(machine.state).last_act_model_id == "test:middle"
    assert refold(machine.events) == machine.state


@pytest.mark.req("FR-21")
def test_the_model_of_the_last_act_is_not_that_of_its_judge() -> None:
    machine = Machine(turns=["plan", [finish()], [verdict(True)]]).start(evaluate="agent")
    machine.to(act.FinishAct)
    machine.perform(machine.action())
    asked = machine.to(act.IntendModel)
    assert isinstance(asked, act.IntendModel)
    machine.emit(ev.ModelIntended(call=asked.call, reserve=RESERVE, request="d", model="test:judge"))
    assert frame_of(machine.state).last_act_model_id == "test:m"


def _failed(machine: Machine, kind: Any) -> ev.ModelFailed:
    return ev.ModelFailed(call=machine.state.agent.call, kind=kind, message="m", us=1, maybe_charged=False)


# ---- with effects


def _loop(*models: Any, **changes: Any) -> Loop:
    first, *rest = models
    verdict = changes.pop("evaluate", lambda ctx, output: accept())
    agent = Agent(model=first, escalate_to=rest, tools=(look,), **changes.pop("agent", {}))
    return Loop(name="t", act=agent, evaluate=verdict, **changes)


@pytest.mark.req("FR-21")
def test_the_next_model_gets_the_whole_transcript_and_stays_over_a_resume(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 't.db'}"

    async def test(runtime: Any) -> None:
        first, second = (
            scripted(PLAN, LOOK, Fault(status=401), name="test:small"),
            scripted(PLAN, LOOK, DONE, name="test:big"),
        )
        verdicts = iter([reject("again"), accept()])
        loop = _loop(first, second, evaluate=lambda ctx, output: next(verdicts))
        session = await runtime.start(loop, "the task")
        while session.state.phase != "evaluate":
            await _some(session)
        assert session.state.rung == 1
        await session.close()
        later = _loop(
            scripted(name="test:small"), scripted(PLAN, LOOK, DONE, PLAN, DONE, name="test:big"), evaluate=loop.evaluate
        )
        again = await runtime.resume(session.execution_id, later, Reopening())
        found = await again.run()
        assert (found["code"], found["rung"], found["model"]) == ("accepted", 1, "test:big")
        await again.close()

    in_runtime(store, tmp_path, test)


async def _some(session: Any) -> None:
    from treadle.kernel.loop import next_actions

    driver = session.driver
    action = next_actions(session.state)[0]
    if isinstance(action, act.Record):
        session.journal.emit(action.event)
    else:
        session.journal.emit(await driver.effects.perform(action, driver.host))
    await session.journal.flush()


@pytest.mark.req("FR-21")
def test_reasoning_and_signatures_are_dropped_for_another_model_and_pairs_are_kept() -> None:
    extra = (
        '{"model":"test:small","parts":[{"kind":"thinking","content":"secret thoughts","signature":"SIG","provider":"p"},'
        '{"kind":"text","size":4},{"kind":"call","call":0}],"provider":"p"}'
    )
    message = ModelResponded(
        parent=1,
        call="c",
        text="Look",
        calls=(ToolCall(id="i", name="look", args={}),),
        usage=Usage(),
        finish="tool_call",
        us=1,
        extra=extra,
    )
    same, other = response_of(message, "test:small", ["i"]), response_of(message, "test:big", ["i"])
    assert [part.part_kind for part in same.parts] == ["thinking", "text", "tool-call"]
    assert [part.part_kind for part in other.parts] == ["text", "tool-call"]
    assert "SIG" not in repr(other)


@pytest.mark.req("FR-21")
def test_every_model_of_a_ladder_is_checked_and_priced_before_anything_starts(tmp_path: Path) -> None:
    settings = Settings(environ={}, state_dir=tmp_path)
    agent = Agent(
        model="openai:small",
        base_url="http://127.0.0.1:9/v1",
        price="1,2",
        escalate_to=("openai:big", Rung(model="openai:huge", price="10,20")),
    )
    loop = Loop(name="t", act=agent, evaluate=lambda c, o: accept())
    built = build(loop, settings, SystemClock())
    assert built.settings.act_agent.ladder == ("openai:small", "openai:big", "openai:huge")
    assert built.unpriced == ""
    million = Usage(input_tokens=1_000_000)
    assert [str(model.price(million)) for model in built.parts.act.models()] == ["1", "1", "10"]
    with pytest.raises(ConfigurationError, match="Unknown provider"):
        build(
            Loop(name="t", act=Agent(model=scripted(), escalate_to=("nobody:x",)), evaluate=lambda c, o: accept()),
            settings,
            SystemClock(),
        )


@pytest.mark.parametrize(
    "wrong", [{"escalate_to": "openai:x"}, {"escalate_to": ("",)}, {"escalate_after": -1}, {"escalate_after": True}]
)
def test_a_wrong_ladder_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        Agent(model="openai:a", **wrong)
