"""Case 33: a run resumed itself for hours though nobody wanted it. What failed, stopped or waits goes on only when somebody says so."""

from decimal import Decimal
from typing import Any

import pytest

from support.places import Place, fee
from treadle.spec.workflows import ApprovalTask, Budget, Task, Workflow


def failing(log: list[str]) -> Workflow:
    async def work(ctx: Any) -> None:
        log.append(ctx.task)
        raise RuntimeError("no")

    return Workflow("failing", [Task("a", work)])


def stopping(log: list[str]) -> Workflow:
    async def work(ctx: Any) -> None:
        log.append(ctx.task)
        ctx.report_usage(fee(100))

    tasks = [Task("a", work), Task("b", work, after=("a",))]
    return Workflow("stopping", tasks, budget=Budget(max_cost_usd=Decimal(1)))


def waiting(log: list[str]) -> Workflow:
    async def work(ctx: Any) -> None:
        log.append(ctx.task)

    return Workflow("waiting", [Task("a", work), ApprovalTask("gate", "Go?", after=("a",))])


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize(("make", "status"), [(failing, "failed"), (stopping, "stopped"), (waiting, "waiting-input")])
def test_a_resume_without_a_word_calls_nothing(kind: str, make: Any, status: str, tmp_path: Any) -> None:
    log: list[str] = []
    place = Place(kind, tmp_path)
    assert place.run(make(log)).status == status
    for _ in range(3):
        assert place.resume(make(log)).status == status
    assert log == ["a"]
