"""Run as a program: a workflow whose process is killed at a crash point. What it does to the world it writes to a log, a line each.

Its tasks pay: a line `paid KEY` is what a provider would have on its bill. `whole` has besides a gate, a question, a quota, a retry and
a nested Loop whose act and check pay.
"""

from __future__ import annotations

import os
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio

from treadle.app.workflows import Decision, WorkflowResult, resume_workflow, run_workflow
from treadle.core.errors import UnknownExecution
from treadle.core.usage import Usage
from treadle.ports.callback import accept, reject
from treadle.ports.clock import NO_CRASH_POINTS, CrashPoints
from treadle.ports.task import QuotaReached
from treadle.spec.definitions import Loop
from treadle.spec.workflows import ApprovalTask, Asks, Budget, LoopTask, OnQuota, Retry, RunTask, Task, Workflow
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


def whole(world: World) -> Workflow:
    """Everything that a workflow can wait for or go wrong by."""
    base = workflow(world)

    async def pay(ctx: Any) -> None:
        receipt = f"{ctx.idempotency_key}:{ctx.attempt}"
        if await ctx.intend(receipt, FEE):
            world.say("paid", receipt)
            await anyio.lowlevel.checkpoint()
            ctx.report_usage_once(receipt, FEE)

    async def flaky(ctx: Any) -> str:
        world.say("did", ctx.idempotency_key)
        await pay(ctx)
        if not any(line == "failed once" for line in world.lines()):
            world.say("failed once")
            raise ConnectionError("flaky")
        return "flaky"

    async def limited(ctx: Any) -> str:
        world.say("did", ctx.idempotency_key)
        if ctx.quota is None and "limited once" not in world.lines():
            world.say("limited once")
            raise QuotaReached("used up", reset_at_us=time.time_ns() // 1000 + 50_000)
        await pay(ctx)
        return "limited"

    async def asking(ctx: Any) -> Any:
        world.say("did", ctx.idempotency_key)
        answer = ctx.interaction.answer
        if answer is None:
            await ctx.interaction.save({"step": 1})
            await ctx.interaction.suspend("Which?", {"step": 2})
            raise AssertionError
        await pay(ctx)
        world.say("used", answer.text, ctx.interaction.state["step"])
        return answer.text

    async def act(ctx: Any, feedback: str | None) -> int:
        world.say("did", ctx.idempotency_key)
        await pay(ctx)
        return ctx.round

    async def evaluate(ctx: Any, output: int) -> Any:
        await pay(ctx)
        return accept() if output == 2 else reject("once more")

    inner = Loop(name="inner-loop", act=act, evaluate=evaluate, max_rounds=3)
    more = [
        Task("flaky", flaky, retry=Retry(attempts=5, delay_s=0)),
        Task("limited", limited),
        RunTask("inner", inner, input="do it", after=("flaky",)),
        Task("asking", asking, after=("limited",), interaction=Asks()),
        ApprovalTask("gate", "Ship it?", after=("asking", "inner"), actors=("ada",)),
        Task("last", base.tasks[0].perform, after=("gate",)),  # type: ignore[union-attr]
    ]
    return Workflow(
        "whole", [*base.tasks, *more], concurrency=3, on_quota=OnQuota(max_wait_s=5), budget=Budget(max_requests=500)
    )


async def go_whole(folder: Path, points: CrashPoints = NO_CRASH_POINTS) -> WorkflowResult:
    """Begins or goes on, and answers whatever is asked, until it ends."""
    world, store = World(folder / "log"), f"sqlite:///{folder / 't.db'}"
    try:
        result = await resume_workflow(whole(world), RUN, store=store, points=points)
    except UnknownExecution:
        result = await run_workflow(whole(world), store=store, execution_id=RUN, points=points)
    while result.status == "waiting-input":
        decisions = [
            Decision(
                execution_id=RUN,
                task=asked["task"],
                request_id=asked["request_id"],
                decision="answer" if asked["kind"] == "question" else "approve",
                actor="ada",
                text="blue",
            )
            for asked in result.questions
        ]
        result = await resume_workflow(whole(world), RUN, store=store, decisions=decisions, points=points)
    return result


async def go(folder: Path, points: CrashPoints = NO_CRASH_POINTS, *, resume: bool = False) -> WorkflowResult:
    world, store = World(folder / "log"), f"sqlite:///{folder / 't.db'}"
    if resume:
        return await resume_workflow(workflow(world), RUN, store=store, points=points)
    return await run_workflow(workflow(world), store=store, execution_id=RUN, points=points)


def main() -> None:
    """Called by an import, so that functions are of the same module as in the process that resumes."""
    os.environ.setdefault("TREADLE_STATE", sys.argv[1])
    which = go_whole if sys.argv[4:] == ["whole"] else go
    anyio.run(lambda: which(Path(sys.argv[1]), KillAt(sys.argv[2], int(sys.argv[3]))))
