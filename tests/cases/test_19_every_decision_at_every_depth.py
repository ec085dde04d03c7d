"""Case 19: edit and reject decisions on a child failed, only approve worked. All decisions work at all depths."""

from typing import Any

import pytest

from support.deep import deep
from support.places import Place, X
from treadle.app.workflows import Decision


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("depth", [1, 2])
def test_every_question_is_shown_at_the_top_after_each_reopening_and_every_decision_works(
    kind: str, depth: int, tmp_path: Any
) -> None:
    log: list[Any] = []
    place = Place(kind, tmp_path)
    result = place.run(deep(log, depth))

    def decide(prompt: str, decision: str, text: str) -> Decision:
        (found,) = [q for q in result.questions if q["prompt"].startswith(prompt)]
        return Decision(
            execution_id=X, task="down", request_id=found["request_id"], decision=decision, actor="ada", text=text
        )

    assert len(result.questions) == 3
    assert place.resume(deep(log, depth)).questions == result.questions
    result = place.resume(deep(log, depth), decisions=[decide("Is this done", "reject", "shorter")])
    assert len(result.questions) == 3
    both = [decide("Which", "answer", "blue"), decide("Is this done", "approve", "")]
    result = place.resume(deep(log, depth), decisions=both)
    assert [q["prompt"] for q in result.questions] == ["Go?"]
    result = place.resume(deep(log, depth), decisions=[decide("Go", "approve", "")])
    assert result.status == "done"
    assert log.count(("told", "blue")) == 1
    assert [entry for entry in log if entry[0] == "act"] == [("act", 1), ("act", 2)]
