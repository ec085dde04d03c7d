"""Loop files: read with the line of every fault, written back without losing a comment."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.spec import loopyaml
from treadle.spec.loopfile import LoopFileError, beyond_flags, flags, seconds

WHOLE = """\
# how we mend things
treadle: 1
name: fix-flaky   # a short one
task: Fix the flaky test
control:
  max_rounds: 5   # five is plenty
  max_cost: 1.10
  max_time: 1h30m
  warn_at: [70, 90]
foundation:
  model: openai:some-model
  window: 32000
  compact: off
  compact_at: 0.6
verify:
  check: pytest -q
  timeout: 90s
act:
  protect: ["tests/**"]
canvas:
  nodes:
    planning: {x: 40, y: 60}
  edges:
    - {from: planning, to: executing}
    - {from: executing, to: error_recovery, kind: timeout}
"""


@pytest.mark.req("CV-21")
def test_a_file_says_what_the_flags_of_run_say():
    file = loopyaml.parse(WHOLE)
    assert flags(file) == {
        "check": "pytest -q",
        "model": "openai:some-model",
        "protect": ["tests/**"],
        "max_rounds": 5,
        "max_cost": Decimal("1.1"),
        "max_time": "1h30m",
        "map_budget": 0,
        "window": 32000,
        "compact": "off",
        "compact_at": 0.6,
    }
    assert beyond_flags(file) == {"name": "fix-flaky", "check_timeout_s": 90.0, "warn_at": (70, 90)}
    assert seconds("1h30m") == 5400


@pytest.mark.req("CV-21")
def test_a_change_on_the_canvas_keeps_comments_and_order():
    spec = loopyaml.to_json(loopyaml.parse(WHOLE))
    spec["control"]["max_rounds"] = 7
    spec["canvas"]["nodes"]["planning"]["x"] = 41.5
    del spec["verify"]["timeout"]
    expected = WHOLE.replace("max_rounds: 5 ", "max_rounds: 7 ").replace("x: 40", "x: 41.5")
    assert loopyaml.updated(WHOLE, spec) == expected.replace("  timeout: 90s\n", "")


def test_what_is_not_changed_is_written_as_it_was():
    assert loopyaml.updated(WHOLE, loopyaml.to_json(loopyaml.parse(WHOLE))) == WHOLE


@pytest.mark.req("CV-21")
@pytest.mark.parametrize(("section", "budget"), [("", 0), ("perceive:\n", None), ("perceive: {budget: 900}\n", 900)])
def test_without_perceive_there_is_no_map(section, budget):
    assert flags(loopyaml.parse(f"treadle: 1\n{section}")).get("map_budget") == budget


def test_guards_are_retuned_and_never_left_out():
    assert flags(loopyaml.parse("treadle: 1\ncontrol: {guards: {repeat: 6}}\n"))["guard"] == {"repeat": 6}


WRONG = {
    "unknown section": ("treadle: 1\nperceve: {}\n", 2, "has no key 'perceve'"),
    "unknown key": ("treadle: 1\ncontrol:\n  # a comment\n  max_round: 3\n", 4, "Did you mean 'max_rounds'?"),
    "a word for a number": ("treadle: 1\ncontrol:\n  max_rounds: many\n", 3, "expected a whole number"),
    "a truth for a number": ("treadle: 1\ncontrol:\n  max_rounds: true\n", 3, "expected a whole number"),
    "no such guard": ("treadle: 1\ncontrol:\n  guards: {nonsense: 2}\n", 3, "no guard 'nonsense'"),
    "a guard that may not be off": ("treadle: 1\ncontrol:\n  guards: {no-call: 0}\n", 3, "no-call"),
    "an unknown key of an optional section": ("treadle: 1\nperceive:\n  budgt: 2\n", 3, "Did you mean 'budget'?"),
    "no rounds": ("treadle: 1\ncontrol: {max_rounds: 0}\n", 2, ">= 1"),
    "a truth for money": ("treadle: 1\ncontrol:\n  max_cost: yes\n", 3, "amount in US dollars"),
    "negative money": ("treadle: 1\ncontrol:\n  max_cost: -2\n", 3, "above 0"),
    "endless money": ("treadle: 1\ncontrol:\n  max_cost: .inf\n", 3, "above 0"),
    "no duration": ("treadle: 1\ncontrol:\n  max_time: soon\n", 3, "no duration"),
    "no time at all": ("treadle: 1\ncontrol:\n  max_time: 0s\n", 3, "no duration above 0"),
    "an illegal edge": (
        "treadle: 1\ncanvas:\n  edges:\n    - {from: planning, to: executing}\n    - {from: completed, to: executing}\n",
        5,
        "completed does not lead to executing",
    ),
    "two who decide": ("treadle: 1\nverify:\n  check: a\n  judge: b:c\n", 4, "one of them decides"),
    "no share": ("treadle: 1\nfoundation:\n  compact_at: 80\n", 3, "<= 1"),
    "a window too small": ("treadle: 1\nfoundation:\n  window: 100\n", 3, ">= 2000"),
    "a depth that is none": ("treadle: 1\nfoundation:\n  compact: much\n", 3, "is none of off, micro, auto, full"),
    "two who act": ("treadle: 1\nfoundation: {model: a:b}\nact:\n  agent_command: c\n", 4, "one of them acts"),
    "a key twice": ("treadle: 1\nname: a\nname: b\n", 3, "duplicate key"),
    "broken": ("treadle: 1\ncontrol: [\n", 3, "no YAML"),
    "a list": ("- treadle: 1\n", 1, "mapping"),
    "empty": ("", 1, "treadle: 1"),
    "no version": ("name: a\n", 1, "treadle: 1"),
    "brackets without end": ("treadle: " + "[" * 50_000, 1, "brackets are nested"),
    "a later version": ("treadle: 2\n", 1, "treadle: can only be 1"),
    "a section that is none": ("treadle: 1\ncontrol: 7\n", 2, "expected a section"),
    "eats itself": ("treadle: 1\ncontrol: &a {max_rounds: *a}\n", 2, "no aliases"),
    "a python object": ("treadle: 1\nname: !!python/object/apply:os.system [id]\n", 2, "name"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_fault_is_named_with_its_line(case):
    text, line, words = WRONG[case]
    with pytest.raises(LoopFileError) as refusal:
        loopyaml.parse(text, name="a.yaml")
    assert f"a.yaml:{line}:" in str(refusal.value)
    assert words in str(refusal.value)


def test_all_unknown_keys_are_named_at_once():
    _, findings = loopyaml.look("treadle: 1\nfoo: 1\ncontrol: {bar: 2}\n")
    assert [(one.line, one.path) for one in findings] == [(2, "foo"), (3, "control.bar")]


def test_the_schema_for_editors_is_that_of_the_types_and_fits_the_example():
    path = Path(loopyaml.__file__).with_name("loopfile.schema.json")
    stored = json.loads(path.read_text())
    assert stored == loopyaml.schema(), "run python tools/loopfile_schema.py"
    validator = jsonschema_rs.validator_for(stored)
    assert validator.is_valid(loopyaml.to_json(loopyaml.parse(WHOLE)))
    assert not validator.is_valid({"treadle": 1, "control": {"max_round": 3}})


@given(st.text(max_size=200) | st.text(alphabet="treadle: 1\n-[]{}&*!'\"#|>x", max_size=120))
@pytest.mark.req("SE-03")
def test_any_text_is_read_or_refused(text):
    file, findings = loopyaml.look(text)
    assert file is not None or findings


@pytest.mark.req("CV-21")
def test_every_value_that_is_none_of_its_kind_is_named_at_once() -> None:
    text = "treadle: 1\ncontrol: {max_rounds: many, max_turns: true}\nact: {allow: x}\nverify: 7\n"
    _, findings = loopyaml.look(text)
    assert [one.path for one in findings] == ["control.max_rounds", "control.max_turns", "act.allow", "verify"]
    _, findings = loopyaml.look("treadle: 1\nact:\n  children:\n    a: {about: 3}\n")
    assert len(findings) == 1, "where a value cannot be found, the rest waits for another look"


def test_money_that_is_none_hides_no_other_fault() -> None:
    text = "treadle: 1\ncontrol: {max_rounds: -1, max_cost: yes, max_time: soon, warn_at: [900], nosuch: 1}\n"
    _, found = loopyaml.look(text)
    assert len(found) == 5
