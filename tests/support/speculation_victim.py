"""Run as a program: three candidates whose process is killed at a crash point. What they pay and do goes to a log, a line each."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio

from support.shows import FEE
from treadle.app.workflows import run_workflow
from treadle.ports.clock import NO_CRASH_POINTS, CrashPoints
from treadle.spec.workflows import Task, Workflow
from treadle.testing.crash import KillAt

RUN = "victim-2"


class World:
    """What cannot be taken back."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def say(self, *words: object) -> None:
        with self.path.open("a") as file:
            file.write(" ".join(map(str, words)) + "\n")

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []


def speculating(world: World, folder: Path, select: Any = "best", points: CrashPoints = NO_CRASH_POINTS) -> Workflow:
    """The third is the best; of "first" the second is, and the others never end by themselves."""

    async def candidate(ctx: Any) -> int:
        receipt = f"{ctx.idempotency_key}:{ctx.attempt}"
        if await ctx.intend(receipt, FEE):
            world.say("paid", receipt)
            ctx.report_usage_once(receipt, FEE)
        if select == "first" and not ctx.task.endswith("2"):
            await anyio.sleep_forever()
        file = ctx.workspace / "kit.py"
        file.write_text(file.read_text() + ctx.task + "\n")
        points.reach("after-write")
        return int(ctx.task[-1])

    async def validate(ctx: Any, output: int) -> float:
        world.say("judged", ctx.task)
        return output

    async def work(ctx: Any) -> int:
        taken = await ctx.speculate([candidate] * 3, validate, select=select, workspace=folder / "work")
        world.say("taken")
        return taken.number

    return Workflow("victim", [Task("a", work)])


async def go(folder: Path, point: str, nth: int, select: str) -> None:
    world, store = World(folder / "log"), f"sqlite:///{folder / 't.db'}"
    points = KillAt(point, nth)
    await run_workflow(speculating(world, folder, select, points), store=store, execution_id=RUN, points=points)


if __name__ == "__main__":
    os.environ["TREADLE_STATE"] = str(Path(sys.argv[1]) / "state")
    anyio.run(lambda: go(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]))
