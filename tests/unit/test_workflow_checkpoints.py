"""What a checkpoint makes durable, and small promises of callbacks: candidates that are no JSON, tries, empty answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from support.places import Place, X, fee
from treadle.app.runtime import Runtime
from treadle.app.workflow_runtime import workflows_of
from treadle.app.workflows import Decision, run_workflow
from treadle.core.errors import AnswerRefused
from treadle.ledger.inmemory import InMemoryLedger
from treadle.ports.callback import accept
from treadle.ports.task import QuotaReached
from treadle.settings import Settings
from treadle.spec.workflows import Asks, LoopTask, OnQuota, Retry, Task, Workflow
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


@pytest.mark.req("TC-24")
def test_a_quota_pause_takes_none_of_the_tries_of_a_task(tmp_path: Path) -> None:
    place = Place("sqlite", tmp_path)
    tried: list[int] = []

    async def work(ctx: Any) -> int:
        tried.append(ctx.attempt)
        if len(tried) == 1:
            raise QuotaReached("used up", reset_at_us=place.clock.wall_us() + 1_000_000)
        if len(tried) == 2:
            raise ConnectionError("flaky")
        return len(tried)

    flow = Workflow("w", [Task("a", work, retry=Retry(attempts=2))], on_quota=OnQuota(max_wait_s=None))
    assert place.run(flow).outputs == {"a": 3}


@pytest.mark.req("TC-24")
def test_a_reset_is_not_waited_for_by_the_library_and_as_long_as_it_takes_by_the_command_line(tmp_path: Path) -> None:
    async def main() -> None:
        runtime = Runtime(InMemoryLedger(), Settings(environ={}, state_dir=tmp_path), quota_wait_s=None)
        assert workflows_of(runtime).quota_wait_s == float("inf")
        await runtime.close()

    anyio.run(main)
    assert OnQuota().max_wait_s == 0


@pytest.mark.req("TC-23")
@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_answer_to_an_open_question_is_refused_and_it_stays_open(tmp_path: Path, text: str) -> None:
    place = Place("sqlite", tmp_path)

    async def work(ctx: Any) -> str:
        answer: Any = ctx.interaction.answer
        if answer is None:
            await ctx.interaction.suspend("What name?")
            raise AssertionError
        return answer.text

    flow = Workflow("w", [Task("a", work, interaction=Asks())])
    (question,) = place.run(flow).questions

    def said(words: str) -> Decision:
        request = question["request_id"]
        return Decision(execution_id=X, task="a", request_id=request, decision="answer", actor="me", text=words)

    with pytest.raises(AnswerRefused, match="empty"):
        place.resume(flow, decisions=[said(text)])
    assert place.resume(flow, decisions=[said("ada")]).outputs == {"a": "ada"}
