"""Lessons and gates in the machine: recalled once, worst outcome wins, one vote, distilled on acceptance alone."""

from __future__ import annotations

from typing import Any

import pytest

from support.machine import Machine, finish, refold, verdict
from treadle.core import events as ev
from treadle.core.lesson_events import (
    GateResult,
    GatesChecked,
    LessonsAttributed,
    LessonsDistilled,
    LessonsRecalled,
    LessonsVoted,
    RecalledLesson,
)
from treadle.core.messages import Prompted
from treadle.core.settings import LoopSettings
from treadle.kernel import actions as act
from treadle.kernel import gates, lessons
from treadle.kernel.continuation import frame_of
from treadle.kernel.frame import dump_frame
from treadle.kernel.lesson_state import GateFailure, Memory
from treadle.kernel.states import LoopState

RECALLED = LessonsRecalled(
    lessons=(
        RecalledLesson(lesson_id="L1", text="Build before testing.", trusted=True),
        RecalledLesson(lesson_id="L2", text="Use tabs."),
    ),
    tokens=20,
)


class Learning(Machine):
    """Answers what has to do with lessons and gates, too."""

    recall: LessonsRecalled = RECALLED
    gates: list[Any]  # of each look: gate -> whether it passes

    def outcome(self, action: act.Action) -> Any:
        match action:
            case act.RecallLessons():
                return self.recall
            case act.RunGates():
                results = self.gates.pop(0).items()
                return GatesChecked(
                    results=tuple(GateResult(gate=one, passed=ok, evidence=f"{one} said") for one, ok in results), us=1
                )
            case act.VoteLessons():
                return LessonsVoted(outcomes=self.state.memory.outcomes)
            case act.DistilLessons():
                return LessonsDistilled()
            case _:
                return super().outcome(action)


def learning(turns: Any = (), verdicts: Any = (), seen: Any = (), **changes: Any) -> Learning:
    made = Learning(turns=list(turns), verdicts=list(verdicts))
    made.gates = list(seen)
    made.start(**({"lessons": "on"} | changes))
    return made


def round_of(words: str = "done") -> list[Any]:
    return [[finish(words)]]


@pytest.mark.req("FR-17")
def test_lessons_are_recalled_once_and_reach_act_and_evaluator() -> None:
    machine = learning([*round_of(), [verdict(False, "no")], *round_of(), [verdict(True)]], evaluate="agent")
    machine.rest()
    assert len(machine.seen(LessonsRecalled)) == 1
    prompts = [one.text for one in machine.seen(Prompted)]
    assert "L1: Build before testing." in prompts[0]
    assert "L2 (not confirmed yet): Use tabs." in prompts[0]
    assert "L1: Build before testing." in prompts[1]  # the evaluator's
    assert [one.lesson_id for one in frame_of(machine.state).recalled_lessons] == ["L1", "L2"]
    again = refold(machine.events)
    again = Machine(state=again).emit(ev.Interrupted(epoch=2, reason="taken-over")).state
    assert frame_of(again).recalled_lessons == frame_of(machine.state).recalled_lessons


@pytest.mark.req("FR-17")
def test_without_lessons_nothing_is_recalled() -> None:
    machine = learning(round_of(), [True], lessons="off")
    machine.rest()
    assert machine.seen(LessonsRecalled) == machine.seen(LessonsVoted) == []


@pytest.mark.req("FR-18")
def test_the_worst_outcome_wins_and_strangers_have_none() -> None:
    said = [
        verdict(False, "a").args | {"lessons": {"L1": "harmful: it broke the build", "L9": "harmful: x"}},
        verdict(True).args | {"lessons": {"L1": "helpful: yes", "L2": "neutral"}},
    ]
    calls = [verdict(True), verdict(True)]
    turns = []
    for call, args in zip(calls, said, strict=True):
        turns += [*round_of(), [type(call)(id=call.id, name=call.name, args=args, kind=call.kind)]]
    machine = learning(turns, evaluate="agent")
    machine.rest()
    assert machine.state.memory.outcomes == {"L1": "harmful", "L2": "neutral"}
    assert machine.state.memory.evidence["L1"] == "it broke the build"
    assert [one.outcomes for one in machine.seen(LessonsAttributed)] == [{"L1": "harmful"}, {"L2": "neutral"}]
    assert frame_of(machine.state).accumulated_lesson_outcomes == {"L1": "harmful", "L2": "neutral"}
    dump_frame(frame_of(machine.state), max_iterations=10)


@pytest.mark.req("FR-18")
def test_of_what_a_check_says_the_worst_stays_whichever_came_last() -> None:
    machine = learning(round_of(), [True])
    machine.to(act.RunCheck)
    for outcome in ("neutral", "harmful", "helpful"):
        machine.emit(LessonsAttributed(outcomes={"L1": outcome, "L9": outcome}, evidence={"L1": outcome}))
    assert machine.state.memory.outcomes == {"L1": "harmful", "L2": "unobserved"}
    assert machine.state.memory.evidence == {"L1": "harmful"}


@pytest.mark.req("FR-18")
def test_a_rejection_alone_blames_no_lesson() -> None:
    machine = learning([*round_of(), *round_of()], ["no", True])
    machine.rest()
    assert machine.state.memory.outcomes == {"L1": "unobserved", "L2": "unobserved"}


@pytest.mark.req("FR-18")
@pytest.mark.parametrize(("verdicts", "code"), [([True], "accepted"), (["no"], "exhausted")])
def test_a_loop_votes_once_at_its_end_however_it_ends(verdicts: list[Any], code: str) -> None:
    machine = learning(round_of(), verdicts, max_rounds=1)
    state = machine.rest()
    assert state.code == code
    assert len(machine.seen(LessonsVoted)) == 1
    # Killed before the vote was committed, it votes when it is resumed.
    before = [one for one in machine.events if not isinstance(one, LessonsVoted | LessonsDistilled | ev.Stopped)]
    assert isinstance(Machine(state=refold(before)).action(), act.VoteLessons)


@pytest.mark.req("FR-20")
def test_a_gate_that_failed_and_passes_later_is_buffered_through_rejections_and_distilled_once() -> None:
    gates = [{"lint": False, "unit": True}, {"lint": True, "unit": True}, {"lint": True, "unit": True}]
    machine = learning(round_of() * 3, ["still wrong", True], gates, gates=("lint", "unit"))
    machine.recall = LessonsRecalled(lessons=())
    machine.changed = ("a.py",)
    assert machine.action() == act.RecallLessons()
    machine.to(act.TakeBaseline, act.RunGates)
    assert frame_of(machine.state).buffered_gate_recoveries == ()
    machine.perform(machine.action())
    machine.to(act.RunGates)
    assert machine.state.feedback == "Gate lint failed: lint said"
    assert machine.verdicts == ["still wrong", True], "the evaluator is asked only once every gate passes"
    machine.perform(machine.action())
    buffered = frame_of(machine.state).buffered_gate_recoveries
    assert buffered == (
        {"gate": "lint", "failedIteration": 0, "passedIteration": 1, "evidence": "lint said", "changed": ["a.py"]},
    )
    machine.to(act.DistilLessons)
    assert frame_of(machine.state).buffered_gate_recoveries == buffered
    dump_frame(frame_of(machine.state), max_iterations=10)
    assert machine.rest().code == "accepted"
    assert frame_of(machine.state).buffered_gate_recoveries == ()
    assert len(machine.seen(LessonsDistilled)) == 1


@pytest.mark.req("FR-20")
def test_what_is_buffered_is_discarded_on_terminal_failure() -> None:
    gates = [{"lint": False}, {"lint": True}]
    machine = learning(round_of() * 2, ["no"], gates, gates=("lint",), max_rounds=2)
    machine.recall = LessonsRecalled(lessons=())
    assert machine.rest().code == "exhausted"
    (event,) = machine.seen(LessonsDistilled)
    assert (event.lessons, event.discarded) == ((), 1)
    assert machine.state.memory.recoveries == ()


@pytest.mark.req("FR-19")
def test_the_last_rejected_iteration_is_kept_for_the_recovery() -> None:
    machine = learning([*round_of("first"), *round_of("second"), *round_of("third")], ["wrong", "worse", True])
    machine.to(act.DistilLessons)
    rejected = frame_of(machine.state).last_rejected_iteration_json or ""
    assert '"iteration":1' in rejected
    assert "worse" in rejected
    assert "second" in rejected


@pytest.mark.req("FR-19")
def test_accepted_at_once_there_is_nothing_to_learn() -> None:
    machine = learning(round_of(), [True])
    machine.rest()
    assert machine.seen(LessonsDistilled) == []


@pytest.mark.req("FR-19")
@pytest.mark.parametrize("mode", ["recall", "off"])
def test_only_a_loop_that_may_learn_distils(mode: str) -> None:
    machine = learning(round_of() * 2, ["no", True], lessons=mode)
    assert machine.rest().code == "accepted"
    assert machine.seen(LessonsDistilled) == []


@pytest.mark.req("FR-17")
def test_nothing_is_recalled_once_a_round_has_been_rejected() -> None:
    learns = LoopSettings(loop_id="l", role_key="r", lessons="on")
    assert isinstance(lessons.recall(LoopState(settings=learns)), act.RecallLessons)
    assert lessons.recall(LoopState(settings=learns, iteration=1)) is None, "as where a loop is told to learn half way"


@pytest.mark.req("FR-20")
def test_a_gate_that_failed_in_an_earlier_round_and_is_no_more_rejects_nothing() -> None:
    gated = LoopSettings(loop_id="l", role_key="r", gates=("lint",))
    memory = Memory(gated=1, failing=(GateFailure(gate="types", iteration=0, evidence="e"),))
    assert gates.due(LoopState(settings=gated, iteration=1, memory=memory)) is None


@pytest.mark.req("RT-01", "LG-04")
def test_an_evaluators_key_never_comes_again_though_its_gates_are_run_anew() -> None:
    machine = learning(round_of(), seen=[{"lint": True}, {"lint": True}], gates=("lint",))
    machine.to(act.RunCheck)
    machine.emit(ev.Interrupted(epoch=2, reason="taken-over"))
    machine.to(act.RunCheck)
    machine.emit(ev.CallbackRaised(key=machine.state.callback, message="the check broke", us=1))
    machine.emit(ev.Reopened(actor="me"))
    machine.to(act.RunCheck)
    keys = [one.key for one in machine.seen(ev.CallbackStarted) if ".evaluate." in one.key]
    assert len(keys) == len(set(keys)) == 3


@pytest.mark.req("FR-18", "FR-20")
def test_a_loop_that_is_reopened_looks_at_its_gates_again_and_keeps_what_it_knows() -> None:
    memory = Memory(recalled=RECALLED.lessons, outcomes={"L1": "helpful"}, gated=2, voted=True, distilled=True)
    again = lessons.reopened(memory)
    assert (again.gated, again.voted, again.distilled) == (-1, False, False)
    assert (again.recalled, again.outcomes) == (memory.recalled, memory.outcomes)
