"""A workflow whose questions are asked several executions down."""

from __future__ import annotations

from typing import Any

from treadle.spec.definitions import Loop, Person
from treadle.spec.workflows import ApprovalTask, Asks, RunTask, Task, Workflow


def deep(log: list[Any], depth: int) -> Workflow:
    """A question, a gate and a loop that a person evaluates, `depth` workflows down."""

    async def act(ctx: Any, feedback: str | None) -> str:
        log.append(("act", ctx.round))
        return f"draft {ctx.round}"

    async def ask(ctx: Any) -> str:
        if ctx.interaction.answer is None:
            await ctx.interaction.suspend("Which?", choices=("red", "blue"))
        log.append(("told", ctx.interaction.answer.text))
        return ctx.interaction.answer.text

    inner = Workflow(
        "inner",
        [
            Task("ask", ask, interaction=Asks()),
            ApprovalTask("gate", "Go?"),
            RunTask("loop", Loop(name="l", act=act, evaluate=Person(), max_rounds=3), "the task"),
        ],
    )
    for level in range(depth):
        inner = Workflow(f"level-{level}", [RunTask("down", inner)])
    return inner
