"""Case 14: one question inside a loop was asked again exponentially. One answer is consumed once, by one question."""

from typing import Any

import pytest

from support.places import Place, X
from treadle.app.workflows import Decision
from treadle.ports.callback import accept, reject
from treadle.spec.workflows import Asks, LoopTask, Workflow

ROUNDS = 5


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_loop_that_asks_each_round_asks_exactly_once_a_round(kind: str, tmp_path: Any) -> None:
    asked: list[int] = []
    heard: list[str] = []

    async def attempt(ctx: Any, feedback: str | None) -> int:
        answer = ctx.interaction.answer
        if answer is None:
            asked.append(ctx.round)
            await ctx.interaction.suspend(f"round {ctx.round}?")
        heard.append(answer.text)
        return ctx.round

    async def check(ctx: Any, candidate: int) -> Any:
        return accept() if candidate == ROUNDS else reject("again")

    flow = Workflow("w", [LoopTask("a", attempt, check, max_rounds=ROUNDS, interaction=Asks())])
    place = Place(kind, tmp_path)
    result = place.run(flow)
    for number in range(1, ROUNDS + 1):
        (question,) = result.questions
        assert question["prompt"] == f"round {number}?"
        answer = Decision(
            execution_id=X,
            task="a",
            request_id=question["request_id"],
            decision="answer",
            actor="ada",
            text=f"answer {number}",
        )
        result = place.resume(flow, decisions=[answer])
    assert result.status == "done"
    assert asked == [1, 2, 3, 4, 5]
    assert heard == [f"answer {n}" for n in asked]
