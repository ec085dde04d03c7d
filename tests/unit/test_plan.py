"""The plan of act: how it is written, what makes a step done, when act may finish."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.machine import Machine, call, finish, refold
from support.plans import run, update, write_plan
from treadle.core import events as ev
from treadle.core.errors import InputError, PlanRefused
from treadle.core.messages import ToolCall, ToolResult, ToolsFinished
from treadle.core.plans import MOST_STEPS, plan_digest, read_steps
from treadle.core.values import replace
from treadle.kernel import actions as act
from treadle.kernel.plan_standing import completed_count, is_complete, next_step, open_steps, verified_count
from treadle.kernel.plan_words import as_document, plan_prompt, steps_as_written
from treadle.kernel.steering import EditPlan, MarkStep, to_event


class Planned(Machine):
    """A machine whose commands fail where they are listed."""

    failing: tuple[str, ...] = ()

    def outcome(self, action: act.Action) -> Any:
        if not isinstance(action, act.RunTools):
            return super().outcome(action)
        return ToolsFinished(
            parent=self.state.agent.leaf or 0, results=tuple(self._result(one) for one in action.calls), us=1
        )

    def _result(self, one: ToolCall) -> ToolResult:
        assert isinstance(one.args, dict)
        bad = one.args.get("command") in self.failing
        return ToolResult(id=one.id, content=f"E assert 1 == 2\n[exit code {int(bad)}]", passed=not bad)

    def statuses(self) -> list[str]:
        return [step.status for step in self.state.plan.steps]


TWO = ({"title": "mend it", "check": "pytest -q"}, {"title": "tidy up", "check": "ruff check"})


def planned(*turns: Any, failing: tuple[str, ...] = (), verdicts: tuple[Any, ...] = (True,), **changes: Any) -> Planned:
    machine = Planned(turns=list(turns), verdicts=list(verdicts))
    machine.failing = failing
    machine.start(**changes)
    return machine


# ---- writing it


@pytest.mark.req("AG-06")
@pytest.mark.parametrize(
    ("steps", "path"),
    [
        ([], "steps"),
        ("mend it", "steps"),
        ([{}], "steps[0].title"),
        ([{"title": " "}], "steps[0].title"),
        ([{"title": "x" * 201}], "steps[0].title"),
        ([{"title": "x", "chek": "true"}], "steps[0].chek"),
        ([{"title": "x"}, 7], "steps[1]"),
        ([{"title": "x", "id": "a"}, {"title": "y", "id": "a"}], "steps[1].id"),
        ([{"title": "x", "after": ["9"]}], "steps[0].after"),
        ([{"title": "x", "after": "1"}], "steps[0].after"),
        ([{"title": "x", "after": ["1"]}], "steps"),
        ([{"title": "x", "after": ["2"]}, {"title": "y", "after": ["1"]}], "steps"),
        ([{"title": "x", "check": " "}], "steps[0].check"),
        ([{"title": "x", "check": {"args": {}}}], "steps[0].check.tool"),
        ([{"title": "x", "check": {"tool": "t", "args": 3}}], "steps[0].check.args"),
        (["x"] * (MOST_STEPS + 1), "steps"),
        ([{"title": "x", "check": "y" * 1900}] * 40, "steps"),
        ([{"title": "a\x1bb"}], "steps[0].title"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_with_the_path(steps: Any, path: str) -> None:
    with pytest.raises(PlanRefused) as refusal:
        read_steps(steps)
    assert refusal.value.path == path
    assert str(refusal.value).startswith(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "title", "check", "after", "tool", "args", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.req("SE-03")
@given(JSON)
def test_whatever_is_written_is_a_plan_or_refused(value: Any) -> None:
    try:
        steps = read_steps(value)
    except PlanRefused:
        return
    assert read_steps(steps_as_written(steps)) == steps
    assert plan_digest(steps)


def test_the_digest_knows_every_part_of_a_step_and_their_order() -> None:
    plans: list[Any] = [
        ["a", "b"],
        ["b", "a"],
        ["a", {"title": "b", "check": "c"}],
        ["a", {"title": "b", "after": ["1"]}],
        ["a", {"title": "b", "id": "c"}],
        ["a", {"title": "b", "check": {"tool": "c", "args": {"d": 1}}}],
    ]
    assert len({plan_digest(read_steps(plan)) for plan in plans}) == len(plans)


@pytest.mark.req("AG-06")
def test_a_refused_plan_is_told_to_the_model_and_leaves_the_old_one() -> None:
    machine = planned([write_plan(*TWO)], [write_plan({"title": "x", "after": ["1"]}, id="bad")], "words")
    machine.to(act.CallModel)
    machine.perform(machine.action())
    machine.to(act.CallModel)
    machine.perform(machine.action())
    machine.to(act.CallModel)
    result = machine.seen(ToolsFinished)[-1].results[0]
    assert result.status == "error"
    assert "wait for one another: 1" in result.content
    assert [step.step.title for step in machine.state.plan.steps] == ["mend it", "tidy up"]


@pytest.mark.req("AG-06")
def test_a_plan_has_order_count_and_end() -> None:
    machine = planned([write_plan("a", {"title": "b", "after": ["3"]}, {"title": "c"})], "words")
    assert not is_complete(machine.state.plan), "no plan is not a complete one"
    machine.to(act.CallModel)
    machine.perform(machine.action())
    machine.to(act.CallModel)
    plan = machine.state.plan
    assert (next_step(plan).step.id, completed_count(plan), is_complete(plan)) == ("1", 0, False)
    machine.emit(to_event(machine.state, MarkStep(actor="ada", step="1", status="done", reason="seen"), 1))
    plan = machine.state.plan
    assert (next_step(plan).step.id, completed_count(plan)) == ("3", 1), "2 waits for 3"
    for step in ("3", "2"):
        machine.emit(to_event(machine.state, MarkStep(actor="ada", step=step, status="done", reason="seen"), 1))
    assert (is_complete(machine.state.plan), next_step(machine.state.plan)) == (True, None)


# ---- what makes a step done


@pytest.mark.req("AG-08")
def test_a_step_is_done_only_when_its_check_has_succeeded() -> None:
    machine = planned(
        [write_plan(*TWO)],
        [call("edit_file", "mutating", path="a")],
        [run("pytest -q")],
        [run("pytest -q", "again")],
        [run("ruff check")],
        [finish()],
        failing=("pytest -q",),
    )
    seen: list[list[str]] = []
    for _ in range(5):
        machine.to(act.CallModel)
        seen.append(machine.statuses())
        machine.perform(machine.action())
        if len(seen) == 3:
            machine.to(act.CallModel)
            machine.failing = ()
    machine.to(act.CallModel)
    seen.append(machine.statuses())
    assert seen == [
        [],
        ["pending", "pending"],
        ["in-progress", "pending"],
        ["failed", "pending"],
        ["done", "pending"],
        ["done", "done"],
    ]
    assert [(m.step, m.status, m.by) for m in machine.seen(ev.StepMoved)] == [
        ("1", "in-progress", "work"),
        ("1", "failed", "check"),
        ("1", "done", "check"),
        ("2", "in-progress", "work"),
        ("2", "done", "check"),
    ]
    assert "assert 1 == 2" in machine.seen(ev.StepMoved)[1].reason
    assert machine.seen(ev.StepMoved)[2].evidence == "r1.act.t3.c0"
    assert machine.rest().status == "done"
    assert refold(machine.events) == machine.state


@pytest.mark.req("AG-08")
def test_the_success_of_a_check_counts_for_one_step_at_a_time() -> None:
    same = {"title": "b", "check": "pytest -q"}
    machine = planned(
        [write_plan({**same, "title": "a"}, same)], [run("pytest -q")], [run("pytest -q", "again")], "words"
    )
    for expected in ([], ["pending", "pending"], ["done", "pending"], ["done", "done"]):
        machine.to(act.CallModel)
        assert machine.statuses() == expected
        machine.perform(machine.action())


@pytest.mark.req("AG-08")
@pytest.mark.parametrize("status", ["error", "unknown", "not-run"])
def test_a_check_without_a_success_verifies_nothing(status: str) -> None:
    machine = planned([write_plan(TWO[0])], [run("pytest -q")])
    machine.to(act.RunTools)
    key = machine.action().calls[0].id  # type: ignore[union-attr]
    result = ToolResult(id=key, content="?", status=status)
    machine.emit(ToolsFinished(parent=machine.state.agent.leaf or 0, results=(result,), us=1))
    machine.to(act.CallModel)
    assert machine.statuses() != ["done"]


@pytest.mark.req("AG-08")
def test_the_word_of_the_model_makes_no_step_with_a_check_done() -> None:
    machine = planned([write_plan(*TWO)], [update("1", "done")], "words")
    for _ in range(2):
        machine.to(act.CallModel)
        machine.perform(machine.action())
    machine.to(act.CallModel)
    result = machine.seen(ToolsFinished)[-1].results[0]
    assert (result.status, machine.statuses()) == ("error", ["pending", "pending"])
    assert "pytest -q" in result.content


@pytest.mark.req("AG-08")
def test_a_step_without_a_check_is_done_when_its_last_call_has_succeeded_and_is_not_verified() -> None:
    machine = planned(
        [write_plan("look around")],
        [update("1", "in-progress")],
        [update("1", "done")],
        [run("make")],
        [update("1", "done")],
        [run("make", "again")],
        [update("1", "done")],
        failing=("make",),
    )
    said: list[str] = []
    for turn in range(7):
        machine.to(act.CallModel)
        if turn == 5:
            machine.failing = ()
        machine.perform(machine.action())
    machine.to(act.CallModel)
    said = [r.content for e in machine.seen(ToolsFinished) for r in e.results if r.status == "error"]
    assert ["no call has been made" in said[0], "last call did not succeed" in said[1]] == [True, True]
    plan = machine.state.plan
    assert (completed_count(plan), verified_count(plan)) == (1, 0)
    assert (plan.steps[0].by, plan.steps[0].evidence) == ("model", "r1.act.t5.c0")


@pytest.mark.req("AG-08")
def test_a_persons_mark_satisfies_the_gate_and_is_never_verified() -> None:
    machine = planned([write_plan(TWO[0])], [finish()])
    machine.to(act.CallModel)
    machine.perform(machine.action())
    machine.to(act.CallModel)
    with pytest.raises(InputError, match="reason"):
        to_event(machine.state, MarkStep(actor="ada", step="1", status="done", reason=" "), 1)
    with pytest.raises(InputError, match="not in the plan"):
        to_event(machine.state, MarkStep(actor="ada", step="7", status="done", reason="x"), 1)
    machine.emit(to_event(machine.state, MarkStep(actor="ada", step="1", status="done", reason="saw it"), 1))
    plan = machine.state.plan
    assert (is_complete(plan), completed_count(plan), verified_count(plan)) == (True, 1, 0)
    assert "marked by ada: saw it" in plan_prompt(machine.state)
    assert machine.rest().status == "done"


@pytest.mark.req("AG-08")
def test_work_that_no_tool_has_done_begins_no_step() -> None:
    machine = planned([write_plan(*TWO)], "words", [call("ask_person", "ask", question="?")])
    machine.to(act.Wait)
    assert machine.statuses() == ["pending", "pending"]


# ---- the gate of finish


@pytest.mark.req("AG-06")
def test_finish_with_open_steps_returns_them_and_does_not_end_act() -> None:
    machine = planned([write_plan(*TWO)], [run("pytest -q")], [finish()], [run("ruff check")], [finish()])
    for _ in range(3):
        machine.to(act.CallModel)
        machine.perform(machine.action())
    machine.to(act.CallModel)
    result = machine.seen(ToolsFinished)[-1].results[0]
    assert result.status == "not-run"
    assert "2. tidy up" in result.content
    assert "mend it" not in result.content
    assert machine.state.phase == "act"
    assert machine.rest().status == "done"


@pytest.mark.req("AG-06")
def test_the_last_check_and_finish_may_come_in_one_batch() -> None:
    machine = planned([write_plan(TWO[0])], [run("pytest -q"), finish()])
    assert machine.rest().status == "done"


@pytest.mark.req("AG-06")
def test_without_a_plan_finish_ends_act_at_once() -> None:
    machine = planned([finish()])
    machine.to(act.RunCheck, act.FinishAct)
    assert machine.state.total.turns == 1


@pytest.mark.req("AG-06", "AG-11")
def test_finish_again_and_again_is_told_off_and_then_stops_the_loop() -> None:
    turns = [[replace(finish(), id=f"f{number}")] for number in range(9)]
    machine = planned([write_plan(TWO[0])], *turns)
    state = machine.rest()
    assert (state.status, state.code) == ("failed", "thrash")
    assert state.total.turns == 7, "six refused ones"
    assert "finish was called 6 times" in state.evidence
    contents = [event.results[0].content for event in machine.seen(ToolsFinished)[1:]]
    assert ["again" in content for content in contents] == [False, False, True, True, True, True]


@pytest.mark.req("AG-06")
def test_a_failed_step_is_tried_again_or_replaced_and_blocks_nothing() -> None:
    machine = planned(
        [write_plan({"title": "a", "check": "make"}, {"title": "b", "check": "pytest -q", "after": ["1"]})],
        [run("make")],
        [update("2", "in-progress")],
        [call("edit_file", "mutating", path="m")],
        [write_plan({"title": "a", "check": "ninja"}, {"title": "b", "check": "pytest -q"}, id="another")],
        [run("ninja")],
        [run("pytest -q")],
        [finish()],
        failing=("make",),
    )
    for _ in range(4):
        machine.to(act.CallModel)
        machine.perform(machine.action())
    machine.to(act.CallModel)
    refused = next(r for e in machine.seen(ToolsFinished) for r in e.results if r.id == "update-2-in-progress")
    assert "waits for 1" in refused.content
    assert machine.statuses() == ["in-progress", "pending"], "the next call tries it again"
    assert machine.rest().status == "done"


@pytest.mark.req("AG-06")
def test_another_plan_keeps_the_progress_of_steps_that_stay() -> None:
    changed = {"title": "tidy up", "check": "ruff format"}
    machine = planned(
        [write_plan(*TWO)], [run("pytest -q")], [run("ruff check")], [write_plan(TWO[0], changed, id="x")], "w"
    )
    for _ in range(4):
        machine.to(act.CallModel)
        machine.perform(machine.action())
    machine.to(act.CallModel)
    assert machine.statuses() == ["done", "pending"], "another check has not succeeded yet"


# ---- where it is kept


@pytest.mark.req("AG-06")
def test_the_plan_outlives_a_rejected_round_and_is_in_every_prompt() -> None:
    machine = planned([write_plan(TWO[0])], [run("pytest -q"), finish()], "words", verdicts=("not yet", True))
    machine.to(act.RunCheck)
    machine.perform(machine.action())
    machine.to(act.CallModel)
    assert machine.state.round == 2
    assert "[x] 1. mend it" in plan_prompt(machine.state)
    assert machine.state.plan.steps[0].status == "done"
    assert len(open_steps(machine.state.plan)) == 0


def test_an_evaluator_leaves_the_plan_alone() -> None:
    machine = planned(
        [write_plan(TWO[0])], [run("pytest -q"), finish()], [call("read_file", path="a")], evaluate="agent"
    )
    machine.to(act.FinishAct)
    before = machine.state.plan
    machine.to(act.RunTools)
    machine.perform(machine.action())
    machine.to(act.IntendModel)
    assert machine.state.plan == before


@pytest.mark.req("AG-06")
def test_a_person_edits_the_plan_that_they_have_seen() -> None:
    machine = planned([write_plan(*TWO)], "words")
    machine.to(act.CallModel)
    machine.perform(machine.action())
    machine.to(act.CallModel)
    steps = read_steps([TWO[0], "and a third"])
    seen = machine.state.plan.digest
    machine.emit(to_event(machine.state, EditPlan(actor="ada", steps=steps, digest=seen), 1))
    assert [step.step.title for step in machine.state.plan.steps] == ["mend it", "and a third"]
    with pytest.raises(InputError, match="changed meanwhile"):
        to_event(machine.state, EditPlan(actor="bob", steps=read_steps(TWO), digest=seen), 1)
    with pytest.raises(InputError, match="as it is"):
        to_event(machine.state, EditPlan(actor="bob", steps=steps), 1)


def test_the_document_says_what_is_done_and_what_of_it_is_verified() -> None:
    machine = planned([write_plan(*TWO)], [run("pytest -q")], "words")
    assert as_document(machine.state.plan) is None
    for _ in range(2):
        machine.to(act.CallModel)
        machine.perform(machine.action())
    machine.to(act.CallModel)
    found = as_document(machine.state.plan)
    assert found is not None
    assert (found["done"], found["verified"], found["complete"], found["next"]) == (1, 1, False, "2")
    assert [step["status"] for step in found["steps"]] == ["done", "pending"]
