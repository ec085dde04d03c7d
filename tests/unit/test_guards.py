"""Guards against spinning: what trips one, in which steps, what clears it, and what never trips it (AG-11)."""

from __future__ import annotations

from itertools import cycle, islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.machine import Machine, call, finish, refold
from treadle.core import events as ev
from treadle.core.errors import ConfigurationError
from treadle.core.messages import ModelResponded, Prompted, ToolCall, ToolResult, ToolsFinished
from treadle.core.settings import AgentSettings, Guards, guard_names, with_guards
from treadle.core.values import replace
from treadle.kernel import actions as act
from treadle.kernel.guard_state import GuardCounters
from treadle.kernel.guards import measured, wants_compaction
from treadle.kernel.loop import next_actions
from treadle.kernel.marks import mark_of
from treadle.kernel.snapshot import freeze, thaw
from treadle.kernel.states import AgentState, LoopState

PLAN = "first I look"
LONG = AgentSettings(max_turns_per_act=500, bands=())


class World(Machine):
    """A machine whose tools answer by `answers`: (name, kind) -> content; a path in `edits` is what a call changes."""

    trees: Any = ()

    def outcome(self, action: act.Action) -> Any:
        if isinstance(action, act.RunTools):
            return ToolsFinished(
                parent=self.state.agent.leaf or 0, results=tuple(self.result(call) for call in action.calls), us=1
            )
        if isinstance(action, act.MeasureWorkspace):
            return ev.WorkspaceMeasured(tree=next(self.trees))
        return super().outcome(action)

    def result(self, call: ToolCall) -> ToolResult:
        args: dict[str, Any] = call.args if isinstance(call.args, dict) else {}
        content = str(args.get("gives", "as ever"))
        mark = "" if call.name == "poll" else mark_of(call, content)
        changed = (str(args["edits"]),) if "edits" in args else ()
        if "fails" in args:
            return ToolResult(
                id=call.id,
                content=content,
                status="error",
                error=str(args["fails"]),
                mark=mark,
                transient="passes" in args,
            )
        return ToolResult(id=call.id, content=content, changed=changed, mark=mark)

    def trips(self) -> list[tuple[str, str, int]]:
        return [(trip.guard, trip.response, trip.count) for trip in self.seen(ev.GuardTripped)]


def a_world(*turns: Any, trees: Any = (), **changes: Any) -> World:
    world = World(turns=[PLAN, *turns], verdicts=[True])
    world.trees = iter(trees)
    given: dict[str, Any] = {"act_agent": LONG, **changes}
    return world.start(**given)  # type: ignore[return-value]


def times(turn: Any, number: int) -> list[Any]:
    return [turn] * number


LOOK = [call("look")]
EDIT = [call("edit", "mutating", edits="f")]
SHELL = [call("shell", "mutating")]


# ---- each guard: a directive first, a labelled stop later


@pytest.mark.req("AG-11", "AG-17")
def test_turns_without_a_call_end_in_a_directive_and_three_more_in_a_stop() -> None:
    world = a_world(*times("I think", 6))
    state = world.rest()
    assert (state.status, state.code, state.outcome) == ("failed", "thrash", "thrash: no-call")
    assert world.trips() == [("no-call", "directive", 3), ("no-call", "stop", 6)]
    assert sum("3 turns in a row without a tool call" in e.text for e in world.seen(Prompted)) == 1
    assert len(world.seen(ModelResponded)) == 1 + 6
    assert dict(state.fires) == {"no-call": 2}
    assert "--guard no-call=N" in state.advice


@pytest.mark.req("AG-11")
def test_the_same_call_with_the_same_result_trips_and_another_result_does_not() -> None:
    world = a_world(*times(LOOK, 8))
    assert world.rest().outcome == "thrash: repeat"
    assert world.trips() == [("repeat", "directive", 4), ("repeat", "stop", 8)]
    new = a_world(*([call("look", gives=f"line {n}")] for n in range(30)), [finish()])
    assert (new.rest().code, new.trips()) == ("accepted", [])


def test_a_result_that_only_tells_the_time_otherwise_is_the_same() -> None:
    look = call("look")
    assert mark_of(look, "1 failed in 0.03s\n[exit code 1, 0.3 s]") == mark_of(
        look, "1 failed in 12.4s\n[exit code 1, 13 s]"
    )
    assert mark_of(look, "1 failed in 0.03s") != mark_of(look, "2 failed in 0.03s")


@pytest.mark.req("AG-11")
@pytest.mark.parametrize("period", [2, 3, 4])
def test_going_round_trips(period: int) -> None:
    turns = [[call(name)] for name in "abcd"[:period]]
    world = a_world(*islice(cycle(turns), 4 * period), guards=Guards(repeat=0))
    assert world.rest().outcome == "thrash: oscillation"
    assert world.trips() == [("oscillation", "directive", 2), ("oscillation", "stop", 4)]
    assert len(world.seen(ModelResponded)) == 1 + 4 * period


@pytest.mark.req("AG-11")
def test_writing_back_and_forth_is_going_round_although_each_write_changes_something() -> None:
    there, back = [call("edit", "mutating", edits="f", to="1")], [call("edit", "mutating", edits="f", to="2")]
    world = a_world(*islice(cycle([there, back]), 8), must_change=True)
    assert world.rest().outcome == "thrash: oscillation"


@pytest.mark.req("AG-11", "AG-09")
def test_reading_alone_trips_only_where_the_task_must_change_something() -> None:
    reads = [[call("look", n=n)] for n in range(40)]
    world = a_world(*reads, must_change=True)
    assert world.rest().outcome == "thrash: read-only"
    assert world.trips() == [("read-only", "directive", 20), ("read-only", "stop", 40)]
    free = a_world(*reads, [finish()])
    assert (free.rest().code, free.trips()) == ("accepted", [])


@pytest.mark.req("AG-11")
def test_commands_that_change_nothing_trip_where_something_must_change() -> None:
    shells = [[call("shell", "mutating", n=n)] for n in range(40)]
    world = a_world(*shells, must_change=True, baseline=True, trees=cycle(["t1"]))
    assert world.rest().outcome == "thrash: stagnation"
    assert world.trips() == [("stagnation", "directive", 20), ("stagnation", "stop", 40)]


@pytest.mark.req("AG-11")
def test_rounds_that_leave_the_same_tree_trip() -> None:
    world = RoundsWorld(turns=[PLAN, [finish()]] * 8, verdicts=["no"] * 7, heads=cycle(["h1"]))
    state = world.start(must_change=True, max_rounds=20).rest()
    assert state.outcome == "thrash: same-tree"
    assert world.trips() == [("same-tree", "directive", 3), ("same-tree", "stop", 6)]
    moving = RoundsWorld(turns=[PLAN, [finish()]] * 8, verdicts=["no"] * 8, heads=(f"h{n}" for n in range(9)))
    assert moving.start(must_change=True, max_rounds=8).rest().code == "exhausted"
    assert moving.trips() == []


class RoundsWorld(World):
    """Each round leaves the next of these trees."""

    def __init__(self, *, heads: Any, **given: Any) -> None:
        super().__init__(**given)
        self.heads = iter(heads)

    def outcome(self, action: act.Action) -> Any:
        found = super().outcome(action)
        if isinstance(found, ev.ActFinished):
            return replace(found, scope_receipt_json=f'{{"base":"b","head":"{next(self.heads)}"}}')
        return found


@pytest.mark.req("AG-11")
def test_three_refusals_of_a_too_long_prompt_ask_for_one_hard_compaction_and_a_fourth_ends_it() -> None:
    world = a_world()
    world.to(act.CallModel)
    for number in range(1, 5):
        world.emit(too_long(world))
        if number < 4:
            assert isinstance(world.to(act.Wait, act.Finish), act.Wait), number
            assert wants_compaction(world.state) == (number == 3)
            world.emit(ev.WaitEnded(at_us=2))
            world.to(act.CallModel)
    assert world.rest().outcome == "thrash: oversized"
    assert world.trips() == [("oversized", "compact", 3), ("oversized", "stop", 4)]


@pytest.mark.req("AG-11")
def test_a_response_clears_the_count_of_too_long_prompts() -> None:
    world = a_world(LOOK, LOOK)
    for _ in range(2):
        world.to(act.CallModel)
        world.emit(too_long(world), ev.WaitEnded(at_us=2))
    world.to(act.RunTools)
    assert world.state.agent.guards.oversized == 0
    assert world.trips() == []


def too_long(world: Machine) -> ev.ModelFailed:
    return ev.ModelFailed(
        call=world.state.agent.call,
        kind="context-too-long",
        message="too long",
        us=1,
        maybe_charged=False,
        retry_at_us=2,
    )


@pytest.mark.req("AG-17")
@pytest.mark.parametrize(
    ("error", "code"),
    [("safety", "safety"), ("permission", "permission"), ("conflict", "conflict"), ("execution", "recovery-exhausted")],
)
def test_batches_that_only_fail_end_by_the_class_of_their_errors(error: str, code: str) -> None:
    turns = [[call("act", "mutating", n=n, fails=error)] for n in range(3)]
    assert a_world(*turns, guards=Guards(recovery=3)).rest().code == code
    mixed = [*turns[:2], [call("act", "mutating", n=9, fails="argument")]]
    assert a_world(*mixed, guards=Guards(recovery=3)).rest().code == "recovery-exhausted"


# ---- what clears, what is exempt, what is kept


@pytest.mark.req("AG-11")
def test_only_progress_clears_a_count_not_another_call_between() -> None:
    other = ([call("look", n=n)] for n in range(9))
    world = a_world(*(turn for one in islice(other, 4) for turn in (LOOK, one)))
    while len(world.turns) > 0:
        world.perform(world.action())
    world.to(act.IntendModel)
    assert world.trips() == [("repeat", "directive", 4)]
    cleared = a_world(*times(LOOK, 3), EDIT, *times(LOOK, 3), [finish()])
    assert (cleared.rest().code, cleared.trips()) == ("accepted", [])


@pytest.mark.req("AG-11")
def test_a_change_that_no_call_declared_is_looked_for_before_a_guard_trips() -> None:
    """Each command did change something, so the same failing test is no thrash."""
    turns = [
        turn
        for n in range(12)
        for turn in ([call("shell", "mutating", n=n)], [call("test", "mutating", gives="1 failed")])
    ]
    world = a_world(*turns, [finish()], must_change=True, baseline=True, trees=(f"tree{n}" for n in range(99)))
    assert (world.rest().status, world.trips()) == ("done", [])
    assert world.seen(ev.WorkspaceMeasured)


@pytest.mark.req("AG-11")
def test_polling_tools_are_exempt() -> None:
    world = a_world(*times([call("poll")], 60), [finish()], must_change=True)
    assert (world.rest().code, world.trips()) == ("accepted", [])


@pytest.mark.req("AG-11")
def test_counters_outlive_a_snapshot_a_takeover_and_a_round() -> None:
    world = a_world(*times(LOOK, 3), [finish()], PLAN, LOOK)
    world.verdicts = ["no", True]
    world.to(act.FinishAct)
    world.state = thaw(freeze(world.state), 1)
    world.emit(ev.Interrupted(epoch=2, reason="taken-over"))
    while world.turns:
        world.perform(world.action())
    world.to(act.IntendModel)
    assert world.trips() == [("repeat", "directive", 4)]


@pytest.mark.req("AG-11")
def test_a_person_who_tries_again_starts_the_guards_anew_and_may_retune_them() -> None:
    world = a_world(*times(LOOK, 8 + 11), [finish()])
    assert world.rest().code == "thrash"
    world.emit(ev.Extended(actor="me", guards={"repeat": 12}), ev.Reopened(actor="me"))
    assert (world.rest().code, len(world.trips())) == ("accepted", 2)
    assert dict(world.state.fires) == {"repeat": 2}


@pytest.mark.req("AG-11")
@pytest.mark.parametrize("name", ["repeat", "oscillation", "read-only", "stagnation", "same-tree"])
def test_zero_turns_a_guard_off(name: str) -> None:
    off = with_guards(Guards(repeat=0, oscillation=0, read_only=0, stagnation=0, same_tree=0), {name: 0})
    assert a_world(*times(LOOK, 60), [finish()], guards=off, must_change=True).rest().code == "accepted"


@pytest.mark.req("AG-11")
@pytest.mark.parametrize(
    "wrong",
    [
        {"nothing": 1},
        {"no-call": 0},
        {"recovery": 0},
        {"repeat": -1},
        {"repeat": True},
        {"repeat": "4"},
        {"repeat": 10**9},
    ],
)
def test_a_threshold_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        with_guards(Guards(), wrong)
    assert next(iter(wrong)) in str(caught.value)


# ---- properties


@pytest.mark.req("AG-11")
@given(
    st.lists(st.sampled_from(["read", "edit", "both"]), min_size=1, max_size=80),
    st.fixed_dictionaries({name.replace("-", "_"): st.integers(2, 5) for name in guard_names()}),
)
def test_whoever_changes_something_often_enough_never_trips(kinds: list[str], limits: dict[str, int]) -> None:
    least = min(limits.values())
    turns: list[Any] = []
    for n, kind in enumerate(kinds):
        edit = call("edit", "mutating", id=f"e{n}", edits="f", n=n)
        read = call("look", id=f"r{n}")
        change = kind != "read" or n % least == 0
        turns.append([read, edit] if kind == "both" else [edit] if change else [read])
    world = a_world(*turns, [finish()], must_change=True, guards=Guards(**limits))
    assert (world.rest().code, world.trips()) == ("accepted", [])


@pytest.mark.req("AG-11")
@given(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=4), st.integers(1, 6), st.integers(1, 3))
def test_whatever_goes_round_for_ever_is_stopped_after_one_directive(names: str, repeat: int, passes: int) -> None:
    turns = cycle([[call(name)] for name in names])
    world = a_world(*islice(turns, 400), guards=Guards(repeat=repeat, oscillation=passes))
    assert world.rest().code == "thrash"
    stops = [trip for trip in world.trips() if trip[1] == "stop"]
    told = [trip[0] for trip in world.trips() if trip[1] == "directive"]
    assert len(stops) == 1
    assert stops[0][0] in told
    assert len(told) == len(set(told)), "a directive is given once"


@given(st.lists(st.sampled_from(["look", "edit", "shell", "text", "fail"]), max_size=60))
def test_counters_are_a_fold_and_stay_small(kinds: list[str]) -> None:
    made: dict[str, Any] = {
        "look": LOOK,
        "edit": EDIT,
        "shell": SHELL,
        "text": "hm",
        "fail": [call("x", fails="not-found")],
    }
    world = a_world(*(made[kind] for kind in kinds), must_change=True, guards=Guards(repeat=0))
    while world.turns and not isinstance(world.action(), act.Finish):
        world.perform(world.action())
    assert refold(world.events) == world.state
    assert next_actions(refold(world.events)) == next_actions(world.state)
    assert len(freeze(replace(world.state, agent=replace(world.state.agent, calls=())))) < 8_000


@pytest.mark.req("AG-11")
def test_only_a_tree_that_was_not_there_before_is_progress() -> None:
    state = LoopState(baseline="t0", agent=AgentState(guards=GuardCounters(read_only=3)))
    assert measured(state, "t0").read_only == 3
    once = measured(state, "t1")
    assert once.read_only == 0
    again = replace(state, agent=AgentState(guards=replace(once, read_only=3)))
    assert measured(again, "t1").read_only == 3
    assert measured(again, "t2").read_only == 0
