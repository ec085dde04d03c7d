"""Retries, timeouts, quota pauses, stops and cancellations of workflows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.places import Lapsed, Place, X
from treadle.app.workflow_runtime import WorkflowRuntime
from treadle.app.workflows import run_workflow
from treadle.core.errors import ProviderError, StaleEpoch
from treadle.core.workflow_events import PhaseFailed, RetrySettings
from treadle.kernel.steering import Cancel
from treadle.kernel.workflow import retry_at
from treadle.ports.callback import accept, reject
from treadle.ports.task import QuotaReached
from treadle.settings import Settings
from treadle.spec.definitions import Loop, Person
from treadle.spec.workflows import LoopTask, OnQuota, PauseTask, Retry, RunTask, Task, Workflow

S = 1_000_000


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Any) -> Place:
    return Place(request.param, tmp_path)


class HttpError(Exception):
    """As client libraries raise them."""

    def __init__(self, status_code: int, headers: dict[str, str]) -> None:
        self.status_code, self.headers = status_code, headers
        super().__init__(f"HTTP {status_code}")


# ---- owners


@pytest.mark.req("RT-03")
def test_a_task_of_an_owner_that_was_replaced_is_stopped_where_it_stands() -> None:
    ledger, stopped = Lapsed(), list[str]()

    async def endless(ctx: Any) -> None:
        ledger.away = True
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append("stopped")

    async def main() -> None:
        with pytest.raises(StaleEpoch), anyio.fail_after(30):
            await run_workflow(Workflow("w", [Task("a", endless)]), None, store=ledger)

    anyio.run(main)
    assert stopped == ["stopped"]


# ---- retries


@pytest.mark.req("TC-20", "TC-08")
def test_a_task_is_retried_with_growing_delays_and_the_same_key(place: Place) -> None:
    log: list[Any] = []

    async def work(ctx: Any) -> str:
        log.append((ctx.attempt, ctx.idempotency_key, place.clock.wall_us()))
        if len(log) < 4:
            raise OSError("not yet")
        return "done"

    retry = Retry(attempts=4, delay_s=10, max_delay_s=25, jitter=0)
    result = place.run(Workflow("w", [Task("a", work, retry=retry)]))
    assert (result.status, result.document["tasks"]["a"]["attempts"]) == ("done", 4)
    assert [attempt for attempt, _, _ in log] == [1, 2, 3, 4]
    assert len({key for _, key, _ in log}) == 1
    waits = [(b[2] - a[2]) // S for a, b in pairwise(log)]
    assert waits == [10, 20, 25]


@pytest.mark.req("TC-20")
def test_chance_makes_a_delay_longer_by_no_more_than_its_share(place: Place) -> None:
    times: list[int] = []

    async def work(ctx: Any) -> None:
        times.append(place.clock.wall_us())
        raise OSError("no")

    place.run(Workflow("w", [Task("a", work, retry=Retry(attempts=4, delay_s=10, backoff="fixed", jitter=0.5))]))
    waits = [(b - a) / S for a, b in pairwise(times)]
    assert len(set(waits)) == 3
    assert all(10 < wait < 15 for wait in waits)


@pytest.mark.req("TC-20")
def test_retries_end_and_an_exception_that_is_not_to_be_retried_is_not(place: Place) -> None:
    log: list[Any] = []

    async def work(ctx: Any) -> None:
        log.append(ctx.task)
        raise (KeyError if ctx.task == "b" else OSError)("no")

    retry = Retry(attempts=3, delay_s=0, when=lambda error: isinstance(error, OSError))
    tasks = [Task("a", work, retry=retry), Task("b", work, retry=retry)]
    result = place.run(Workflow("w", tasks, on_error="continue"))
    assert (result.status, sorted(log)) == ("failed", ["a", "a", "a", "b"])


@pytest.mark.req("TC-20")
@pytest.mark.parametrize(
    ("settings", "tries", "jitter", "after", "delay"),
    [
        (RetrySettings(delay_us=10, backoff="fixed"), 5, 0.5, None, 10),
        (RetrySettings(delay_us=10), 4, 0.0, None, 80),
        (RetrySettings(delay_us=10, max_delay_us=50), 4, 0.0, None, 50),
        (RetrySettings(delay_us=10, jitter=0.5), 2, 0.5, None, 25),
        (RetrySettings(delay_us=10), 1, 0.0, 1_000_500, 500),
        (RetrySettings(delay_us=10), 400, 0.0, None, 10 << 40),
    ],
)
def test_the_delay_follows_from_what_was_recorded(
    settings: Any, tries: int, jitter: float, after: Any, delay: int
) -> None:
    failure = PhaseFailed(task="a", code="failed", message="", at_us=S, jitter=jitter, retry_after_us=after)
    assert retry_at(settings, tries, failure) == S + delay


@pytest.mark.req("TC-20")
def test_a_servers_retry_after_is_never_undercut(place: Place) -> None:
    times: list[int] = []

    async def work(ctx: Any) -> None:
        times.append(place.clock.wall_us())
        if len(times) == 1:
            raise RuntimeError("wrapped") from HttpError(503, {"Retry-After": "120"})

    place.run(Workflow("w", [Task("a", work, retry=Retry(attempts=2, delay_s=1))]))
    assert (times[1] - times[0]) // S >= 120


# ---- the timer of a round


@pytest.mark.req("TC-07")
def test_the_rounds_time_aborts_the_signal_and_cancels_the_callback(place: Place) -> None:
    log: list[Any] = []

    async def attempt(ctx: Any, feedback: str | None) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(watch, ctx.signal)
            try:
                await anyio.sleep(60)
            finally:
                log.append(("cancelled", ctx.signal.aborted))

    async def watch(signal: Any) -> None:
        with anyio.CancelScope(shield=True):
            await signal.wait()
        log.append("told")

    async def check(ctx: Any, candidate: None) -> Any:
        return accept()

    flow = Workflow("w", [LoopTask("a", attempt, check, max_rounds=1, timeout_s=0.05)])
    result = place.run(flow)
    assert (result.status, result.code) == ("failed", "timeout")
    assert ("told" in log, len(log)) == (True, 2)


@pytest.mark.req("TC-07")
@pytest.mark.parametrize("replayed", [False, True])
def test_one_timer_covers_attempt_and_check_and_starts_anew_on_replay(place: Place, replayed: bool) -> None:
    left: list[float] = []

    async def attempt(ctx: Any, feedback: str | None) -> None:
        left.append(anyio.current_effective_deadline())

    async def check(ctx: Any, candidate: None) -> Any:
        left.append(anyio.current_effective_deadline())
        if replayed and ctx.attempt == 1:
            raise QuotaReached("later", reset_at_us=place.clock.wall_us() + S)
        return accept()

    flow = Workflow("w", [LoopTask("a", attempt, check, max_rounds=1, timeout_s=20)])
    assert place.run(flow, quota_wait_s=9.0).status == "done"
    assert left[0] == left[1] < float("inf")
    assert len(left) == 2 + replayed
    if replayed:
        assert left[2] > left[0]


@pytest.mark.req("TC-07")
def test_a_failure_aborts_what_runs_beside_it_and_a_resume_replays_it(place: Place) -> None:
    log: list[Any] = []
    running = anyio.Event()

    async def slow(ctx: Any) -> str:
        log.append(ctx.attempt)
        if ctx.attempt == 1:
            running.set()
            await ctx.signal.wait()
            log.append("told")
            await anyio.sleep(60)
        return "slow"

    async def bad(ctx: Any) -> str:
        if ctx.attempt == 1:
            await running.wait()
            raise RuntimeError("bad")
        return "good"

    flow = Workflow("w", [Task("slow", slow), Task("bad", bad)])
    assert place.run(flow).status == "failed"
    assert log[:1] == [1]
    result = place.resume(flow, retry_incomplete=True)
    assert (result.outputs, log[-1]) == ({"slow": "slow", "bad": "good"}, 2)


# ---- quota


def limited(log: list[Any], fault: Any, **options: Any) -> Workflow:
    async def attempt(ctx: Any, feedback: str | None) -> int:
        log.append((ctx.phase, ctx.round, ctx.attempt, ctx.quota))
        if ctx.attempt == 1:
            raise fault
        return ctx.round

    async def check(ctx: Any, candidate: int) -> Any:
        log.append((ctx.phase, ctx.round, ctx.attempt, ctx.quota))
        return accept() if ctx.round == 2 else reject("again")

    async def other(ctx: Any) -> str:
        return "other"

    return Workflow("w", [LoopTask("a", attempt, check, max_rounds=2), Task("b", other, after=("a",))], **options)


@pytest.mark.req("TC-03", "TC-24", "TC-08")
@pytest.mark.parametrize("conversation", ["continue", "restart"])
def test_a_quota_pause_is_seen_by_both_callbacks_of_the_first_attempt_after_it_and_by_no_other(
    place: Place, conversation: Any
) -> None:
    log: list[Any] = []
    kept = conversation == "continue"
    paused = place.clock.wall_us()
    reset = paused + 60 * S if kept else None  # an unknown one is tried as soon as somebody resumes
    fault = QuotaReached("used up", reset_at_us=reset, conversation=[{"role": "user"}], branch="b7")
    flow = limited(log, fault, on_quota=OnQuota(conversation=conversation))
    result = place.run(flow)
    assert (result.status, result.code) == ("paused", "quota")
    assert result.document["pending"]["prompt"] == "used up"
    place.clock.advance(90)
    result = place.resume(flow)
    assert result.status == "done"
    (_, _, _, first), (*one, pause), (*two, same), (*three, none), (*four, also) = log
    assert (first, none, also) == (None, None, None)
    assert (one, two) == (["attempt", 1, 2], ["check", 1, 2])
    assert (three, four) == (["attempt", 2, 3], ["check", 2, 3])
    assert pause == same
    assert (pause.message, pause.requested_at_us, pause.reset_at_us) == ("used up", paused, reset)
    assert (pause.conversation, pause.branch) == (([{"role": "user"}], "b7") if kept else (None, ""))


@pytest.mark.req("TC-24")
@pytest.mark.parametrize(
    "fault",
    [
        HttpError(429, {"Retry-After": "60"}),
        HttpError(429, {"anthropic-ratelimit-requests-remaining": "0", "retry-after": "60"}),
        ProviderError("quota", "no more", retry_at_us=1_700_000_000_000_000 + 60 * S),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_known_reset_is_waited_for_in_process_up_to_max_wait_and_uses_no_retry(
    place: Place, fault: Exception, wrapped: bool
) -> None:
    times: list[int] = []

    async def work(ctx: Any) -> str:
        times.append(place.clock.wall_us())
        if len(times) == 1:
            if wrapped:
                raise ExceptionGroup("many", [ValueError("x"), RuntimeError("y")]) from fault
            raise fault
        return "done"

    flow = Workflow("w", [Task("a", work)], on_quota=OnQuota(max_wait_s=100))
    assert place.run(flow).status == "done"
    assert (times[1] - times[0]) // S == 60
    times.clear()
    place.clock = type(place.clock)()
    result = place.run(flow, execution_id="x2-test", quota_wait_s=10.0)
    assert (result.status, result.code, len(times)) == ("paused", "quota", 1)
    assert result.document["pending"]["until_us"] == times[0] + 60 * S
    assert place.resume(flow, "x2-test", quota_wait_s=10.0).status == "paused"
    place.clock.advance(55)
    assert place.resume(flow, "x2-test", quota_wait_s=10.0).status == "done"


# ---- stops from outside


async def session(place: Place, flow: Workflow) -> Any:
    runtime = WorkflowRuntime(await place.open(), Settings(environ={}, state_dir=Path("unused")), clock=place.clock)
    return runtime, await runtime.start(flow, execution_id=X)


def blocked(log: list[Any], running: anyio.Event) -> Workflow:
    async def work(ctx: Any) -> str:
        log.append(("began", ctx.attempt))
        if ctx.attempt == 1:
            await ctx.checkpoint()
            running.set()
            try:
                await anyio.sleep(60)
            finally:
                log.append(("left", ctx.signal.aborted))
        return "done"

    return Workflow("w", [Task("a", work)])


@pytest.mark.req("TC-07", "TC-25")
def test_an_interrupted_workflow_is_paused_and_its_phase_replays(place: Place) -> None:
    log: list[Any] = []

    async def main() -> None:
        running = anyio.Event()
        runtime, found = await session(place, blocked(log, running))

        async def stop() -> None:
            await running.wait()
            found.driver.interrupt()

        async with anyio.create_task_group() as group:
            group.start_soon(stop)
            ended = await found.run()
        assert (ended["status"], ended["code"]) == ("paused", "interrupted")
        await found.close()
        await runtime.ledger.close()

    anyio.run(main)
    assert log == [("began", 1), ("left", True)]
    assert place.resume(blocked(log, anyio.Event())).status == "done"
    assert log[2:] == [("began", 2)]


@pytest.mark.req("TC-07")
def test_a_cancellation_from_another_process_ends_it_and_its_children_for_good(place: Place) -> None:
    async def act(ctx: Any, feedback: str | None) -> str:
        return "draft"

    log: list[Any] = []

    async def main() -> None:
        running = anyio.Event()
        asks = RunTask("asks", Loop(name="l", act=act, evaluate=Person()), "the task")
        flow = Workflow("w", [*blocked(log, running).tasks, asks])
        runtime, found = await session(place, flow)

        async def stop() -> None:
            await running.wait()
            while not found.state.asking:  # noqa: ASYNC110 - the state has no event of its own
                await anyio.sleep(0.01)
            await runtime.steer(X, [Cancel(actor="ada", reason="enough")])

        async with anyio.create_task_group() as group:
            group.start_soon(stop)
            ended = await found.run()
        assert (ended["status"], ended["code"]) == ("cancelled", "aborted")
        assert "enough" in ended["outcome"]["evidence"]
        await found.close()
        (child,) = [row for row in await runtime.ledger.rows() if row.kind == "loop"]
        assert (await runtime.nest.state(child.execution_id)).status == "cancelled"
        await runtime.ledger.close()

    anyio.run(main)
    assert ("left", True) in log


def test_a_pause_and_work_go_side_by_side(place: Place) -> None:
    async def work(ctx: Any) -> str:
        return ctx.task

    tasks = [PauseTask("nap", for_s=5), Task("a", work), Task("b", work, after=("nap", "a"))]
    assert place.run(Workflow("w", tasks)).outputs == {"a": "a", "nap": None, "b": "b"}
