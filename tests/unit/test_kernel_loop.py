"""Rounds, phases, counters and endings of the loop machine."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from support.machine import FEE, RESERVE, Machine, call, finish, refold, results, started, verdict
from treadle.app.ending import next_command
from treadle.core import events as ev
from treadle.core.errors import AnswerRefused, InvalidStateTransition, OutsideRound
from treadle.core.messages import Prompted, ToolsFinished
from treadle.core.settings import AgentSettings, Limits, Policy
from treadle.core.usage import Usage
from treadle.core.values import replace
from treadle.kernel import actions as act
from treadle.kernel.loop import advance

PLAN = "first I look"


def one_round(*turns: object, **kwargs: object) -> list[object]:
    return [PLAN, *turns, [finish("did it")]]


@pytest.mark.req("FR-04", "FR-05")
def test_a_rejection_moves_to_the_next_round_and_an_acceptance_ends() -> None:
    machine = Machine(turns=[*one_round(), *one_round()], verdicts=["wrong", True]).start(max_rounds=3)
    machine.to(act.RunCheck)
    assert (machine.state.iteration, machine.state.phase) == (0, "evaluate")
    machine.perform(machine.action())
    assert (machine.state.iteration, machine.state.phase) == (1, "act")
    assert machine.rest().code == "accepted"
    assert machine.state.iteration == 1


@pytest.mark.req("FR-04", "TC-15")
def test_the_last_iteration_is_evaluated_and_its_rejection_leaves_the_iteration_as_it_is() -> None:
    machine = Machine(turns=[*one_round(), *one_round()], verdicts=["no", "still no"]).start(max_rounds=2)
    state = machine.rest()
    assert (state.status, state.code, state.iteration) == ("failed", "exhausted", 1)
    assert "still no" in state.evidence
    assert len(machine.seen(ev.Judged)) == 2


@pytest.mark.req("TC-14", "FR-06")
def test_feedback_reaches_the_next_act_verbatim_from_the_preserved_leaf() -> None:
    machine = Machine(turns=[*one_round(), *one_round()], verdicts=["line 1\n  line 2", True]).start()
    machine.to(act.RunCheck)
    leaf = machine.state.preserved_leaf
    machine.rest()
    feedback = next(e for e in machine.seen(Prompted) if e.origin == "feedback")
    assert "line 1\n  line 2" in feedback.text
    assert feedback.parent == leaf is not None


def test_a_fresh_history_starts_each_round_from_the_root_with_task_and_feedback() -> None:
    fresh = AgentSettings(history="fresh")
    machine = Machine(turns=[*one_round(), *one_round()], verdicts=["wrong", True]).start(act_agent=fresh)
    machine.rest()
    feedback = next(e for e in machine.seen(Prompted) if e.origin == "feedback")
    assert feedback.parent is None
    assert feedback.text.startswith("the task")
    assert "wrong" in feedback.text


@pytest.mark.req("FR-07")
def test_output_and_receipt_arrive_with_evaluate_and_move_into_the_rejected_iteration() -> None:
    machine = Machine(turns=[*one_round(), *one_round()], verdicts=["bad", True]).start()
    assert machine.state.last_output_json is None
    machine.to(act.RunCheck)
    assert machine.state.last_output_json == '"did it"'
    assert machine.state.last_receipt_json == "null"
    machine.perform(machine.action())
    assert machine.state.last_output_json is None
    assert machine.state.last_receipt_json is None
    rejected = json.loads(machine.state.last_rejected_json or "")
    assert (rejected["output_json"], rejected["scope_receipt_json"]) == ('"did it"', "null")


@pytest.mark.req("FR-08", "FR-09")
def test_evaluators_turns_count_in_the_totals_and_never_against_act() -> None:
    machine = Machine(turns=[*one_round(), [verdict(False, "no")], *one_round(), [verdict(True)]])
    state = machine.start(evaluate="agent", act_policy=Policy(max_turns=4)).rest()
    assert state.code == "accepted"
    assert (state.total.turns, state.act.turns) == (6, 4)
    assert state.total.usage.cost_usd == 6 * FEE.cost_usd
    assert state.act.usage.cost_usd == 4 * FEE.cost_usd
    assert state.total.us == 6 * 1000


@pytest.mark.req("FR-08", "FR-09")
def test_the_time_of_a_check_counts_in_the_total_and_not_as_acts() -> None:
    state = Machine(turns=one_round(), verdicts=[True]).start().rest()
    assert (state.total.us, state.act.us) == (3 * 1000, 2 * 1000)


@pytest.mark.req("FR-09")
@pytest.mark.parametrize(
    ("policy", "word"),
    [
        (Policy(max_turns=3), "max_turns"),
        (Policy(max_cost_usd=Decimal("0.03")), "max_cost"),
        (Policy(max_duration_us=3000), "max_time"),
    ],
)
def test_acts_policy_trips_at_its_limit_before_the_next_intent(policy: Policy, word: str) -> None:
    machine = Machine(turns=[PLAN, [call("a")], [call("a")], [call("a")]]).start(act_policy=policy)
    state = machine.rest()
    assert (state.status, state.code) == ("stopped", "limit")
    assert word in state.evidence
    assert "act policy" in state.evidence
    assert state.act.turns == (3 if word != "max_time" else 2)
    assert len(machine.seen(ev.ModelIntended)) == state.act.turns


@pytest.mark.req("FR-09", "FR-10")
def test_time_that_runs_out_while_calls_run_stops_it_and_they_run_when_it_is_extended() -> None:
    machine = Machine(turns=[PLAN, [call("a")], *one_round()]).start(limits=Limits(max_duration_us=5000))
    waiting = machine.to(act.RunTools)
    machine.emit(ev.Interrupted(epoch=1, reason="deadline", us=5000))
    assert (machine.rest().code, machine.state.agent.answered) == ("limit", 0)
    machine.emit(ev.Extended(actor="ada", max_duration_us=50_000))
    assert machine.action() == waiting


@pytest.mark.req("FR-09")
@pytest.mark.parametrize("limits", [Limits(max_turns=2), Limits(max_cost_usd=Decimal("0.02")), Limits(max_tokens=30)])
def test_total_limits_stop_before_evaluate(limits: Limits) -> None:
    machine = Machine(turns=one_round()).start(limits=limits)
    state = machine.rest()
    assert (state.status, state.code, state.phase) == ("stopped", "limit", "evaluate")
    assert not machine.seen(ev.CallbackStarted)


@pytest.mark.req("FR-09")
def test_acts_policy_does_not_stop_the_evaluation_of_what_act_finished() -> None:
    machine = Machine(turns=one_round(), verdicts=[True]).start(act_policy=Policy(max_turns=2))
    assert machine.rest().code == "accepted"


@pytest.mark.req("FR-09")
@pytest.mark.parametrize("cap", [2, 3])
def test_an_evaluators_policy_trips_on_its_own_turns_and_not_on_acts(cap: int) -> None:
    machine = Machine(turns=[*one_round([call("a")]), [call("b")], [call("b")], [verdict(True)]])
    state = machine.start(evaluate="agent", evaluate_policy=Policy(max_turns=cap)).rest()
    assert state.code == ("limit" if cap == 2 else "accepted")
    assert ("evaluate policy" in state.evidence) is (cap == 2)
    assert (state.act.turns, state.total.turns) == (3, 3 + cap)


@pytest.mark.req("FR-08", "AG-03")
def test_counters_go_on_after_an_extension_and_only_the_limit_moves() -> None:
    machine = Machine(turns=one_round([call("a")]), verdicts=[True]).start(act_policy=Policy(max_turns=2))
    assert machine.rest().code == "limit"
    machine.emit(ev.Extended(actor="ada", max_turns=9))
    assert (machine.state.status, machine.state.act.turns) == ("running", 2)
    assert (machine.state.agent.state, machine.state.agent.iteration) == ("executing", 1)
    assert machine.rest().code == "accepted"
    assert machine.state.act.turns == 3


@pytest.mark.req("LG-04", "FR-08")
@pytest.mark.parametrize("limits", [Limits(max_cost_usd=Decimal("0.05")), Limits(max_tokens=150)])
def test_a_request_in_flight_at_a_takeover_is_in_doubt_and_counts_against_the_budget(limits: Limits) -> None:
    machine = Machine(turns=one_round()).start(limits=limits)
    first = machine.to(act.CallModel)
    machine.emit(ev.Interrupted(epoch=2, reason="taken-over"))
    assert machine.state.total.in_doubt == RESERVE
    assert machine.state.act.in_doubt == RESERVE
    state = machine.rest()
    assert (state.code, state.total.turns) == ("limit", 0)
    assert limits.max_tokens or "in doubt" in state.evidence
    assert first.call == "r1.act.t0.0"


@pytest.mark.req("LG-04")
def test_the_repeated_request_is_an_intent_of_its_own_and_the_turn_counts_once() -> None:
    machine = Machine(turns=one_round(), verdicts=[True]).start()
    machine.to(act.CallModel)
    machine.emit(ev.Interrupted(epoch=2, reason="taken-over"))
    assert machine.to(act.CallModel).call == "r1.act.t0.1"
    state = machine.rest()
    assert state.total.turns == 2
    assert [e.call for e in machine.seen(ev.ModelIntended)] == ["r1.act.t0.0", "r1.act.t0.1", "r1.act.t1.0"]


@pytest.mark.req("FR-05")
def test_an_interrupted_check_is_replayed_without_acting_again() -> None:
    machine = Machine(turns=one_round(), verdicts=[True]).start()
    first = machine.to(act.RunCheck)
    machine.emit(ev.Interrupted(epoch=2, reason="taken-over"))
    second = machine.to(act.RunCheck)
    assert (first.key, second.key) == ("r1.evaluate.1", "r1.evaluate.2")
    assert machine.state.last_output_json == '"did it"'
    assert len(machine.seen(ev.ActFinished)) == 1


@pytest.mark.req("TC-11", "LG-04")
def test_a_charge_without_an_outcome_becomes_doubt_when_the_callback_returns_or_dies() -> None:
    for ending in (ev.Judged(accept=True, feedback="", us=0), ev.Interrupted(epoch=2, reason="taken-over")):
        machine = Machine(turns=one_round()).start()
        machine.to(act.RunCheck)
        machine.emit(ev.ChargeIntended(receipt="a", reserve=FEE), ev.ChargeIntended(receipt="b", reserve=FEE))
        machine.emit(ev.UsageReported(usage=FEE, receipt="a"), ending)
        assert machine.state.total.in_doubt == FEE
        assert machine.state.total.usage.requests == 2 + 1


@pytest.mark.req("TC-10")
def test_a_report_outside_a_callback_is_refused_and_changes_nothing() -> None:
    machine = Machine(turns=one_round()).start()
    machine.to(act.CallModel)
    before = machine.state
    with pytest.raises(OutsideRound):
        machine.emit(ev.UsageReported(usage=FEE))
    assert machine.state is before


def test_a_price_must_be_known_under_a_cost_limit() -> None:
    machine = Machine(turns=one_round()).start(priced=False, limits=Limits(max_cost_usd=Decimal(1)))
    state = machine.rest()
    assert (state.status, state.code) == ("stopped", "usage-unavailable")
    assert not machine.seen(ev.ModelIntended)
    machine.emit(ev.Extended(actor="ada", priced=True))
    assert machine.to(act.CallModel)


@pytest.mark.req("LG-03")
def test_a_response_without_usage_leaves_its_reserve_in_doubt() -> None:
    machine = Machine(turns=one_round(), usage=Usage(requests=1)).start(limits=Limits(max_tokens=10_000))
    state = machine.rest()
    assert state.code == "usage-unavailable"
    assert state.total.usage.requests == 1
    assert state.total.in_doubt.output_tokens == RESERVE.output_tokens
    assert state.total.in_doubt.requests == 0
    assert next_command("E", state) == "treadle resume --retry-incomplete E"
    machine.emit(ev.Reopened(actor="ada"))
    assert machine.state.status == "running"


def test_a_person_evaluates_by_approving_or_by_rejecting_with_feedback() -> None:
    machine = Machine(turns=[*one_round(), *one_round()]).start(evaluate="person")
    state = machine.rest()
    assert (state.status, state.code) == ("waiting-input", "approval")
    assert state.pending is not None
    answer = ev.Answered(id=state.pending.id, decision="reject", text="no tests", actor="ada", at_us=5)
    machine.emit(answer)
    state = machine.rest()
    assert state.feedback == "no tests"
    assert state.pending is not None
    assert state.pending.id == "r2.evaluation"
    machine.emit(ev.Answered(id="r2.evaluation", decision="approve", text="", actor="ada", at_us=6))
    assert machine.rest().code == "accepted"


@pytest.mark.req("TC-23")
def test_an_answer_is_consumed_once_and_never_answers_a_later_question() -> None:
    question = call("ask_person", "ask", question="which?")
    machine = Machine(turns=[PLAN, [question], [question], [finish()]], verdicts=[True]).start()
    first = machine.rest().pending
    assert first is not None
    answer = ev.Answered(id=first.id, decision="answer", text="the left one", actor="ada", at_us=5)
    machine.emit(answer)
    second = machine.rest().pending
    assert second is not None
    assert second.id != first.id
    with pytest.raises(AnswerRefused):
        machine.emit(answer)
    machine.emit(ev.Answered(id=second.id, decision="answer", text="right", actor="ada", at_us=6))
    assert machine.rest().code == "accepted"


def test_accepted_without_a_change_is_told_apart_where_the_workspace_is_known() -> None:
    for changed, code in (((), "no-change"), (("a.py",), "accepted")):
        machine = Machine(turns=one_round(), verdicts=[True], changed=changed).start(baseline=True)
        assert machine.rest().code == code
    assert Machine(turns=one_round(), verdicts=[True]).start().rest().code == "accepted"


def test_a_change_that_a_tool_reports_is_one_even_where_the_workspace_does_not_show_it() -> None:
    machine = Machine(turns=one_round([call("w", "mutating", "1")]), verdicts=[True]).start(baseline=True)
    tools = machine.to(act.RunTools)
    event = results(machine.state, tools.calls)
    machine.emit(
        ToolsFinished(parent=event.parent, results=(replace(event.results[0], changed=("inner/a.py",)),), us=1)
    )
    assert machine.rest().code == "accepted"


@pytest.mark.req("LG-01")
def test_the_state_of_any_sequence_number_is_rebuilt_by_folding_the_events_so_far() -> None:
    machine = Machine(turns=[*one_round([call("w", "mutating")]), *one_round()], verdicts=["no", True]).start()
    states = [refold(machine.events)]
    while not isinstance(machine.action(), act.Finish):
        machine.perform(machine.action())
        states.append(machine.state)
    for count, state in enumerate(states, start=1):
        assert refold(machine.events[:count]) == state
        assert state.seq == count


def test_starting_twice_is_refused() -> None:
    machine = Machine().start()
    with pytest.raises(InvalidStateTransition):
        advance(machine.state, started())


@pytest.mark.req("TC-29")
@pytest.mark.parametrize(("timeout", "code"), [(False, "failed"), (True, "timeout")])
def test_a_raising_callback_fails_and_is_tried_again_when_reopened(timeout: bool, code: str) -> None:
    machine = Machine(turns=one_round(), verdicts=[True]).start()
    check = machine.to(act.RunCheck)
    machine.emit(ev.CallbackRaised(key=check.key, message="ValueError: x", us=7, timeout=timeout))
    state = machine.rest()
    assert (state.status, state.code, state.evidence) == ("failed", code, "ValueError: x")
    machine.emit(ev.Reopened(actor="ada"))
    assert machine.to(act.RunCheck).key == "r1.evaluate.2"
    assert machine.rest().code == "accepted"
