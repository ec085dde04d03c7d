"""Case 16: a resume with an unknown question id was ignored in silence. It is a typed error, and nothing runs."""

from typing import Any

import pytest

from support.places import Place, X
from treadle.app.workflows import Decision
from treadle.core.errors import AnswerRefused
from treadle.spec.workflows import Asks, Task, Workflow


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize(("task", "request_id"), [("a", "a.q2"), ("a", ""), ("b", "a.q1"), ("nobody", "a.q1")])
def test_an_answer_to_no_question_is_refused(kind: str, task: str, request_id: str, tmp_path: Any) -> None:
    runs: list[int] = []

    async def work(ctx: Any) -> str:
        runs.append(ctx.attempt)
        if ctx.interaction.answer is None:
            await ctx.interaction.suspend("Well?")
        return ctx.interaction.answer.text

    flow = Workflow("w", [Task("a", work, interaction=Asks())])
    place = Place(kind, tmp_path)
    place.run(flow)
    wrong = Decision(execution_id=X, task=task, request_id=request_id, decision="answer", actor="ada", text="well")
    with pytest.raises(AnswerRefused):
        place.resume(flow, decisions=[wrong])
    assert runs == [1]
    assert [q["request_id"] for q in place.resume(flow).questions] == ["a.q1"]
