"""Run as a program: a workflow whose process is killed at a crash point. What it does to the world it writes to a log, a line each.

Its tasks pay: a line `paid KEY` is what a provider would have on its bill.
"""

from __future__ import annotations

import os
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio

from treadle.app.workflows import WorkflowResult, resume_workflow, run_workflow
from treadle.core.usage import Usage
from treadle.ports.callback import accept, reject
from treadle.ports.clock import NO_CRASH_POINTS, CrashPoints
from treadle.spec.workflows import LoopTask, RunTask, Task, Workflow
from treadle.testing.crash import KillAt

FEE = Usage(input_tokens=10, output_tokens=1, requests=1, cost_usd=Decimal("0.01"))
RUN = "victim-1"


class World:
    """What cannot be taken back."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def say(self, *words: object) -> None:
        with self.path.open("a") as file:
            file.write(" ".join(map(str, words)) + "\n")

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []


def workflow(world: World) -> Workflow:
    async def pay(ctx: Any) -> None:
        receipt = f"{ctx.idempotency_key}:{ctx.attempt}"
        if await ctx.intend(receipt, FEE):
            world.say("paid", receipt)
            await anyio.lowlevel.checkpoint()
            ctx.report_usage_once(receipt, FEE)

    async def work(ctx: Any) -> str:
        world.say("did", ctx.idempotency_key)
        await pay(ctx)
        return ctx.task

    async def attempt(ctx: Any, feedback: str | None) -> int:
        world.say("did", ctx.idempotency_key)
        await pay(ctx)
        return ctx.round

    async def check(ctx: Any, candidate: int) -> Any:
        world.say("did", ctx.idempotency_key)
        return accept() if candidate == 2 else reject("once more")

    inner = Workflow("inner", [Task("a", work), Task("b", work, after=("a",))])
    return Workflow(
        "victim",
        [
            Task("left", work),
            Task("right", work),
            LoopTask("loop", attempt, check, max_rounds=3, after=("left", "right")),
            RunTask("nested", inner, after=("left",)),
        ],
        concurrency=2,
    )


async def go(folder: Path, points: CrashPoints = NO_CRASH_POINTS, *, resume: bool = False) -> WorkflowResult:
    world, store = World(folder / "log"), f"sqlite:///{folder / 't.db'}"
    if resume:
        return await resume_workflow(workflow(world), RUN, store=store, points=points)
    return await run_workflow(workflow(world), store=store, execution_id=RUN, points=points)


if __name__ == "__main__":
    os.environ.setdefault("TREADLE_STATE", sys.argv[1])
    anyio.run(lambda: go(Path(sys.argv[1]), KillAt(sys.argv[2], int(sys.argv[3]))))
