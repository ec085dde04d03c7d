"""When the machine asks for a map: with the first message of a conversation of act, and never again in it."""

from __future__ import annotations

import pytest

from support.machine import Machine, finish
from treadle.core.events import BaselineTaken
from treadle.core.messages import MapGiven, Prompted
from treadle.core.settings import AgentSettings
from treadle.core.values import replace
from treadle.kernel import actions as act
from treadle.kernel.states import LoopState


class Mapped(Machine):
    """A machine whose looks at the workspace end in a prompt with a map."""

    def outcome(self, action: act.Action) -> object:
        if isinstance(action, act.Perceive):
            given = MapGiven(budget=action.tokens, tokens=7, us=500)
            return replace(action.prompt, text=f"{action.prompt.text} + map", map=given)
        return super().outcome(action)


def played(history: str) -> Mapped:
    machine = Mapped(turns=[[finish()], [finish()]], verdicts=["again", True])
    machine.start(act_agent=AgentSettings(map_tokens=900, history=history))
    machine.rest()
    return machine


@pytest.mark.req("AG-05")
def test_the_first_prompt_has_the_map_and_the_feedback_goes_on_from_it() -> None:
    prompts = played("continue").seen(Prompted)
    assert [prompt.text for prompt in prompts if prompt.map] == ["the task + map"]
    assert [prompt.origin for prompt in prompts if not prompt.map] == ["feedback"]


@pytest.mark.req("AG-05")
def test_a_conversation_that_begins_anew_has_a_map_of_its_own() -> None:
    prompts = played("fresh").seen(Prompted)
    assert [(prompt.origin, prompt.map is not None) for prompt in prompts] == [("task", True), ("feedback", True)]


@pytest.mark.req("AG-05")
def test_the_time_of_the_look_is_active_time_of_act() -> None:
    machine = Mapped().start(act_agent=AgentSettings(map_tokens=900))
    machine.to(act.IntendModel)
    assert (machine.state.total.us, machine.state.act.us) == (500, 500)


def test_without_a_budget_nobody_looks() -> None:
    machine = Machine().start()
    machine.to(act.IntendModel)
    assert machine.seen(Prompted)[0].map is None


def test_who_judges_gets_no_map() -> None:
    machine = Mapped(turns=[[finish()]])
    machine.start(act_agent=AgentSettings(map_tokens=900), evaluate="agent")
    while machine.state.phase == "act":
        machine.perform(machine.action())
    assert not isinstance(machine.action(), act.Perceive)


@pytest.mark.req("AG-05")
def test_the_look_comes_after_the_baseline_and_before_anything_is_asked() -> None:
    machine = Mapped().start(act_agent=AgentSettings(map_tokens=900), baseline=True)
    look = machine.to(act.Perceive)
    assert isinstance(look, act.Perceive)
    assert [type(event) for event in machine.events[1:]] == [BaselineTaken]
    assert isinstance(machine.state, LoopState)
