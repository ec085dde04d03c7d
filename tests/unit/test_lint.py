"""Loop files against the patterns: an input that nothing produces is refused with its line, pitfalls are warned of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.spec.lint import lint

COMMAND = "treadle: 1\ntask: t\ncontrol: {max_time: 1h}\nact:\n  agent_command: ./agent\n"
MODEL = "treadle: 1\ntask: t\nperceive:\nfoundation: {model: a:b}\ncontrol:\n  max_time: 1h\n"


def found(text: str, severity: str) -> list[tuple[int, str, str]]:
    return [(one.finding.line, one.finding.path, one.pattern) for one in lint(text) if one.severity == severity]


@pytest.mark.parametrize(
    "text", [COMMAND, MODEL, MODEL + "  plan: true\n", MODEL + "verify: {check: make, timeout: 9s}\n"]
)
def test_a_sound_file_has_nothing_against_it(text: str) -> None:
    assert lint(text) == ()


UNPRODUCED = {
    "turns of a command": (
        "control.max_turns",
        "treadle: 1\ncontrol:\n  max_turns: 5\nact: {agent_command: a}\n",
        3,
        "agent-03",
    ),
    "a word before its wall": (
        "control.warn_at",
        "treadle: 1\ncontrol:\n  warn_at: [80]\nact: {agent_command: a}\n",
        3,
        "agent-04",
    ),
    "a map for a command": ("perceive", COMMAND + "perceive:\n", 6, "agent-05"),
    "a map with a budget": ("perceive", COMMAND + "perceive: {budget: 900}\n", 6, "agent-05"),
    "a guard over its calls": (
        "control.guards.repeat",
        "treadle: 1\ncontrol:\n  guards:\n    same-tree: 2\n    repeat: 6\nact: {agent_command: a}\n",
        5,
        "agent-11",
    ),
    "its window": ("foundation.window", COMMAND + "foundation:\n  window: 8000\n", 7, "agent-13"),
    "how deep it is compacted": ("foundation.compact", COMMAND + "foundation:\n  compact: auto\n", 7, "agent-12"),
    "its prompt": ("foundation.instructions", COMMAND + "foundation:\n  instructions: be brief\n", 7, "agent-14"),
    "a batch of calls": ("act.on_invalid", COMMAND + "  on_invalid: stop_batch\n", 6, "agent-15"),
    "servers for it": ("act.mcp", COMMAND + '  mcp: ["time=mcp-time"]\n', 6, "agent-15"),
    "leases for it": ("act.allow", COMMAND + '  allow: ["fs.write:src/**"]\n', 6, "agent-15"),
    "a plan of a command": ("control.plan", "treadle: 1\ncontrol:\n  plan: true\nact: {agent_command: a}\n", 3, ""),
    "time for no check": ("verify.timeout", MODEL + "verify:\n  timeout: 9s\n", 8, ""),
    "no ladder": ("foundation.escalate_after", "treadle: 1\nfoundation:\n  escalate_after: 1\n", 3, ""),
    "nothing to ask for": ("act.may_ask", MODEL + 'act:\n  may_ask: ["fs.write"]\n', 8, ""),
    "a price of nobody": (
        "foundation.price",
        "treadle: 1\nact: {agent_command: a}\nfoundation:\n  price: 1,2\n",
        4,
        "",
    ),
    "a state that nothing leads to": (
        "canvas.edges.0",
        MODEL + "canvas:\n  edges:\n    - {from: executing, to: completed}\n",
        9,
        "agent-02",
    ),
    "errors that nothing produces": (
        "canvas.edges.1",
        MODEL
        + "canvas:\n  edges:\n    - {from: planning, to: executing}\n    - {from: executing, to: error_recovery, kind: x}\n",
        10,
        "agent-09",
    ),
    "an illegal way": ("canvas.edges.0", MODEL + "canvas:\n  edges:\n    - {from: failed, to: executing}\n", 9, ""),
    "an unknown key": ("control.max_round", MODEL + "  max_round: 3\n", 7, ""),
}


@pytest.mark.parametrize("case", UNPRODUCED)
def test_an_input_that_nothing_produces_is_refused_with_its_line(case: str) -> None:
    path, text, line, pattern = UNPRODUCED[case]
    errors = found(text, "error")
    assert errors == [(line, path, pattern)]


def test_what_a_command_can_do_without_a_model_is_no_fault() -> None:
    assert (
        found(COMMAND.replace("{max_time: 1h}", "{guards: {same-tree: 2}, max_cost: 2}") + "  protect: [a]\n", "error")
        == []
    )


PITFALLS = {
    "no task": (MODEL.replace("task: t\n", "name: n\n"), 1, "task", "agent-01"),
    "fewer turns than one act's": (
        MODEL + "  max_turns: 9\n  max_turns_per_act: 10\n",
        7,
        "control.max_turns",
        "agent-03",
    ),
    "told with the last turn": (MODEL + "  warn_at: [97, 99]\n", 7, "control.warn_at", "agent-04"),
    "never told": (MODEL + "  warn_at: []\n", 7, "control.warn_at", "agent-04"),
    "no room to be told": (MODEL + "  max_turns_per_act: 2\n", 7, "control.max_turns_per_act", "agent-04"),
    "no map": (MODEL.replace("perceive:\n", "name: n\n"), 1, "perceive", "agent-05"),
    "a plan without a turn": (
        MODEL + "  plan: true\n  max_turns_per_act: 1\n",
        8,
        "control.max_turns_per_act",
        "agent-07",
    ),
    "a guard at the first thought": (MODEL + "  guards: {no-call: 1}\n", 7, "control.guards.no-call", "agent-11"),
    "a guard that is off": (MODEL + "  guards: {repeat: 0}\n", 7, "control.guards.repeat", "agent-11"),
    "a guard that comes late": (MODEL + "  guards: {repeat: 500}\n", 7, "control.guards.repeat", "agent-11"),
    "no summaries": (MODEL.replace("a:b", "a:b, compact: off"), 4, "foundation.compact", "agent-12"),
    "a full window": (MODEL.replace("a:b", "a:b, compact_at: 0.99"), 4, "foundation.compact_at", "agent-13"),
    "a turn in the fixed part": (
        MODEL.replace("a:b", "a:b, instructions: 'It is {{now}}.'"),
        4,
        "foundation.instructions",
        "agent-14",
    ),
    "half of a batch": (MODEL + "act: {on_invalid: run_valid}\n", 7, "act.on_invalid", "agent-15"),
    "no limit": (MODEL.replace("max_time: 1h", "max_rounds: 3"), 5, "control", "agent-17"),
}


@pytest.mark.parametrize("case", PITFALLS)
def test_a_pitfall_is_warned_of_with_its_line_and_its_pattern(case: str) -> None:
    text, line, path, pattern = PITFALLS[case]
    assert found(text, "error") == []
    assert (line, path, pattern) in found(text, "warning")


def test_usual_values_are_no_pitfall() -> None:
    usual = (
        "  guards: {no-call: 3, repeat: 4, oscillation: 2, recovery: 8}\n  warn_at: [80, 90]\n  max_turns_per_act: 60\n"
    )
    assert lint(MODEL + usual + "act: {on_invalid: stop_batch}\n") == ()


@pytest.mark.req("SE-03")
@given(st.text(max_size=200) | st.text(alphabet="treadle: 1\nacogs.-[]{}&*!'\"#|>x", max_size=120))
def test_any_text_is_linted(text: str) -> None:
    for one in lint(text):
        assert one.finding.line >= 1
