"""A provider's recorded 429 answers, as a task's own HTTP client meets them: the workflow waits exactly as long as they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from fixtures.wire import replay
from support.places import Place
from treadle.spec.workflows import OnQuota, Retry, Task, Workflow
from treadle.testing import VirtualClock

RESETS = {
    "openai/429-limits": 360,
    "openai/429-retry-after": 21,
    "anthropic/429": 42,
    "anthropic/429-retry-after": 17,
    "google/429": 34,
}


@pytest.mark.req("TC-24")
@pytest.mark.parametrize(("name", "seconds"), RESETS.items())
def test_a_recorded_429_pauses_until_its_reset_in_process_and_over_processes(
    tmp_path: Path, name: str, seconds: int
) -> None:
    place = Place("sqlite", tmp_path)
    place.clock = VirtualClock(start_us=replay.NOW_US)
    due_us = replay.NOW_US + seconds * 1_000_000
    tried: list[tuple[int, int]] = []

    with replay.Replay(replay.answer(replay.case(name)["response"])) as server:

        async def work(ctx: Any) -> str:
            tried.append((ctx.attempt, place.clock.wall_us()))
            if place.clock.wall_us() < due_us:
                async with httpx.AsyncClient() as client:
                    (await client.post(server.url + "/v1/chat/completions", json={})).raise_for_status()
            return "answered"

        def flow(max_wait_s: float) -> Workflow:
            once = Retry(attempts=1)
            return Workflow("w", [Task("a", work, retry=once)], on_quota=OnQuota(max_wait_s=max_wait_s))

        paused = place.run(flow(seconds - 1))
        assert (paused.status, paused.code) == ("paused", "quota")
        assert paused.document["pending"]["until_us"] == due_us
        assert place.resume(flow(seconds - 1)).code == "quota", "another process finds it not yet due"
        result = place.resume(flow(seconds))
    assert (result.status, result.outputs) == ("done", {"a": "answered"})
    assert tried == [(1, replay.NOW_US), (2, due_us)]
    assert len(server.received) == 1
