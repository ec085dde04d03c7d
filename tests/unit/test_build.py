"""What is made of a definition: its settings, its fingerprint, and what is refused before anything starts."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, Command, Judge, Loop, Person, accept
from treadle.app.build import Built, build, with_task
from treadle.core.errors import ConfigurationError, DefinitionError
from treadle.core.settings import Guards, Limits, Policy
from treadle.runtime.clock import SystemClock
from treadle.settings import Settings, load_settings
from treadle.testing import ScriptedModel, Turn

MODEL = ScriptedModel([Turn(text="x")])


def built(tmp_path: Path, **changes: Any) -> Built:
    agent = {
        k: changes.pop(k) for k in ("model", "instructions", "max_turns", "max_turns_per_act", "price") if k in changes
    }
    loop = Loop(
        **(
            {
                "name": "fix",
                "act": Agent(**({"model": MODEL} | agent)),
                "evaluate": Command(command="true"),
                "workspace": tmp_path,
            }
            | changes
        )
    )
    return build(loop, Settings(environ={}, state_dir=tmp_path / "state"), SystemClock())


@pytest.mark.req("FR-02")
def test_the_role_does_not_depend_on_the_model(tmp_path: Path) -> None:
    other = ScriptedModel([Turn(text="x")], name="scripted:other")
    assert built(tmp_path).settings.role_key == built(tmp_path, model=other).settings.role_key == "fix.act"
    named = built(tmp_path, act=Agent(model=MODEL, role="fixer"))
    assert named.settings.role_key == "fixer"


@pytest.mark.req("FR-09")
def test_each_actor_has_the_policy_that_it_was_given_and_the_loop_limits_of_its_own(tmp_path: Path) -> None:
    act = Agent(model=MODEL, max_turns=3, max_cost_usd=Decimal("0.1"), max_time_s=4.0)
    judge = Agent(model=MODEL, max_turns=5, max_cost_usd=Decimal("0.2"), max_time_s=6.0)
    limits: Any = {"max_turns": 7, "max_cost_usd": Decimal("0.3"), "max_time_s": 8.0, "max_tokens": 9}
    loop = Loop(name="fix", act=act, evaluate=judge, workspace=tmp_path, **limits)
    settings = build(loop, Settings(environ={}, state_dir=tmp_path / "state"), SystemClock()).settings
    assert settings.act_policy == Policy(max_turns=3, max_cost_usd=Decimal("0.1"), max_duration_us=4_000_000)
    assert settings.evaluate_policy == Policy(max_turns=5, max_cost_usd=Decimal("0.2"), max_duration_us=6_000_000)
    total = Limits(max_turns=7, max_cost_usd=Decimal("0.3"), max_duration_us=8_000_000, max_tokens=9)
    assert settings.limits == total


@pytest.mark.req("AG-11")
def test_a_loop_has_thresholds_of_its_own_for_its_guards(tmp_path: Path) -> None:
    guards = built(tmp_path, guards={"repeat": 9}).settings.guards
    assert (guards.repeat, guards.no_call) == (9, Guards().no_call)


@pytest.mark.req("AG-09")
@pytest.mark.parametrize(
    ("said", "task", "must", "required"),
    [
        (None, "Fix the bug", True, False),
        (None, "Explain the bug", False, False),
        (False, "Fix the bug", False, False),
        (True, "Explain the bug", True, True),
    ],
)
def test_whether_a_task_must_change_something_is_decided_from_its_words_or_said(
    tmp_path: Path, said: bool | None, task: str, must: bool, required: bool
) -> None:
    settings = with_task(built(tmp_path).settings, said, task)
    assert (settings.must_change, settings.edit_required) == (must, required)


@pytest.mark.req("FR-25")
@pytest.mark.parametrize(
    "changes",
    [
        {"max_rounds": 3},
        {"max_cost_usd": Decimal(9)},
        {"max_time_s": 5.0},
        {"max_tokens": 5},
        {"max_turns": 7},
        {"max_turns_per_act": 7},
        {"price": "1,2"},
        {"model": ScriptedModel([Turn(text="x")], name="scripted:other")},
    ],
)
def test_limits_thresholds_prices_and_the_model_are_no_part_of_the_fingerprint(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    assert built(tmp_path, **changes).fingerprint == built(tmp_path).fingerprint


@pytest.mark.req("FR-25")
@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"instructions": "Otherwise."}, "act prompt"),
        ({"evaluate": Command(command="false")}, "evaluate"),
        ({"evaluate": Person()}, "evaluate"),
        ({"version": "2"}, "version"),
        ({"input_type": int}, "input schema"),
        ({"act": Agent(model=MODEL, tools=(lambda: None,), builtin_tools=False)}, "act tools"),
    ],
)
def test_prompts_schemas_tools_check_and_version_are(tmp_path: Path, changes: dict[str, Any], part: str) -> None:
    def look() -> str:
        """Looks."""
        return ""

    if "act" in changes:
        changes = {"act": replace(changes["act"], tools=(look,))}
    was, now = built(tmp_path).fingerprint, built(tmp_path, **changes).fingerprint
    assert [name for name in sorted(set(was) | set(now)) if was.get(name) != now.get(name)] == [part]


@pytest.mark.req("FR-11")
@pytest.mark.parametrize(
    "changes",
    [
        {"max_rounds": 0},
        {"max_rounds": True},
        {"max_rounds": 1.0},
        {"max_tokens": -1},
        {"max_cost_usd": Decimal("NaN")},
        {"max_cost_usd": Decimal(-1)},
        {"max_cost_usd": 1.5},
        {"max_time_s": 0.0},
        {"max_time_s": float("inf")},
        {"name": " "},
        {"evaluate": " "},
        {"max_turns": 0},
        {"max_turns_per_act": 0},
    ],
)
def test_an_ill_defined_loop_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        built(tmp_path, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"workspace": "/does/not/exist"},
        {"evaluate": "no-such-command --x"},
        {"act": Command(command="no-such-agent")},
        {"model": "openai:gpt-5-mini"},
        {"model": "nobody:gpt"},
        {"model": "gpt"},
    ],
)
def test_what_cannot_run_is_refused_before_anything_starts(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        built(tmp_path, **changes)


@pytest.mark.req("SE-02", "AG-29")
def test_evaluators_get_no_tool_that_changes_anything_and_act_none_that_judges(tmp_path: Path) -> None:
    made = built(tmp_path, evaluate=Judge(model=MODEL))
    act, evaluate = made.parts.act, made.parts.evaluate
    assert {tool.kind for tool in evaluate.toolset.tools()} == {"read", "verdict"}
    assert "verdict" not in {tool.kind for tool in act.toolset.tools()}
    assert {"write_file", "edit_file", "run_command", "finish", "ask_person", "read_output"} <= {
        tool.name for tool in act.toolset.tools()
    }


def test_a_function_may_evaluate_without_a_workspace(tmp_path: Path) -> None:
    made = built(tmp_path, workspace=None, evaluate=lambda ctx, output: accept())
    assert not made.settings.baseline
    with pytest.raises(DefinitionError, match="workspace"):
        built(tmp_path, workspace=None)


@pytest.mark.req("SE-02", "SE-01")
def test_a_workspaces_own_file_can_neither_send_the_key_elsewhere_nor_run_anything(tmp_path: Path) -> None:
    (tmp_path / ".treadle").mkdir()
    file = tmp_path / ".treadle" / "config.toml"
    environ = {"TREADLE_CONFIG": str(tmp_path / "none.toml")}
    file.write_text('model = "openai:x"\nmax_rounds = 3\n')
    assert load_settings(tmp_path, environ).defaults == {"model": "openai:x", "max_rounds": 3}
    for line in (
        'base_url = "http://elsewhere"',
        'notify = "touch x"',
        'store = "sqlite:///x"',
        "surprise = 1",
        "=",
        "\0",
    ):
        file.write_text(line)
        with pytest.raises(ConfigurationError, match=r"config\.toml"):
            load_settings(tmp_path, environ)


def test_the_environment_wins_over_both_files(tmp_path: Path) -> None:
    (tmp_path / "user.toml").write_text('model = "a:user"\nstore = "sqlite:////user.db"\n')
    environ = {"TREADLE_CONFIG": str(tmp_path / "user.toml"), "TREADLE_MODEL": "a:env", "TREADLE_STATE": str(tmp_path)}
    settings = load_settings(None, environ)
    assert settings.defaults["model"] == "a:env"
    assert settings.store_url == "sqlite:////user.db"
    assert (
        load_settings(None, {"TREADLE_STATE": "/s", "TREADLE_CONFIG": "/none"}).store_url == "sqlite:////s/treadle.db"
    )
