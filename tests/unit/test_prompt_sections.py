"""The system prompt of a driven loop: a static part that never changes, a dynamic one that may, and a cache key that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.driving import in_runtime
from support.reading import TASK, Scribe, read_page, records
from treadle import Agent, Loop, Section, accept, reject
from treadle.app.runtime import Runtime
from treadle.context.prompt import StaticSectionChanged, SystemPrompt, static_prompt
from treadle.core.events import ModelIntended
from treadle.core.messages import ToolCall
from treadle.ports.model import ToolDef
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset
from treadle.telemetry.said import describe

RULES = Section("house rules", "Use tabs.")
TURN = Section("progress", lambda state: f"Round {state.round}, turn {state.agent.turn}.", kind="dynamic")


def drive(tmp_path: Path, model: Scribe, test: Any = None, *, rounds: int = 1, **agent: Any) -> list[ModelIntended]:
    """Runs it; what was intended of the model's requests."""
    found: list[ModelIntended] = []
    verdicts = iter([reject("again")] * (rounds - 1) + [accept()])

    async def run(runtime: Runtime) -> None:
        act = Agent(**{"model": model, "tools": (read_page,), **agent})
        loop = Loop(name="test", act=act, evaluate=lambda context, output: next(verdicts))
        session = await runtime.start(loop, TASK)
        assert (await session.run())["code"] == "accepted"
        events = await records(runtime, session.execution_id)
        found.extend(event for event in events if isinstance(event, ModelIntended))
        await session.close()

    in_runtime("memory:", tmp_path, run)
    return found


def systems(model: Scribe) -> list[list[str]]:
    return [[m["content"] for m in body["messages"] if m["role"] == "system"] for body in model.turns]


@pytest.mark.req("AG-14")
def test_the_static_part_is_the_same_bytes_in_every_turn_and_the_dynamic_part_follows_it(tmp_path: Path) -> None:
    model = Scribe(40, says="I read on. " * 25)
    intended = drive(tmp_path, model, rounds=3, sections=(TURN, RULES))
    seen = systems(model)
    assert len(seen) == 43
    assert len({static for static, _ in seen}) == 1
    assert seen[0][0].endswith("\n\nUse tabs.")
    assert [dynamic for _, dynamic in seen[:2]] == ["Round 1, turn 0.", "Round 1, turn 1."]
    assert seen[-1][1].startswith("Round 3")
    assert model.summaries  # a compaction changes nothing of it
    assert [event.prompt is not None for event in intended] == [True] + [False] * 42


@pytest.mark.req("AG-14")
def test_state_in_a_static_section_is_an_error_where_warnings_are_and_its_first_text_is_kept() -> None:
    prompt = SystemPrompt("You mend code.", (Section("leak", lambda state: f"Turn {state}."),))
    assert prompt.static(1) == "You mend code.\n\nTurn 1."
    with pytest.raises(StaticSectionChanged, match="'leak'"):  # this suite makes errors of warnings
        prompt.static(2)
    with pytest.warns(StaticSectionChanged, match="make it dynamic"):
        assert prompt.static(2) == "You mend code.\n\nTurn 1."


@pytest.mark.req("AG-14")
def test_at_run_time_a_leaking_section_is_warned_of_and_the_cached_prefix_holds(tmp_path: Path) -> None:
    model = Scribe(3)
    with pytest.warns(StaticSectionChanged):
        intended = drive(tmp_path, model, sections=(Section("leak", lambda state: f"Turn {state.agent.turn}."),))
    assert len({text for (text,) in systems(model)}) == 1
    assert [event.prompt is None for event in intended] == [False, True, True, True]


@pytest.mark.req("AG-14")
def test_a_changed_catalogue_starts_a_new_cache_key_that_is_logged(tmp_path: Path) -> None:
    model = Scribe(4)
    skills = Section(
        "skills", lambda state: "mending" + (", sailing" if state.agent.turn > 1 else ""), kind="catalogue"
    )
    facts = [event.prompt for event in drive(tmp_path, model, sections=(skills,))]
    assert [found.changed for found in facts if found] == [(), ("static prompt",)]
    assert facts[0]
    assert facts[2]
    assert facts[0].key != facts[2].key
    assert facts[0].tools == facts[2].tools


OWN: tuple[tuple[str, Any], ...] = (("read_page", "read"), ("finish", "finish"))


class Growing(Toolset):
    """Has one more tool once it has been used, and from then on lists them in another order each time."""

    def __init__(self) -> None:
        self.known = [ToolDef(name, "Does it.", {"type": "object"}, kind) for name, kind in OWN]

    def tools(self) -> tuple[ToolDef, ...]:
        return tuple(self.known)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        if len(self.known) == len(OWN):
            self.known.append(ToolDef("another", "Does more.", {"type": "object"}, "read"))
        else:
            self.known.reverse()
        return ToolOutput("a page")


@pytest.mark.req("AG-14")
def test_a_changed_tool_list_starts_a_new_cache_key_that_is_logged_and_another_order_does_not(tmp_path: Path) -> None:
    intended = drive(tmp_path, Scribe(4), tools=(Growing(),), builtin_tools=False)
    facts = [event.prompt for event in intended]
    assert [found.changed if found else None for found in facts] == [(), ("tools",), None, None, None]
    assert "(tools changed)" in describe(intended[1])


@pytest.mark.req("AG-29")
def test_what_is_protected_is_told_to_whoever_acts_and_not_to_who_judges() -> None:
    assert "Protected, cannot be changed: tests/*, ci.yaml" in static_prompt("act", protected=("tests/*", "ci.yaml"))
    assert "Protected" not in static_prompt("evaluate", protected=("tests/*",))
