"""What a running workflow says it waits for, from the documents of what runs inside it."""

from __future__ import annotations

from typing import Any

import pytest

from treadle.app.waits import with_waits, words
from treadle.core import workflow_events as ev
from treadle.kernel.workflow_states import WorkflowState
from treadle.runtime.workflow_document import document
from treadle.server.projections import execution
from unit.test_workflow_rules import begun, fold

SOON = 5_000_000


def doc(name: str, status: str = "running", **more: Any) -> dict[str, Any]:
    return {"execution_id": name, "status": status, "pending": None, **more}


def pending(kind: str, until_us: int | None = None) -> dict[str, Any]:
    return {"request_id": "q1", "kind": kind, "prompt": "why", "until_us": until_us}


def told(inner: dict[str, Any]) -> str:
    """Two workflows around it: what the outermost says. The innermost is named."""
    known = {"middle": doc("middle", inside=[{"execution_id": "inner", "task": "loop"}]), "inner": inner}
    outer = doc("outer", inside=[{"execution_id": "middle", "task": "build"}, {"execution_id": "gone", "task": "x"}])
    waits = with_waits(outer, known.get).get("waits", [])
    assert {one["child"] for one in waits} <= {"inner"}
    return words(waits, lambda us: f"T+{us // 1_000_000}")


@pytest.mark.req("TC-24", "SV-03")
@pytest.mark.parametrize(
    ("inner", "said"),
    [
        (doc("inner", "paused", pending=pending("quota", SOON)), "quota until T+5 (build)"),
        (doc("inner", "paused", pending=pending("quota")), "quota (build)"),
        (doc("inner", "paused"), "paused (build)"),
        (doc("inner", "waiting-input", pending=pending("question")), "a question (build)"),
        (doc("inner", "waiting-input", pending=pending("evaluation")), "a decision (build)"),
        (doc("inner", "done"), ""),
        (doc("inner"), ""),
    ],
)
def test_what_waits_inside_is_said_by_the_outermost(inner: dict[str, Any], said: str) -> None:
    assert told(inner) == said


def state_of(*tasks: ev.TaskSettings) -> WorkflowState:
    settings = ev.WorkflowSettings(name="w", version="1", tasks=tasks, concurrency=9)
    return fold(
        ev.WorkflowStarted(settings=settings, input_json="null", fingerprint={}, at_us=1), state=WorkflowState()
    )


@pytest.mark.req("SV-03", "CV-24")
def test_the_service_tells_it_as_it_is_recorded() -> None:
    state = fold(
        ev.QuotaPaused(task="limited", message="the day", requested_at_us=1, reset_at_us=SOON),
        state=begun("limited", "works"),
    )
    (wait,) = execution(document("x", state)).model_dump(by_alias=True)["waits"]
    assert (wait["for"], wait["task"], wait["prompt"], wait["until_us"]) == ("quota", "limited", "the day", SOON)


@pytest.mark.req("TC-24")
def test_a_question_beside_work_and_a_moment_without_any_are_told() -> None:
    state = begun("asks", "works")
    question = ev.Question(id="asks.q1", kind="question", prompt="Which?")
    state = fold(ev.TaskSuspended(task="asks", questions=(question,)), state=state)
    found = document("x", state)
    assert (found["status"], words(found["waits"], str)) == ("running", "a question (asks)")
    naps = state_of(*(ev.TaskSettings(key=key, kind="pause", for_us=1) for key in ("late", "early")))
    naps = fold(ev.TaskSuspended(task="late", until_us=9), ev.TaskSuspended(task="early", until_us=7), state=naps)
    assert words(document("x", naps)["waits"], str) == "until 7 (early)"


def test_people_are_named_before_what_ends_by_itself() -> None:
    state = begun("asks", "limited", "works")
    question = ev.Question(id="asks.q1", kind="approval", prompt="Ship it?")
    state = fold(
        ev.QuotaPaused(task="limited", message="the day", requested_at_us=1, reset_at_us=SOON),
        ev.TaskSuspended(task="asks", questions=(question,)),
        state=state,
    )
    found = document("x", state)
    assert words(found["waits"], str) == "a decision (asks) and 1 more"
    assert found["waits"][1]["until_us"] == SOON
