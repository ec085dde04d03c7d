"""The patterns as data: cards and loop objects that say what is so, held against the code, the tests and the loop file."""

from __future__ import annotations

import ast
import runpy
from importlib import import_module
from pathlib import Path

import pytest

from treadle.core.errors import InputError
from treadle.spec.lint import at_work, produced
from treadle.spec.loopyaml import parse, schema
from treadle.spec.patterns import OUTSIDE, card, cards, objects
from treadle.spec.pitfalls import PITFALLS

ROOT = Path(__file__).parents[2]
OBJECTS = (
    "AgentState AgentLoop InvalidStateTransition Plan PlanStep StepStatus PlanModeState PlanModeManager TaskCheckpoint"
    " Budget Message ToolCall ToolErrorKind FailureMode FailureKind RunOutcome ContextMap ContextModality ContextCompressor"
    " CompressionOrchestrator AutoCompactManager SystemPromptBuilder ProgressEvent EvolutionEvent ThroughputSnapshot"
    " SessionLogEvent LastToolOutput TurnArtifact GuardCounters"
).split()
EVERYTHING = parse("treadle: 1\ntask: t\nperceive:\ncontrol: {plan: true}\n")


def test_there_are_twenty_each_with_an_id_of_its_own() -> None:
    assert [one.id for one in cards()] == [f"agent-{number:02}" for number in range(1, 21)]
    assert len({one.name for one in cards()}) == 20
    assert card("agent-07") is card("7") is card("07") is cards()[6]
    for wrong in ("agent-21", "0", "seven", ""):
        with pytest.raises(InputError):
            card(wrong)


@pytest.mark.parametrize("one", cards(), ids=lambda one: one.id)
def test_the_test_of_a_card_is_there_and_shows_its_requirement(one) -> None:
    file, _, name = one.test.partition("::")
    tree = ast.parse((ROOT / file).read_text())
    (found,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    marks = [ast.unparse(mark) for mark in found.decorator_list]
    assert any("pytest.mark.req(" in mark and repr(one.requirement) in mark for mark in marks), marks


@pytest.mark.req("AG-30")
def test_each_loop_object_is_there_and_the_type_that_does_its_work_exists() -> None:
    assert list(objects()) == OBJECTS
    for name, one in objects().items():
        for path in (one.type, *one.others):
            module, _, attribute = path.partition(":")
            assert hasattr(import_module(module), attribute), f"{name}: {path}"


@pytest.mark.req("AG-30")
def test_the_page_of_loop_objects_says_what_the_data_say() -> None:
    pages = runpy.run_path(str(ROOT / "tools" / "docs.py"))["pages"]()
    (page,) = [path for path in pages if path.name == "loop-objects.md"]
    assert page.read_text() == pages[page], "run python tools/docs.py"
    rows = [line.split("|")[1].strip() for line in page.read_text().splitlines() if line.startswith("| ")]
    assert rows[2:] == OBJECTS


def test_every_input_and_output_is_an_object_and_is_produced_when_everything_is_at_work() -> None:
    names = {name for one in cards() for name in (*one.inputs, *one.outputs)}
    assert names <= {*objects(), *OUTSIDE}
    assert all(at_work(one, EVERYTHING) for one in cards())
    assert produced(EVERYTHING) >= {*objects(), *OUTSIDE}


def test_keys_of_cards_are_keys_of_the_loop_file() -> None:
    defs = schema()["$defs"]
    sections = {key: defs[f"{key.title()}"] for key in ("control", "foundation", "perceive", "act", "verify")}
    for one in cards():
        for key in one.keys:
            section, _, rest = key.partition(".")
            assert section in sections
            assert not rest or rest.split(".")[0] in sections[section]["properties"], key


def test_pitfalls_are_those_of_cards() -> None:
    assert set(PITFALLS) <= {one.id for one in cards()}
    assert not [row for rule in PITFALLS.values() for row in rule(EVERYTHING) if row[0] != "control"]
