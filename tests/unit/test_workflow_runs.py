"""Workflows driven for real on each store: order, values, rounds and resumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from support.places import Place, X
from treadle.app.runtime import Reopening
from treadle.app.workflow_runtime import WorkflowRuntime
from treadle.app.workflows import resume_workflow, run_workflow
from treadle.core.errors import DefinitionChanged, LoopExhausted, UnknownDependency, WorkflowMismatch
from treadle.ports.callback import accept, reject
from treadle.runtime.contexts import child_id
from treadle.settings import Settings
from treadle.spec.workflows import LoopTask, Task, Workflow


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Any) -> Place:
    return Place(request.param, tmp_path)


def small(log: list[Any]) -> Workflow:
    async def first(ctx: Any) -> int:
        log.append("first")
        return ctx.input + 1

    async def second(ctx: Any) -> int:
        log.append("second")
        return 10 * ctx.value(one)

    async def attempt(ctx: Any, feedback: str | None) -> dict[str, Any]:
        log.append((ctx.round, ctx.attempt, ctx.phase, feedback, ctx.idempotency_key))
        return {"n": ctx.value(two) + ctx.round}

    async def check(ctx: Any, candidate: dict[str, Any]) -> Any:
        log.append((ctx.round, ctx.attempt, ctx.phase, candidate["n"], ctx.idempotency_key))
        assert ctx.key_for("paid") == f"{ctx.idempotency_key}:paid"
        return accept() if candidate["n"] > 21 else reject(f"{candidate['n']} is too small\n ")

    one = Task("one", first)
    two = Task("two", second, after=(one,))
    loop = LoopTask("loop", attempt, check, max_rounds=3, after=(two,))
    return Workflow("small", [one, two, loop])


@pytest.mark.req("TC-01", "TC-02", "TC-05", "TC-08", "TC-09", "TC-13", "TC-14", "TC-19")
def test_tasks_run_in_order_and_rounds_go_on_with_feedback_until_accepted(place: Place) -> None:
    log: list[Any] = []
    result = place.run(small(log), 1)
    assert (result.status, result.code) == ("done", "accepted")
    assert log == [
        "first",
        "second",
        (1, 1, "attempt", None, "x1-test:loop:r1:attempt"),
        (1, 1, "check", 21, "x1-test:loop:r1:check"),
        (2, 2, "attempt", "21 is too small\n ", "x1-test:loop:r2:attempt"),
        (2, 2, "check", 22, "x1-test:loop:r2:check"),
    ]
    assert result.outputs == {"one": 2, "two": 20, "loop": {"n": 22}}
    again = place.resume(small(log))
    assert (again.outputs, again.document["status"]) == (result.outputs, "done")
    assert len(log) == 6


def rounds(log: list[Any], verdicts: list[Any], *, fail: str = "", **options: Any) -> Workflow:
    async def attempt(ctx: Any, feedback: str | None) -> list[Any]:
        log.append((ctx.phase, ctx.round, ctx.attempt))
        return [ctx.round]

    async def check(ctx: Any, candidate: list[Any]) -> Any:
        log.append((ctx.phase, ctx.round, ctx.attempt, list(candidate)))
        candidate.append("touched")
        verdict = verdicts.pop(0)
        if isinstance(verdict, BaseException):
            raise verdict
        return verdict

    async def after(ctx: Any) -> str:
        log.append("after")
        return "after"

    loop = LoopTask("loop", attempt, check, **{"max_rounds": 2, **options})
    return Workflow("rounds", [loop, Task("after", after, after=(loop,))])


@pytest.mark.req("TC-15")
def test_exhaustion_fails_the_task_skips_what_depends_on_it_and_lasts(place: Place) -> None:
    log: list[Any] = []
    result = place.run(rounds(log, [reject("a"), reject("last words")]))
    assert (result.status, result.code) == ("failed", "exhausted")
    error = result.error("loop")
    assert isinstance(error, LoopExhausted)
    assert (error.key, error.max_rounds, error.feedback) == ("loop", 2, "last words")
    assert result.document["tasks"]["after"]["status"] == "skipped"
    assert "after" not in log
    again = place.resume(rounds(log, []), retry_incomplete=True)
    assert (again.status, again.code, len(log)) == ("failed", "exhausted", 4)


@pytest.mark.req("TC-17", "TC-01", "TC-02", "TC-08", "TC-25")
def test_a_failed_check_replays_alone_with_the_candidate_as_saved_and_an_accepted_one_keeps_its_changes(
    place: Place,
) -> None:
    log: list[Any] = []
    result = place.run(rounds(log, [ValueError("boom")]))
    assert (result.status, result.code) == ("failed", "failed")
    assert "boom" in result.document["outcome"]["evidence"]
    assert place.resume(rounds(log, [])).status == "failed"  # nobody has said retry_incomplete
    assert "retry_incomplete" in WorkflowRuntime.resting(result.state, Reopening())
    assert len(log) == 2
    result = place.resume(rounds(log, [accept()]), retry_incomplete=True)
    assert result.status == "done"
    assert log == [("attempt", 1, 1), ("check", 1, 1, [1]), ("check", 1, 2, [1]), "after"]
    assert result.outputs["loop"] == [1, "touched"]


@pytest.mark.req("TC-14")
def test_a_verdict_that_is_none_fails_the_task(place: Place) -> None:
    result = place.run(rounds([], [True]))
    assert (result.status, result.code) == ("failed", "failed")
    assert "InvalidVerdict" in result.document["outcome"]["evidence"]


@pytest.mark.req("TC-17", "TC-12")
def test_a_candidate_that_is_no_json_is_refused_before_check_with_a_store_and_fine_without(
    tmp_path: Any,
) -> None:
    log: list[Any] = []

    async def attempt(ctx: Any, feedback: str | None) -> Any:
        await ctx.checkpoint()
        return {1, 2}

    async def check(ctx: Any, candidate: Any) -> Any:
        log.append(candidate)
        candidate.add(3)
        return accept()

    flow = Workflow("sets", [LoopTask("loop", attempt, check, max_rounds=1)])
    seen = []
    result = anyio.run(lambda: run_workflow(flow, store="memory:", sinks=[lambda o: seen.append(o.kind)]))
    assert result.outputs == {"loop": {1, 2, 3}}
    assert "checkpoint" not in seen
    log.clear()
    with_store = Place("memory", tmp_path)
    result = with_store.run(flow)
    assert (result.status, log) == ("failed", [])
    assert "InvalidOutput: candidate" in result.document["outcome"]["evidence"]


@pytest.mark.req("TC-13")
@pytest.mark.parametrize("name", ["b", "c"])
def test_a_value_that_is_not_declared_is_refused(place: Place, name: str) -> None:
    async def done(ctx: Any) -> str:
        return ctx.task

    async def reads(ctx: Any) -> str:
        return ctx.value(others[name])

    others = {"b": Task("b", done), "c": Task("c", done)}
    a = Task("a", reads, after=("b",))
    flow = Workflow("reading", [a, *others.values()])
    result = place.run(flow)
    if name == "b":
        assert result.outputs["a"] == "b"
    else:
        assert "UnknownDependency" in result.document["outcome"]["evidence"]
        with pytest.raises(UnknownDependency):
            result.value(a)


def test_each_reader_of_a_value_has_its_own_copy(place: Place) -> None:
    async def make(ctx: Any) -> list[int]:
        return [1]

    async def spoil(ctx: Any) -> int:
        ctx.value(made).append(2)
        return len(ctx.value(made))

    made = Task("made", make)
    result = place.run(Workflow("copies", [made, Task("spoil", spoil, after=(made,))]))
    assert (result.outputs["spoil"], result.outputs["made"]) == (1, [1])


@pytest.mark.req("TC-19")
@pytest.mark.parametrize("concurrency", [1, 3])
def test_as_many_tasks_run_at_once_as_concurrency_says(place: Place, concurrency: int) -> None:
    running: set[str] = set()
    most = []

    async def work(ctx: Any) -> None:
        running.add(ctx.task)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        most.append(len(running))
        running.discard(ctx.task)

    flow = Workflow("wide", [Task(f"t{n}", work) for n in range(7)], concurrency=concurrency)
    assert place.run(flow).status == "done"
    assert max(most) == concurrency


@pytest.mark.req("TC-19")
@pytest.mark.parametrize("on_error", ["stop", "continue"])
def test_a_failure_stops_everything_or_only_what_depends_on_it(place: Place, on_error: Any) -> None:
    log: list[str] = []

    async def work(ctx: Any) -> str:
        log.append(ctx.task)
        if ctx.task == "bad":
            raise RuntimeError("bad")
        return ctx.task

    tasks = [
        Task("bad", work),
        Task("child", work, after=("bad",)),
        Task("other", work),
        Task("last", work, after=("other",)),
    ]
    result = place.run(Workflow("w", tasks, concurrency=1, on_error=on_error))
    assert (result.status, result.code) == ("failed", "failed")
    assert result.document["tasks"]["child"] == {
        "kind": "task",
        "after": ["bad"],
        "status": "skipped",
        "because": "bad",
    }
    assert log == (["bad"] if on_error == "stop" else ["bad", "other", "last"])


@pytest.mark.req("TC-25")
def test_retry_incomplete_runs_what_failed_and_what_waited_for_it_and_nothing_else(place: Place) -> None:
    log: list[str] = []
    broken = [True]

    async def work(ctx: Any) -> str:
        log.append(f"{ctx.task}{ctx.attempt}")
        if ctx.task == "bad" and broken:
            raise RuntimeError("bad")
        return ctx.task

    flow = Workflow("w", [Task("good", work), Task("bad", work, after=("good",)), Task("child", work, after=("bad",))])
    assert place.run(flow).status == "failed"
    broken.clear()
    assert place.resume(flow, retry_incomplete=True).status == "done"
    assert log == ["good1", "bad1", "bad2", "child1"]


def test_a_condition_that_says_no_skips_the_task_and_what_depends_on_it(place: Place) -> None:
    asked = []

    async def no(ctx: Any) -> bool:
        asked.append(ctx.task)
        return ctx.input != "skip"

    async def work(ctx: Any) -> str:
        return ctx.task

    tasks = [Task("a", work, condition=no), Task("b", work, after=("a",)), Task("c", work)]
    result = place.run(Workflow("w", tasks), "skip")
    assert (result.status, result.outputs, asked) == ("done", {"c": "c"}, ["a"])
    assert place.run(Workflow("w", tasks), "go", execution_id="x2-test").outputs.keys() == {"a", "b", "c"}


@pytest.mark.req("TC-25")
@pytest.mark.parametrize("part", range(5))
def test_the_id_of_a_child_derives_from_execution_task_round_phase_and_key(part: int) -> None:
    parts: list[Any] = ["x1", "a", 1, "attempt", "k"]
    other = [*parts[:part], 2 if part == 2 else "other", *parts[part + 1 :]]
    assert child_id(*parts) == child_id(*parts) != child_id(*other)


@pytest.mark.req("TC-25")
def test_another_workflow_version_or_loop_is_refused_before_anything_runs(place: Place) -> None:
    log: list[Any] = []

    def flow(name: str, version: str) -> Workflow:
        async def work(ctx: Any) -> None:
            log.append(name)
            raise RuntimeError("no")

        return Workflow(name, [Task("a", work)], version=version)

    place.run(flow("one", "1"))
    with pytest.raises(WorkflowMismatch, match="'one'"):
        place.resume(flow("two", "1"), retry_incomplete=True)
    with pytest.raises(DefinitionChanged) as changed:
        place.resume(flow("one", "2"), retry_incomplete=True)
    assert changed.value.parts == ("version",)

    async def at_the_runtime() -> None:
        settings = Settings(environ={}, state_dir=Path("unused"))
        runtime = WorkflowRuntime(await place.open(), settings, clock=place.clock)
        with pytest.raises(DefinitionChanged):
            await runtime.resume(X, flow("one", "2"), Reopening(retry_incomplete=True))
        await runtime.ledger.close()

    anyio.run(at_the_runtime)
    assert log == ["one"]
    assert place.resume(flow("one", "2"), retry_incomplete=True, adopt=True).status == "failed"
    assert log == ["one", "one"]


def test_an_execution_of_a_loop_is_no_workflow(place: Place) -> None:
    async def main() -> None:
        ledger = await place.open()
        await ledger.create(X, kind="loop", owner="me", at_us=1)
        with pytest.raises(WorkflowMismatch, match="loop"):
            await resume_workflow(rounds([], []), X, store=ledger)
        await ledger.close()

    anyio.run(main)
