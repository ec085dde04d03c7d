"""Case 18: a nested agent's question was lost on rehydration. Children are restored, and their questions with them."""

from typing import Any

import pytest

from support.deep import deep
from support.places import Place


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("depth", [1, 2])
def test_every_question_is_shown_at_the_top_after_each_reopening(kind: str, depth: int, tmp_path: Any) -> None:
    log: list[Any] = []
    place = Place(kind, tmp_path)
    asked = place.run(deep(log, depth)).questions
    assert {question["kind"] for question in asked} == {"question", "approval", "evaluation"}
    for _ in range(2):
        assert place.resume(deep(log, depth)).questions == asked
    assert log == [("act", 1)]
