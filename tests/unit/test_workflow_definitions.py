"""What is refused before anything runs, each by its own error."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from support.places import Place
from treadle.core.errors import DefinitionError, InputError, InvalidOutput
from treadle.core.strict_json import from_json, to_json
from treadle.spec.workflows import (
    ApprovalTask,
    Budget,
    LoopTask,
    OnQuota,
    PauseTask,
    Retry,
    RunTask,
    Task,
    Workflow,
)


async def work(ctx: Any, *rest: Any) -> Any:
    return None


BAD: list[tuple[Any, str]] = [
    (lambda: Workflow("w", [Task("a", work), Task("a", work)]), "'a'"),
    (lambda: Workflow("w", [Task("a", work, after=("b",))]), "'b'"),
    (lambda: Workflow("w", [Task("a", work, after=("a",))]), "circle"),
    (lambda: Workflow("w", [Task("a", work, after=("b",)), Task("b", work, after=("a",)), Task("c", work)]), "a, b"),
    (lambda: Workflow("w", []), "no tasks"),
    (lambda: Workflow(" ", [Task("a", work)]), "name"),
    (lambda: Workflow("w", [Task("a", work)], concurrency=0), "concurrency"),
    (lambda: Workflow("w", [Task("a", work)], concurrency=True), "concurrency"),
    (lambda: Workflow("w", [Task("a", work)], on_error="explode"), "on_error"),  # type: ignore[arg-type]
    (lambda: LoopTask("a", work, work, max_rounds=0), "max_rounds"),
    (lambda: LoopTask("a", work, work, max_rounds=True), "max_rounds"),
    (lambda: LoopTask("a", work, work, max_rounds=1.0), "max_rounds"),  # type: ignore[arg-type]
    (lambda: LoopTask("a", work, None, max_rounds=1), "check"),  # type: ignore[arg-type]
    (lambda: Task("", work), "key"),
    (lambda: Task("a.b", work), "key"),
    (lambda: Task(7, work), "key"),  # type: ignore[arg-type]
    (lambda: Task("a", work, after="bc"), "sequence"),
    (lambda: Task("a", "work"), "async function"),  # type: ignore[arg-type]
    (lambda: Task("a", work, timeout_s=0), "timeout_s"),
    (lambda: Task("a", work, timeout_s=float("nan")), "timeout_s"),
    (lambda: RunTask("a", work), "Loop or a Workflow"),  # type: ignore[arg-type]
    (lambda: ApprovalTask("a", " "), "approved"),
    (lambda: PauseTask("a", for_s=-1), "for_s"),
    (lambda: Retry(attempts=0), "attempts"),
    (lambda: Retry(delay_s=float("inf")), "delay_s"),
    (lambda: Retry(jitter=2), "jitter"),
    (lambda: Retry(backoff="random"), "backoff"),  # type: ignore[arg-type]
    (lambda: Budget(max_tokens=0), "max_tokens"),
    (lambda: Budget(max_cost_usd=0.5), "max_cost_usd"),  # type: ignore[arg-type]
    (lambda: Budget(max_cost_usd=Decimal("NaN")), "max_cost_usd"),
    (lambda: OnQuota(max_wait_s=-1), "max_wait_s"),
    (lambda: Workflow("w", ["a"]), "a task is a Task, LoopTask, RunTask, ApprovalTask or PauseTask, not 'a'"),
]


@pytest.mark.req("TC-15", "TC-19")
@pytest.mark.parametrize(("make", "said"), BAD)
def test_an_ill_defined_workflow_is_refused_where_it_is_written(make: Any, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        make()


def within(value: Any) -> Any:
    value["self"] = [value]
    return value


LOST: list[tuple[Any, str]] = [
    (float("nan"), "nan"),
    ({"a": [1, float("inf")]}, r"a\[1\]"),
    (-0.0, "-0.0"),
    (dt.date(2030, 1, 1), "date"),
    ({"x": (1, 2)}, "tuple"),
    ({1, 2}, "set"),
    ({1: "a"}, "string"),
    (b"x", "bytes"),
    ("\ud800", "surrogate"),
    (Decimal(1), "Decimal"),
    (within({}), "itself"),
    (1 << 2000, "bits"),
]


@pytest.mark.req("TC-17")
@pytest.mark.parametrize(("value", "said"), LOST)
def test_what_json_would_lose_is_refused_with_its_place(value: Any, said: str, tmp_path: Any) -> None:
    with pytest.raises(InvalidOutput, match=said):
        to_json(value)
    log = []

    async def attempt(ctx: Any, feedback: str | None) -> Any:
        return value

    async def check(ctx: Any, candidate: Any) -> Any:
        log.append(candidate)

    result = Place("memory", tmp_path).run(Workflow("w", [LoopTask("a", attempt, check, max_rounds=1)]))
    assert (result.status, result.code, log) == ("failed", "failed", [])
    with pytest.raises(InputError):
        Place("memory", tmp_path).run(Workflow("w", [Task("a", work)]), value)


def test_what_json_keeps_comes_back_equal_and_fresh() -> None:
    shared = [1]
    value = {"a": [shared, shared], "b": {"c": None, "d": True, "e": 1.5, "f": 1 << 900, "g": "ä\u2028\U0001f600"}}
    assert from_json(to_json(value)) == value
    assert from_json(to_json(value))["a"][0] is not shared


def test_a_function_that_is_not_async_fails_its_task_in_plain_words(tmp_path: Any) -> None:
    result = Place("memory", tmp_path).run(Workflow("w", [Task("a", lambda ctx: 1)]))  # type: ignore[arg-type,return-value]
    assert "async function" in result.document["outcome"]["evidence"]
