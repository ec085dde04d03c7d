"""Gates, questions and their answers, at any depth, over the death of the process that asked."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from support.places import LateLedger, Place, X
from treadle.app.workflows import Decision, run_workflow
from treadle.core.errors import AnswerRefused
from treadle.ports.callback import accept, reject
from treadle.spec.definitions import Loop, Person
from treadle.spec.workflows import ApprovalTask, Asks, LoopTask, PauseTask, RunTask, Task, Workflow


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Any) -> Place:
    return Place(request.param, tmp_path)


def decide(result: Any, decision: str = "approve", text: str = "fine", actor: str = "ada", **changes: Any) -> Decision:
    question = result.questions[0]
    given = {"execution_id": X, "task": question["task"], "request_id": question["request_id"]}
    return Decision(**{**given, "decision": decision, "text": text, "actor": actor, **changes})


def gated(log: list[str]) -> Workflow:
    async def work(ctx: Any) -> str:
        log.append(ctx.task)
        return ctx.task

    gate = ApprovalTask("gate", "Ship it?", after=("before",), actors=("ada", "bob"))
    return Workflow("gated", [Task("before", work), gate, Task("after", work, after=(gate,))])


@pytest.mark.req("TC-22")
def test_an_approval_waits_durably_and_what_was_decided_is_its_output(place: Place) -> None:
    log: list[str] = []
    result = place.run(gated(log))
    assert (result.status, result.code) == ("waiting-input", "approval")
    assert result.document["pending"]["prompt"] == "Ship it?"
    assert place.resume(gated(log)).status == "waiting-input"
    result = place.resume(gated(log), decisions=[decide(result)])
    assert (result.status, log) == ("done", ["before", "after"])
    assert (result.outputs["gate"]["actor"], result.outputs["gate"]["text"]) == ("ada", "fine")


@pytest.mark.req("TC-22")
def test_a_rejection_is_a_status_of_its_own_and_needs_a_reason(place: Place) -> None:
    log: list[str] = []
    result = place.run(gated(log))
    with pytest.raises(AnswerRefused, match="reason"):
        place.resume(gated(log), decisions=[decide(result, "reject", " ")])
    result = place.resume(gated(log), decisions=[decide(result, "reject", "not on a Friday", "bob")])
    assert (result.status, result.code, log) == ("rejected", "rejected", ["before"])
    assert "not on a Friday" in result.document["outcome"]["evidence"]
    assert place.resume(gated(log), retry_incomplete=True).status == "rejected"


@pytest.mark.req("TC-22", "TC-25")
def test_a_failed_task_is_tried_again_although_a_person_has_rejected_another(place: Place) -> None:
    tries: list[int] = []

    async def breaks_once(ctx: Any) -> str:
        tries.append(ctx.attempt)
        if len(tries) == 1:
            raise ValueError("boom")
        return "done"

    gate = ApprovalTask("gate", "Ship it?")
    flow = Workflow("both", [gate, Task("work", breaks_once)], on_error="continue")
    result = place.run(flow)
    result = place.resume(flow, decisions=[decide(result, "reject", "no")])
    assert (result.status, result.code) == ("failed", "failed")
    assert (place.resume(flow, retry_incomplete=True).status, tries) == ("rejected", [1, 2])


@pytest.mark.req("TC-22", "TC-23")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"execution_id": "x9"}, "x9"),
        ({"task": "before"}, "asks nothing"),
        ({"request_id": "gate.q7"}, "gate.q7"),
        ({"actor": "eve"}, "may not decide"),
        ({"actor": " "}, "name"),
        ({"decision": "answer"}, "decision"),
        ({"decision": "maybe"}, "maybe"),
    ],
)
def test_a_decision_that_fits_nothing_is_refused(place: Place, changes: dict[str, str], said: str) -> None:
    result = place.run(gated([]))
    with pytest.raises(AnswerRefused, match=said):
        place.resume(gated([]), decisions=[decide(result, **changes)])
    assert place.resume(gated([])).questions == result.questions


@pytest.mark.req("TC-22", "TC-23")
def test_all_decisions_are_checked_before_any_is_applied(place: Place) -> None:
    flow = Workflow("two", [ApprovalTask("a", "A?"), ApprovalTask("b", "B?")])
    result = place.run(flow)
    good = decide(result)
    bad = Decision(execution_id=X, task="b", request_id="b.q1", decision="reject", actor="ada")
    for wrong in ([good, bad], [good, good]):
        with pytest.raises(AnswerRefused):
            place.resume(flow, decisions=wrong)
    assert [q["request_id"] for q in place.resume(flow).questions] == ["a.q1", "b.q1"]
    both = [good, decide(result, task="b", request_id="b.q1")]
    assert place.resume(flow, decisions=both).status == "done"
    with pytest.raises(AnswerRefused):
        place.resume(flow, decisions=[good])


@pytest.mark.req("TC-22")
def test_a_decision_is_on_the_task_that_it_names_and_a_pause_has_its_own_people(place: Place) -> None:
    flow = Workflow("two", [ApprovalTask("a", "A?"), PauseTask("b", prompt="B?", actors=("bob",))])
    result = place.run(flow)
    with pytest.raises(AnswerRefused, match="does not ask"):
        place.resume(flow, decisions=[decide(result, task="a", request_id="b.q1", actor="bob")])
    with pytest.raises(AnswerRefused, match="may not decide"):
        place.resume(flow, decisions=[decide(result, task="b", request_id="b.q1", actor="ada")])
    assert [q["request_id"] for q in place.resume(flow).questions] == ["a.q1", "b.q1"]


def asking(log: list[Any]) -> Workflow:
    async def attempt(ctx: Any, feedback: str | None) -> str:
        talk = ctx.interaction
        log.append((ctx.round, ctx.attempt, talk.state, talk.answer and talk.answer.text, ctx.idempotency_key))
        if talk.answer is None:
            try:
                await talk.suspend("Which?", {"round": ctx.round}, choices=("red", "blue"))
            except Exception:  # noqa: BLE001
                log.append("caught")
        return talk.answer.text

    async def check(ctx: Any, candidate: str) -> Any:
        return accept() if candidate == "blue" else reject("not that")

    return Workflow("asking", [LoopTask("ask", attempt, check, max_rounds=3, interaction=Asks(actors=("ada",)))])


@pytest.mark.req("TC-04", "TC-23", "TC-05")
def test_a_question_is_asked_once_a_round_and_its_answer_replays_the_phase(place: Place) -> None:
    log: list[Any] = []
    result = place.run(asking(log))
    assert (result.status, result.code) == ("waiting-input", "question")
    for wrong in ({"text": "green"}, {"text": " "}, {"actor": "eve"}, {"decision": "approve"}):
        with pytest.raises(AnswerRefused):
            place.resume(asking(log), decisions=[decide(result, **{"decision": "answer", "text": "red", **wrong})])
    red = decide(result, "answer", "red")
    result = place.resume(asking(log), decisions=[red])
    assert result.status == "waiting-input"
    with pytest.raises(AnswerRefused):  # a stale answer never answers a later question
        place.resume(asking(log), decisions=[red])
    result = place.resume(asking(log), decisions=[decide(result, "answer", "blue")])
    assert (result.status, result.outputs) == ("done", {"ask": "blue"})
    key = f"{X}:ask:r{{}}:attempt"
    assert log == [
        (1, 1, None, None, key.format(1)),
        (1, 2, {"round": 1}, "red", key.format(1)),
        (2, 3, {"round": 1}, None, key.format(2)),
        (2, 4, {"round": 2}, "blue", key.format(2)),
    ]


@pytest.mark.req("TC-04")
@pytest.mark.parametrize("how", ["swallowed", "in a task group", "wrapped"])
def test_a_suspension_that_is_hidden_suspends_all_the_same_and_saved_state_is_found_again(
    place: Place, how: str
) -> None:
    async def work(ctx: Any) -> Any:
        if ctx.interaction.answer is None:
            await ctx.interaction.save([1, 2])
            if how == "in a task group":
                async with anyio.create_task_group() as group:
                    group.start_soon(ctx.interaction.suspend, "Well?")
            try:
                await ctx.interaction.suspend("Well?")
            except BaseException as signal:
                if how == "wrapped":
                    raise RuntimeError("it failed") from signal
                return "swallowed"
        return [ctx.interaction.state, ctx.interaction.answer.text, ctx.interaction.answer.actor]

    flow = Workflow("w", [Task("a", work, interaction=Asks())])
    result = place.run(flow)
    assert result.status == "waiting-input"
    result = place.resume(flow, decisions=[decide(result, "answer", "so so")])
    assert result.outputs == {"a": [[1, 2], "so so", "ada"]}


@pytest.mark.req("TC-04")
def test_saved_state_is_durable_before_the_callback_goes_on() -> None:
    async def work(ctx: Any) -> int:
        await ctx.interaction.save([1, 2])
        return [record.kind for record in await ledger.records(X)].count("state.saved")

    async def main() -> dict[str, Any]:
        flow = Workflow("w", [Task("a", work, interaction=Asks())])
        return (await run_workflow(flow, store=ledger, execution_id=X)).outputs

    ledger = LateLedger()
    assert anyio.run(main) == {"a": 1}


@pytest.mark.req("TC-04")
def test_a_suspension_stops_the_rounds_timer(place: Place) -> None:
    asked: list[Any] = []

    async def attempt(ctx: Any, feedback: str | None) -> str:
        asked.append(ctx)
        await ctx.interaction.suspend("Well?")
        raise AssertionError

    async def check(ctx: Any, candidate: str) -> Any:
        return accept()

    async def beside(ctx: Any) -> bool:
        while not asked:
            await anyio.lowlevel.checkpoint()
        await anyio.sleep(0.1)
        return asked[0].signal.aborted

    loop = LoopTask("a", attempt, check, max_rounds=1, timeout_s=0.02, interaction=Asks())
    result = place.run(Workflow("w", [loop, Task("b", beside)]))
    assert (result.status, result.outputs) == ("waiting-input", {"b": False})


@pytest.mark.req("TC-04")
def test_only_tasks_that_declare_it_can_ask(place: Place) -> None:
    async def work(ctx: Any) -> bool:
        return ctx.interaction is None

    assert place.run(Workflow("w", [Task("a", work)])).outputs == {"a": True}


def nested(log: list[Any], depth: int, evaluate: Any = None) -> Workflow:
    """A loop that a person evaluates, `depth` workflows deep."""

    async def act(ctx: Any, feedback: str | None) -> str:
        log.append((ctx.round, feedback))
        return f"draft {ctx.round}"

    what: Any = Loop(name="draft", act=act, evaluate=evaluate or Person(), max_rounds=3)
    for level in range(depth):
        task = RunTask("inner", what, "the task" if level == 0 else None)
        what = Workflow(f"level-{level}", [task])
    return what


@pytest.mark.req("TC-25", "TC-22")
@pytest.mark.parametrize("depth", [1, 3])
def test_a_childs_question_is_asked_at_the_top_and_every_decision_works(place: Place, depth: int) -> None:
    log: list[Any] = []
    result = place.run(nested(log, depth))
    assert (result.status, result.code) == ("waiting-input", "approval")
    result = place.resume(nested(log, depth), decisions=[decide(result, "reject", "shorter")])
    assert result.status == "waiting-input"
    result = place.resume(nested(log, depth), decisions=[decide(result, "approve")])
    assert result.status == "done"
    output = result.outputs["inner"]
    for _ in range(depth - 1):
        output = output["inner"]
    assert output == "draft 2"
    assert [round for round, _ in log] == [1, 2]
    assert "shorter" in log[1][1]


@pytest.mark.req("TC-22")
def test_a_pause_ends_by_itself_after_its_time_or_when_a_person_says_so(place: Place) -> None:
    flow = Workflow("w", [PauseTask("nap", for_s=3600), PauseTask("hold", prompt="Go on?", after=("nap",))])
    before = place.clock.wall_us()
    result = place.run(flow)
    assert (result.status, result.code) == ("waiting-input", "approval")
    assert place.clock.wall_us() - before >= 3600 * 1_000_000
    assert place.resume(flow, decisions=[decide(result)]).status == "done"
