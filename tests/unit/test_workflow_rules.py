"""The rules of a workflow's accounts, limits and steering by themselves: events in, state out, nothing runs."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from treadle.core import workflow_events as ev
from treadle.core.errors import AnswerRefused, InputError
from treadle.core.usage import NO_USAGE, Usage
from treadle.core.values import replace
from treadle.kernel import workflow_budget as budgets
from treadle.kernel.steering import Answer, Cancel, Extend
from treadle.kernel.workflow import advance
from treadle.kernel.workflow_states import Totals, WorkflowState
from treadle.kernel.workflow_steering import to_events

PLAIN = ev.BudgetSettings()


def units(count: int) -> Usage:
    """Every counter differs from every other one."""
    return Usage(
        input_tokens=1000 * count,
        output_tokens=200 * count,
        cache_read_tokens=40 * count,
        cache_write_tokens=8 * count,
        requests=count,
        cost_usd=Decimal(count) / 100,
    )


def fold(*events: Any, state: WorkflowState) -> WorkflowState:
    for event in events:
        state = advance(state, event)
    return state


def begun(*keys: str, budget: ev.BudgetSettings = PLAIN, **options: Any) -> WorkflowState:
    """A workflow whose tasks have all begun their first phase."""
    tasks = tuple(ev.TaskSettings(key=key, kind="task") for key in keys)
    settings = ev.WorkflowSettings(name="w", version="1", tasks=tasks, budget=budget, concurrency=9, **options)
    started = ev.WorkflowStarted(settings=settings, input_json="null", fingerprint={}, at_us=1)
    phases = [ev.PhaseStarted(task=key, round=1, phase="perform", attempt=1) for key in keys]
    return fold(started, *phases, state=WorkflowState())


# ---- accounts


@pytest.mark.req("TC-10", "TC-21")
def test_what_is_announced_is_held_until_it_is_reported_or_its_phase_is_over() -> None:
    state = begun("a", "b")
    state = fold(
        ev.ChargeAnnounced(task="b", receipt="keep", reserve=units(10)),
        ev.ChargeAnnounced(task="a", receipt="r1", reserve=units(3)),
        ev.ChargeAnnounced(task="a", receipt="r2", reserve=units(5)),
        ev.ChildStarted(task="a", child="c", key="k", reserve=units(7)),
        ev.ChildStarted(task="a", child="c", key="k", reserve=units(11)),
        state=state,
    )
    assert state.reserved == units(36)
    state = fold(
        ev.UsageCharged(task="a", usage=units(2), receipt="r1", incomplete="of this the tokens"),
        ev.UsageCharged(task="a", usage=units(1)),
        state=state,
    )
    assert (state.reserved, state.total.usage) == (units(33), units(3))
    assert state.incomplete == "of this the tokens", "what is missing once stays missing"
    state = fold(ev.ChildCharged(task="a", child="c", usage=units(6), in_doubt=units(1)), state=state)
    assert (state.reserved, state.total.usage, state.total.in_doubt) == (units(15), units(9), units(1))
    state = fold(
        ev.ChildStarted(task="a", child="c", key="k", reserve=units(4)),
        ev.PhaseFailed(task="a", code="failed", message="no", at_us=1, retryable=False),
        state=state,
    )
    assert state.reserved == units(10), "only what the other task holds"
    assert state.total.in_doubt == units(6), "r2 was announced and never reported"
    assert state.active["a"].charges == ()


@pytest.mark.req("TC-21", "TC-28")
def test_a_child_is_charged_in_pieces_also_after_its_task_has_failed() -> None:
    state = begun("a", "b")
    state = fold(
        ev.ChildStarted(task="a", child="c", key="k", reserve=units(7)),
        ev.PhaseFailed(task="a", code="failed", message="no", at_us=1, retryable=False),
        ev.TaskFailed(task="a", code="failed", message="no"),
        ev.ChildCharged(task="a", child="c", usage=units(2), in_doubt=units(1), incomplete="the cost"),
        ev.ChildCharged(task="a", child="c", usage=units(3), in_doubt=units(4)),
        state=state,
    )
    child = state.failed["a"].children["c"]
    assert (child.usage, child.in_doubt, child.reserve) == (units(5), units(5), NO_USAGE)
    assert (state.total.usage, state.total.in_doubt, state.reserved) == (units(5), units(5), NO_USAGE)
    assert state.incomplete == "the cost"


@pytest.mark.req("TC-03", "TC-22")
def test_what_depends_on_a_rejected_task_is_skipped_again_when_others_are_tried_again() -> None:
    tasks = (
        *(ev.TaskSettings(key=key, kind="task") for key in ("no", "x")),
        ev.TaskSettings(key="after", kind="task", after=("no",)),
    )
    settings = ev.WorkflowSettings(name="w", version="1", tasks=tasks, concurrency=9)
    state = fold(
        ev.WorkflowStarted(settings=settings, input_json="null", fingerprint={}, at_us=1),
        ev.PhaseStarted(task="no", round=1, phase="perform", attempt=1),
        ev.PhaseStarted(task="x", round=1, phase="perform", attempt=1),
        ev.PhaseFailed(task="no", code="rejected", message="no", at_us=1, retryable=False),
        ev.TaskFailed(task="no", code="rejected", message="no"),
        ev.TaskSkipped(task="after", because="no"),
        ev.PhaseFailed(task="x", code="failed", message="no", at_us=1, retryable=False),
        ev.TaskFailed(task="x", code="failed", message="no"),
        ev.WorkflowStopped(status="failed", code="rejected", kind="rejected", evidence="no"),
        ev.WorkflowReopened(actor="ada"),
        state=WorkflowState(),
    )
    assert (tuple(state.failed), tuple(state.ready), dict(state.doomed.items())) == (("no",), ("x",), {"after": "no"})


# ---- limits


def spent(state: WorkflowState, *, usage: int = 0, in_doubt: int = 0, reserved: int = 0, **total: int) -> WorkflowState:
    totals = Totals(usage=units(usage), in_doubt=units(in_doubt), **total)
    return replace(state, total=totals, reserved=units(reserved))


@pytest.mark.req("TC-21")
def test_limits_on_attempts_and_time_are_reached_by_what_comes_next() -> None:
    state = spent(begun("a", budget=ev.BudgetSettings(max_attempts=3, max_duration_us=5_000_000)), attempts=3)
    assert budgets.reached(state, attempt=True) == "max_attempts 3 reached (3)"
    assert budgets.reached(state, attempt=False) == ""
    assert "max_time 5 s" in budgets.reached(spent(state, us=5_000_000), attempt=False)
    capped = begun("a", budget=ev.BudgetSettings(max_requests=10))
    assert "max_requests 10" in budgets.reached(spent(capped, usage=4, in_doubt=6), attempt=False)


@pytest.mark.req("TC-21")
@pytest.mark.parametrize("budget", [ev.BudgetSettings(max_requests=10), ev.BudgetSettings(max_cost_usd=Decimal("0.1"))])
def test_a_charge_that_just_fits_is_admitted_and_what_is_in_doubt_is_spent(budget: ev.BudgetSettings) -> None:
    state = begun("a", budget=budget)
    assert budgets.admission(spent(state, usage=4, in_doubt=6), units(1)) == "no"
    assert budgets.admission(spent(state, in_doubt=2, reserved=1), units(7)) == "yes"
    assert budgets.admission(spent(state, in_doubt=2, reserved=1), units(8)) == "wait"
    assert budgets.admission(spent(state, usage=9), units(8)) == "yes", "alone it may pass the limit"


@pytest.mark.req("TC-21")
def test_what_a_report_leaves_out_matters_only_under_a_limit_that_needs_it() -> None:
    no_tokens = Usage(requests=1, cost_usd=Decimal(1))
    no_cost = Usage(requests=1, input_tokens=5)
    assert budgets.missing(begun("a", budget=ev.BudgetSettings(max_requests=9)), no_tokens) == ""
    assert "tokens" in budgets.missing(begun("a", budget=ev.BudgetSettings(max_output_tokens=9)), no_tokens)
    dollars = ev.BudgetSettings(max_cost_usd=Decimal(1))
    assert "cost" in budgets.missing(begun("a", budget=dollars), no_cost)
    assert budgets.missing(begun("a", budget=dollars), units(1)) == ""
    assert budgets.missing(begun("a", budget=dollars, priced=True), no_cost) == ""
    assert budgets.missing(begun("a", budget=dollars), Usage(input_tokens=5)) == "", "no request, no price"


@pytest.mark.req("TC-21")
def test_room_counts_what_is_held_and_is_never_less_than_nothing() -> None:
    state = begun("a", budget=ev.BudgetSettings(max_cost_usd=Decimal("0.10"), max_tokens=12_480))
    one = units(1).tokens
    assert budgets.room(spent(state, usage=1, in_doubt=2, reserved=3)) == (Decimal("0.04"), 12_480 - 6 * one)
    assert budgets.room(spent(state, usage=99)) == (Decimal(0), 0)
    assert budgets.room(begun("a")) == (None, None)


@pytest.mark.req("TC-21")
def test_a_charge_waits_only_for_what_can_still_be_settled() -> None:
    state = fold(ev.ChargeAnnounced(task="a", receipt="r", reserve=units(1)), state=begun("a", "b"))
    assert not budgets.may_settle(state, "a", ())
    assert budgets.may_settle(state, "b", ())
    assert not budgets.may_settle(state, "b", ("a",)), "it waits, too"
    own = fold(ev.ChildStarted(task="a", child="c", key="k", reserve=units(1)), state=begun("a", "b"))
    assert budgets.may_settle(own, "a", ("a", "b")), "its child runs"
    assert not budgets.may_settle(fold(ev.ChildCharged(task="a", child="c", usage=units(1)), state=own), "b", ())


# ---- standing and steering

APPROVE = ev.Question(id="q1", kind="approval", prompt="go on?")


def asking(*questions: ev.Question, others: tuple[str, ...] = ()) -> WorkflowState:
    return fold(ev.TaskSuspended(task="a", questions=questions, state_json="null"), state=begun("a", *others))


@pytest.mark.req("TC-22")
def test_it_waits_for_a_person_only_where_nothing_goes_on_by_itself() -> None:
    question = replace(APPROVE, id="q2", kind="question")
    assert budgets.standing(asking(APPROVE)) == ("waiting-input", "approval")
    assert budgets.standing(asking(APPROVE, question)) == ("waiting-input", "question")
    assert budgets.standing(asking(APPROVE, others=("b",))) == ("running", "")
    timed = fold(
        ev.PhaseFailed(task="b", code="failed", message="no", at_us=1),
        ev.RetryScheduled(task="b", until_us=9),
        state=asking(APPROVE, others=("b",)),
    )
    assert (tuple(timed.timers), budgets.standing(timed)) == (("b",), ("running", ""))


@pytest.mark.req("TC-22")
def test_of_two_questions_of_a_task_the_second_is_answered_too() -> None:
    state = asking(APPROVE, replace(APPROVE, id="q2"))
    for id in ("q1", "q2"):
        said = Answer(request_id=id, decision="approve", text="", actor="ada")
        state = fold(*to_events(state, [said], 2), state=state)
    assert len(state.active["a"].answers) == 2
    with pytest.raises(AnswerRefused, match="Nothing is waiting"):
        to_events(state, [Answer(request_id="q2", decision="approve", text="", actor="ada")], 3)


@pytest.mark.req("TC-22", "TC-23")
def test_what_cannot_be_granted_is_refused() -> None:
    ending = Answer(request_id="q1", decision="reject", text="no", actor="ada", end=True)
    with pytest.raises(AnswerRefused, match="cancel ends the workflow"):
        to_events(asking(APPROVE), [ending], 2)
    with pytest.raises(InputError, match="which limit"):
        to_events(begun("a"), [Extend(actor="ada")], 2)
    over = fold(*to_events(begun("a"), [Cancel(actor="ada")], 2), state=begun("a"))
    for late in (Cancel(actor="ada"), Extend(actor="ada", max_tokens=5)):
        with pytest.raises(InputError, match="ended"):
            to_events(over, [late], 3)


@pytest.mark.req("TC-21")
def test_more_turns_of_a_workflow_are_more_requests() -> None:
    state = begun("a", budget=ev.BudgetSettings(max_requests=3))
    extended = fold(*to_events(state, [Extend(actor="ada", max_turns=8)], 2), state=state)
    assert extended.settings.budget.max_requests == 8
    with pytest.raises(InputError, match="8 already"):
        to_events(extended, [Extend(actor="ada", max_turns=8)], 3)
