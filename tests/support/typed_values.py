"""Checked by pyright, never run: what a context gives has the type that the task's function returns."""

from __future__ import annotations

from typing import assert_type

from treadle.app.workflows import WorkflowResult
from treadle.ports.callback import Verdict, accept
from treadle.ports.task import LoopTaskContext, TaskContext
from treadle.spec.workflows import ApprovalTask, Decided, LoopTask, Task, Workflow


async def count(ctx: TaskContext) -> int:
    return len(ctx.task)


async def attempt(ctx: LoopTaskContext, feedback: str | None) -> list[str]:
    return [f"{ctx.round} {ctx.phase} {feedback}"]


async def check(ctx: LoopTaskContext, candidate: list[str]) -> Verdict:
    return accept(evidence=candidate[0])


counted = Task("counted", count)
looped = LoopTask("looped", attempt, check, max_rounds=2, after=(counted,))
gate = ApprovalTask("gate", "Ship?", after=(looped,))


async def read(ctx: TaskContext) -> str:
    assert_type(ctx.value(counted), int)
    assert_type(ctx.value(looped), list[str])
    assert_type(ctx.value(gate), Decided)
    return ctx.value(gate)["actor"]


last = Task("last", read, after=(counted, looped, gate))
flow = Workflow("typed", [counted, looped, gate, last])


def result(found: WorkflowResult) -> None:
    assert_type(found.value(last), str)
    assert_type(found.value(looped), list[str])
