"""Case 37: children had no guards and used 4.4 million tokens. Guards and budgets of a workflow hold for every loop inside it."""

from pathlib import Path
from typing import Any

import pytest

from support.driving import FEE, LOOK, PLAN, a_loop, scripted
from support.places import Place
from treadle.spec.workflows import Budget, RunTask, Workflow

FOREVER = (PLAN, *[LOOK] * 500)


def nested(model: Any, depth: int, **options: Any) -> Workflow:
    inner: Any = a_loop(model)
    for level in range(depth):
        inner = Workflow(f"level-{level}", [RunTask("down", inner, input="Do it.")])
    return Workflow("top", [RunTask("down", inner, input="Do it.")], **options)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("repeat", [3, 6])
def test_a_child_that_spins_is_stopped_by_its_parents_threshold(depth: int, repeat: int, tmp_path: Path) -> None:
    model = scripted(*FOREVER)
    result = Place("memory", tmp_path).run(nested(model, depth, guards={"repeat": repeat}))
    assert result.status == "failed"
    assert model.requests == 1 + 2 * repeat


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_child_spends_no_more_than_its_parent_has(depth: int, tmp_path: Path) -> None:
    model = scripted(*FOREVER)
    budget = Budget(max_tokens=5 * (FEE.input_tokens + FEE.output_tokens))
    result = Place("memory", tmp_path).run(nested(model, depth, guards={"repeat": 0}, budget=budget))
    assert (result.status, result.document["code"]) == ("stopped", "limit")
    assert model.requests == 5
    assert result.document["usage"]["requests"] == 5
