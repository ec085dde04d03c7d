"""The agent machine: states, turns, batches, guards and what an interruption leaves behind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.machine import Machine, call, finish, results, verdict
from treadle.core import events as ev
from treadle.core.errors import InvalidStateTransition
from treadle.core.messages import ModelResponded, Prompted, ToolsFinished
from treadle.core.settings import AgentSettings, Policy
from treadle.kernel import actions as act
from treadle.kernel.agent import transition
from treadle.kernel.loop import advance
from treadle.kernel.states import AGENT_TRANSITIONS, AgentState

PLAN = "first I look"
LEGAL = {
    "planning": {"planning", "executing", "error_recovery", "failed"},
    "executing": {"executing", "error_recovery", "completed", "failed"},
    "error_recovery": {"executing", "failed"},
    "completed": set(),
    "failed": set(),
}


@pytest.mark.req("AG-01", "AG-02")
@pytest.mark.parametrize("source", list(LEGAL))
@pytest.mark.parametrize("target", list(LEGAL))
def test_only_the_tables_transitions_are_legal(source: str, target: str) -> None:
    agent = AgentState(state=source)
    if target in LEGAL[source]:
        assert transition(agent, target).state == target
    else:
        with pytest.raises(InvalidStateTransition) as caught:
            transition(agent, target)
        assert (caught.value.source, caught.value.target) == (source, target)
        assert agent.state == source
    assert set(AGENT_TRANSITIONS) == set(LEGAL)


@pytest.mark.req("AG-01")
def test_each_act_starts_at_planning_with_its_counter_at_zero() -> None:
    machine = Machine(turns=[PLAN, [call("a")], [finish()], PLAN, [finish()]], verdicts=["no", True]).start()
    assert (machine.state.agent.state, machine.state.agent.iteration) == ("planning", 0)
    machine.to(act.RunCheck)
    machine.perform(machine.action())
    assert (machine.state.agent.state, machine.state.agent.iteration, machine.state.agent.turn) == ("planning", 0, 0)


@pytest.mark.req("AG-03")
def test_an_act_has_its_turns_and_one_planning_turn_besides_and_is_evaluated_when_they_are_used_up() -> None:
    own = AgentSettings(max_turns_per_act=3, bands=())
    machine = Machine(turns=[PLAN, [call("a")], [call("a")], [call("a")]], verdicts=[True]).start(act_agent=own)
    machine.to(act.RunCheck)
    assert len(machine.seen(ModelResponded)) == 1 + 3
    assert machine.seen(ev.ActFailed)[0].reason == "max turns"
    assert machine.state.act_failure == "max turns"
    assert machine.rest().code == "accepted"


@pytest.mark.req("AG-03")
def test_a_failed_act_has_no_exit_so_the_next_round_is_a_new_agent() -> None:
    own = AgentSettings(max_turns_per_act=1)
    machine = Machine(turns=[PLAN, [call("a")], PLAN, [finish()]], verdicts=["no", True]).start(act_agent=own)
    machine.to(act.FinishAct)
    machine.perform(machine.action())
    assert machine.rest().code == "accepted"


@pytest.mark.req("AG-04")
@pytest.mark.parametrize(("cap", "told"), [(10, [8, 9]), (15, [12, 13])])  # at 80 and 90 per cent, or the turn before
def test_each_band_gives_one_wrap_up_message_and_the_first_leaves_two_turns(cap: int, told: list[int]) -> None:
    own = AgentSettings(max_turns_per_act=cap)
    machine = Machine(turns=[PLAN, *([call("a")] for _ in range(cap))], verdicts=[True]).start(act_agent=own)
    machine.to(act.RunCheck)
    warned = [
        sum(isinstance(e, ModelResponded) for e in machine.events[:i]) - 1
        for i, e in enumerate(machine.events)
        if isinstance(e, Prompted) and e.origin == "wrap-up"
    ]
    assert warned == told
    assert f"{cap - told[0]} turns are left" in next(e.text for e in machine.seen(Prompted) if e.origin == "wrap-up")


@pytest.mark.req("AG-04")
@given(cap=st.integers(3, 60), policy=st.booleans())
def test_the_first_wrap_up_leaves_at_least_two_turns_whichever_cap_is_nearer(cap: int, policy: bool) -> None:
    own = AgentSettings(max_turns_per_act=200 if policy else cap)
    limit = Policy(max_turns=cap + 1) if policy else Policy()
    machine = Machine(turns=[PLAN, *([call("a")] for _ in range(cap))], verdicts=[True])
    machine.start(act_agent=own, act_policy=limit)
    machine.to(act.RunCheck, act.Finish)
    first = next(i for i, e in enumerate(machine.events) if isinstance(e, Prompted) and e.origin == "wrap-up")
    assert sum(isinstance(e, ModelResponded) for e in machine.events[first:]) >= 2


@pytest.mark.req("AG-15")
def test_one_invalid_call_stops_its_whole_batch_and_leads_to_error_recovery() -> None:
    batch = [call("w", "mutating", "1"), call("x", "invalid", "2"), call("r", "read", "3")]
    machine = Machine(turns=[PLAN, batch, [finish()]], verdicts=[True]).start()
    machine.to(act.IntendModel)
    machine.to(act.CallModel)
    machine.perform(machine.action())
    machine.to(act.CallModel)
    machine.perform(machine.action())
    machine.to(act.IntendModel)
    (finished,) = machine.seen(ToolsFinished)
    assert [r.status for r in finished.results] == ["not-run", "error", "not-run"]
    assert machine.state.agent.state == "error_recovery"
    assert not machine.seen(ev.ToolIntended)
    assert machine.rest().code == "accepted"


@pytest.mark.req("AG-15")
def test_run_valid_runs_what_is_valid() -> None:
    batch = [call("w", "mutating", "1"), call("x", "invalid", "2"), call("r", "read", "3")]
    own = AgentSettings(on_invalid="run_valid")
    machine = Machine(turns=[PLAN, batch, [finish()]], verdicts=[True]).start(act_agent=own)
    machine.rest()
    statuses = {r.id: r.status for e in machine.seen(ToolsFinished) for r in e.results}
    assert (statuses["1"], statuses["2"], statuses["3"]) == ("ok", "error", "ok")


@pytest.mark.req("AG-22")
def test_reads_run_side_by_side_and_each_mutating_call_alone_behind_its_own_intent() -> None:
    batch = [
        call("r", "read", "1"),
        call("r", "read", "2"),
        call("w", "mutating", "3"),
        call("w", "mutating", "4"),
        call("r", "read", "5"),
    ]
    machine = Machine(turns=[PLAN, batch, [finish()]], verdicts=[True]).start()
    ran = []
    while not isinstance(machine.action(), act.Finish):
        action = machine.action()
        if isinstance(action, act.RunTools):
            ran.append((action.keys, len(machine.seen(ev.ToolIntended))))
        machine.perform(action)
    turn = "r1.act.t1"
    assert ran == [
        ((f"{turn}.c0", f"{turn}.c1"), 0),
        ((f"{turn}.c2",), 1),
        ((f"{turn}.c3",), 2),
        ((f"{turn}.c4",), 2),
    ]
    order = [r.id for e in machine.seen(ToolsFinished) for r in e.results]
    assert order[:5] == ["1", "2", "3", "4", "5"]


@pytest.mark.req("AG-21")
def test_a_mutating_call_killed_in_flight_is_answered_as_unknown_and_not_run_again() -> None:
    batch = [call("w", "mutating", "1"), call("w", "mutating", "2")]
    machine = Machine(turns=[PLAN, batch, [finish()]], verdicts=[True]).start()
    machine.to(act.RunTools)
    machine.emit(ev.Interrupted(epoch=2, reason="taken-over"))
    machine.rest()
    statuses = {r.id: r.status for e in machine.seen(ToolsFinished) for r in e.results}
    assert statuses["1"] == "unknown"
    assert statuses["2"] == "ok"
    assert [e.call for e in machine.seen(ev.ToolIntended)] == ["r1.act.t1.c0", "r1.act.t1.c1"]


@pytest.mark.req("AG-21")
@pytest.mark.parametrize("kind", ["read", "idempotent"])
def test_a_read_or_idempotent_call_killed_in_flight_runs_again(kind: str) -> None:
    machine = Machine(turns=[PLAN, [call("r", kind, "1")], [finish()]], verdicts=[True]).start()
    machine.to(act.RunTools)
    machine.emit(ev.Interrupted(epoch=2, reason="taken-over"))
    action = machine.to(act.RunTools)
    assert action.calls[0].id == "1"
    machine.rest()
    assert {r.status for e in machine.seen(ToolsFinished) for r in e.results} == {"ok"}


@pytest.mark.req("AG-21", "AG-23")
@pytest.mark.parametrize(
    ("found", "status", "runs"), [("done", "ok", 0), ("not-started", "ok", 1), ("unknown", "unknown", 0)]
)
def test_a_probe_resolves_the_doubt_of_a_write(found: str, status: str, runs: int) -> None:
    machine = Machine(turns=[PLAN, [call("w", "mutating", "1")], [finish()]], verdicts=[True]).start()
    intend = machine.to(act.IntendTool)
    machine.emit(ev.ToolIntended(call=intend.key, probes=(ev.Probe(path="a", before="1", after="2"),)))
    machine.emit(ev.Interrupted(epoch=2, reason="taken-over"))
    probe = machine.to(act.ProbeTool)
    machine.emit(ev.ToolProbed(call=probe.key, found=found, touches=("fs.write a",)))
    ran = 0
    while not isinstance(machine.action(), act.Finish):
        ran += isinstance(machine.action(), act.RunTools)
        machine.perform(machine.action())
    first = machine.seen(ToolsFinished)[0].results[0]
    assert (first.status, ran) == (status, runs)
    assert first.changed == (("a",) if found == "done" else ())
    assert first.effects == (() if found == "not-started" else ("fs.write a",)), "what it may have done counts"


@pytest.mark.req("AG-06")
def test_finish_ends_act_at_once_and_answers_the_rest_of_its_batch() -> None:
    batch = [call("r", "read", "1"), finish("all done"), call("w", "mutating", "2")]
    machine = Machine(turns=[PLAN, batch], verdicts=[True]).start()
    machine.to(act.RunCheck)
    assert machine.state.last_output_json == '"all done"'
    statuses = [r.status for e in machine.seen(ToolsFinished) for r in e.results]
    assert statuses == ["ok", "ok", "not-run"]
    assert not machine.seen(ev.ToolIntended)


def test_finish_is_not_heard_when_an_earlier_call_of_its_batch_failed() -> None:
    machine = Machine(turns=[PLAN, [call("r", "read", "1"), finish()], [finish()]], verdicts=[True]).start()
    tools = machine.to(act.RunTools)
    machine.emit(results(machine.state, tools.calls, "error"))
    machine.to(act.CallModel)
    statuses = [r.status for e in machine.seen(ToolsFinished) for r in e.results]
    assert statuses == ["error", "not-run"]
    assert machine.rest().code == "accepted"


def test_an_evaluator_that_gives_no_verdict_is_a_failed_verification() -> None:
    own = AgentSettings(max_turns_per_act=2)
    machine = Machine(turns=[PLAN, [finish()], [call("r")], [call("r")]]).start(evaluate="agent", evaluate_agent=own)
    assert machine.rest().code == "verification"


def test_an_evaluators_verdict_is_its_last_word() -> None:
    machine = Machine(turns=[PLAN, [finish()], [verdict(False, "try b")], PLAN, [finish()], [verdict(True)]])
    assert machine.start(evaluate="agent").rest().code == "accepted"
    assert "the task" in next(e.text for e in machine.seen(Prompted) if "Judge" in e.text)


def failed(machine: Machine, kind: str, retry_at_us: int | None, maybe: bool = False) -> ev.ModelFailed:
    call_id = machine.to(act.CallModel).call
    return ev.ModelFailed(call=call_id, kind=kind, message="m", us=1, maybe_charged=maybe, retry_at_us=retry_at_us)


def test_a_passing_failure_is_waited_out_and_a_lasting_one_ends_as_provider() -> None:
    machine = Machine(turns=[PLAN, [finish()]], verdicts=[True]).start()
    machine.emit(failed(machine, "overload", 99))
    wait = machine.action()
    assert (wait.kind, wait.until_us) == ("back-off", 99)
    machine.emit(ev.WaitEnded(at_us=100))
    machine.emit(failed(machine, "auth", None))
    state = machine.rest()
    assert (state.status, state.code, state.evidence) == ("failed", "provider", "auth: m")
    machine.emit(ev.Reopened(actor="ada"))
    assert machine.rest().code == "accepted"


def test_passing_failures_end_as_provider_when_they_do_not_pass() -> None:
    machine = Machine(turns=[]).start(act_agent=AgentSettings(provider_attempts=3))
    for _ in range(3):
        machine.emit(failed(machine, "network", 99, maybe=True))
        if isinstance(machine.action(), act.Wait):
            machine.emit(ev.WaitEnded(at_us=100))
    assert machine.rest().code == "provider"
    assert machine.state.total.in_doubt.requests == 3


@pytest.mark.req("TC-24")
def test_a_quota_suspends_durably_until_its_reset_and_uses_up_no_attempt() -> None:
    machine = Machine(turns=[PLAN, [finish()]], verdicts=[True]).start(act_agent=AgentSettings(provider_attempts=1))
    machine.emit(failed(machine, "quota", 5_000))
    state = machine.rest()
    assert (state.status, state.code) == ("paused", "quota")
    assert state.pending is not None
    assert state.pending.until_us == 5_000
    machine.emit(ev.WaitEnded(at_us=5_001))
    assert machine.rest().code == "accepted"
    assert machine.state.total.in_doubt.requests == 0


def test_a_response_that_nobody_waits_for_is_refused() -> None:
    machine = Machine(turns=[PLAN, [finish()]]).start()
    machine.to(act.CallModel)
    stray = machine.outcome(machine.action())
    machine.emit(ev.Interrupted(epoch=2, reason="taken-over"))
    before = machine.state
    with pytest.raises(InvalidStateTransition):
        advance(machine.state, stray)
    assert machine.state is before


@pytest.mark.req("AG-28")
def test_the_model_is_told_when_somebody_changed_the_workspace() -> None:
    machine = Machine(turns=[PLAN, [call("r")], [finish()]], verdicts=[True]).start()
    machine.to(act.RunTools)
    machine.emit(ev.WorkspaceChanged(paths=("a.py",)), ev.Interrupted(epoch=2, reason="taken-over"))
    machine.rest()
    assert any("a.py" in e.text for e in machine.seen(Prompted))
