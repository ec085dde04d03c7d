"""What a checkpoint makes durable, and what a check that fails leaves of a candidate that is no JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from support.places import Place, X, fee
from treadle.app.workflows import run_workflow
from treadle.ports.callback import accept
from treadle.ports.task import QuotaReached
from treadle.spec.workflows import LoopTask, OnQuota, Task, Workflow
from treadle.testing import VirtualClock


@pytest.mark.req("TC-12")
def test_a_checkpoint_makes_what_was_reported_durable_and_nothing_else_does_so_early(tmp_path: Path) -> None:
    place = Place("sqlite", tmp_path)
    found: list[int] = []

    async def charged() -> int:
        ledger = await place.open()
        kinds = [record.kind for record in await ledger.records(X)]
        await ledger.close()
        return kinds.count("usage.charged")

    async def work(ctx: Any) -> None:
        ctx.report_usage(fee())
        found.append(await charged())
        await ctx.checkpoint()
        found.append(await charged())

    assert place.run(Workflow("w", [Task("a", work)])).status == "done"
    assert found == [0, 1]


@pytest.mark.req("TC-17")
def test_a_candidate_that_is_no_json_is_judged_as_it_was_made_in_each_replay() -> None:
    seen: list[Any] = []
    clock = VirtualClock()

    async def attempt(ctx: Any, feedback: str | None) -> set[str]:
        return {"made"}

    async def check(ctx: Any, candidate: set[str]) -> Any:
        seen.append(set(candidate))
        candidate.add("looked at")
        if ctx.quota is None:
            raise QuotaReached("used up", reset_at_us=clock.wall_us() + 1_000_000)
        return accept()

    flow = Workflow("w", [LoopTask("a", attempt, check, max_rounds=2)], on_quota=OnQuota(max_wait_s=None))
    result = anyio.run(lambda: run_workflow(flow, store="memory:", clock=clock))
    assert seen == [{"made"}, {"made"}]
    assert result.outputs == {"a": {"made", "looked at"}}
