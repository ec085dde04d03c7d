"""What a loop carries along: effects once each and bounded, skills and rules with their coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.machine import call
from treadle.core.messages import Prompted, ToolCall, ToolResult
from treadle.core.values import replace
from treadle.effects.mounts import Mounts
from treadle.kernel.carried import (
    LONGEST_TARGET,
    MOST_EFFECTS,
    Carried,
    after_act,
    after_prompt,
    after_results,
    with_effects,
)
from treadle.kernel.continuation import frame_of
from treadle.kernel.frame import dump_frame, load_frame
from treadle.kernel.states import LoopState
from treadle.kernel.view import View
from treadle.memory.rules import RuleBook


@pytest.mark.req("FR-14")
def test_ten_thousand_calls_on_fifty_files_are_about_fifty_entries_in_a_small_frame() -> None:
    carried = Carried()
    for number in range(10_000):
        effect = f"fs.{'write' if number % 2 else 'read'} src/package/module_{number % 50}.py"
        result = ToolResult(id="c", content="", status="error" if number % 3 else "ok", effects=(effect,))
        carried = after_results(carried, [call("edit_file")], [result], number, act=True)
    assert len(carried.effects) == 50
    state = LoopState(input_json="1", carried=carried)
    stored = dump_frame(frame_of(state), max_iterations=None)
    assert len(stored) < 64 * 1024
    assert len(load_frame(stored, max_iterations=None).observed_effects) == 50


@pytest.mark.req("FR-14")
@given(st.lists(st.tuples(st.sampled_from(["fs.read", "fs.write", "odd.kind"]), st.text(max_size=300)), max_size=400))
def test_effects_are_bounded_whatever_is_touched(seen: list[tuple[str, str]]) -> None:
    effects = with_effects(Carried(), [f"{kind} {target}" for kind, target in seen]).effects
    assert len(effects) <= MOST_EFFECTS
    assert len(set(effects)) == len(effects)
    assert all(len(effect) <= LONGEST_TARGET for effect in effects)


@pytest.mark.req("FR-14")
def test_too_many_neighbours_become_their_folder_and_stay_covered() -> None:
    carried = with_effects(Carried(), ["process.spawn pytest", *(f"fs.write out/{n}.txt" for n in range(1000))])
    assert carried.effects[0] == "process.spawn pytest"
    assert "fs.write out/**" in carried.effects
    assert len(carried.effects) == 2
    assert with_effects(carried, ["fs.write out/new.txt"]) is carried
    assert "fs.read out/new.txt" in with_effects(carried, ["fs.read out/new.txt"]).effects


@pytest.mark.req("FR-14")
def test_unknown_kinds_are_kept_verbatim_and_the_workspace_has_the_last_word() -> None:
    carried = with_effects(Carried(), ["db.migrate users"])
    carried = after_act(carried, ["a.py", "b.py"], ["b.py"])
    assert carried.effects == ("db.migrate users", "fs.write a.py", "fs.delete b.py")


@pytest.mark.req("FR-14")
@pytest.mark.parametrize("status", ["ok", "error", "unknown"])
def test_what_a_call_touched_counts_however_it_ended(status: Any) -> None:
    result = ToolResult(id="c", content="", status=status, effects=("network.request example.org",))
    assert after_results(Carried(), [call("fetch")], [result], 3, act=True).effects == result.effects


@pytest.mark.req("FR-13")
def test_a_skill_has_the_coordinates_of_its_last_mounting() -> None:
    asked = ToolCall(id="c7", name="activate_skill", args={"name": "pdf"})
    failed = after_results(Carried(), [asked], [ToolResult(id="c7", content="", status="error")], 4, act=True)
    assert failed.skills == {}
    carried = after_results(Carried(), [asked], [ToolResult(id="c7", content="body")], 5, act=True)
    assert (carried.skills["pdf"].call_id, carried.skills["pdf"].message) == ("c7", 5)
    again = after_results(carried, [asked], [ToolResult(id="c7", content="body")], 9, act=True)
    assert again.skills["pdf"].message == 5  # a second call loads nothing new
    assert after_results(Carried(), [asked], [ToolResult(id="c7", content="b")], 5, act=False).skills == {}
    mounted = after_prompt(carried, Prompted(parent=1, text="t", mounts=("skill:pdf", "rule:AGENTS.md")), 12)
    assert (mounted.skills["pdf"].call_id, mounted.skills["pdf"].message) == ("", 12)
    assert mounted.rules == {"AGENTS.md": 12}


@pytest.mark.req("FR-15")
def test_a_rule_is_told_once_and_again_only_where_a_compaction_has_dropped_it(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "AGENTS.md").write_text(f"Rule of {folder}.\n")
    mounts, view, state = Mounts({}, RuleBook(tmp_path)), View(), LoopState()

    def due() -> tuple[str, ...]:
        nonlocal state
        told = mounts.due(state, view)
        if told is None:
            return ()
        number = len(view.messages) + 1
        view.append(number, told)
        state = replace(state, carried=after_prompt(state.carried, told, number))
        return told.mounts

    def touch(path: str) -> None:
        nonlocal state
        state = replace(state, carried=with_effects(state.carried, [f"fs.write {path}"]))

    assert due() == ()
    touch("a/x.py")
    assert due() == ("rule:a/AGENTS.md",)
    touch("a/y.py")
    assert due() == ()
    touch("b/x.py")
    assert due() == ("rule:b/AGENTS.md",), "another rule is told, whatever was told before"
    view.reset([(1, view.messages[0], b"")])
    assert due() == ("rule:b/AGENTS.md",), "the branch has only the first left"
    assert due() == ()
