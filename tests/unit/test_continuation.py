"""The frame that is made of a state: each field is what the state says, and nothing else of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from support.machine import settings
from treadle.core.lease_events import Lease
from treadle.core.scope_events import Isolation
from treadle.core.usage import Usage
from treadle.core.values import replace
from treadle.kernel.carried import Carried, Mount
from treadle.kernel.continuation import frame_of, identity_of
from treadle.kernel.frame import LeaseDelta, LoopFrame, SkillActivation, ToolEffect, dump_frame, load_frame
from treadle.kernel.states import Counters, LoopState, ScopeState

MS = 1000


def frame(**changes: Any) -> LoopFrame:
    """The frame of a state with these fields, as it is stored and read back."""
    state = LoopState(settings=settings(), step_exec_id="x7", input_json='"the input"')
    made = frame_of(replace(state, **changes))
    assert load_frame(dump_frame(made, max_iterations=9), max_iterations=9) == made
    return made


@pytest.mark.req("FR-02")
def test_it_names_the_logical_loop_the_execution_step_and_the_role() -> None:
    made = frame(settings=settings(loop_id="mend", role_key="coder"), last_act_model="test:m")
    assert (made.loop_id, made.step_exec_id, made.role_key) == ("mend", "x7", "coder")
    assert identity_of(LoopState(settings=settings(loop_id="l", role_key="r"), step_exec_id="x")) == ("l", "x", "r")


@pytest.mark.req("FR-03")
def test_it_holds_the_validated_input() -> None:
    assert frame().loop_input_json == '"the input"'


@pytest.mark.req("FR-04", "FR-05", "FR-06", "FR-19", "FR-21")
def test_it_says_where_the_loop_is_and_whence_the_next_act_goes_on() -> None:
    before = '{"iteration":1}'
    made = frame(iteration=2, preserved_leaf=41, last_rejected_json=before, last_act_model="test:m")
    assert (made.iteration, made.phase, made.preserved_act_leaf_message_id) == (2, "act", "41")
    assert (made.last_rejected_iteration_json, made.last_act_model_id) == (before, "test:m")
    assert frame(phase="evaluate", last_output_json="1", last_receipt_json="{}").phase == "evaluate"


@pytest.mark.req("FR-07")
def test_output_and_receipt_are_there_in_evaluate_and_only_there() -> None:
    held = {"last_output_json": '"did it"', "last_receipt_json": '{"base":"t1"}'}
    made = frame(phase="evaluate", **held)
    assert (made.last_act_output_json, made.last_act_scope_receipt_json) == tuple(held.values())
    made = frame(**held)
    assert (made.last_act_output_json, made.last_act_scope_receipt_json) == (None, None)


@pytest.mark.req("FR-08", "FR-09", "FR-10", "FR-11")
def test_totals_and_acts_share_of_them_are_apart() -> None:
    total = Counters(turns=7, usage=Usage(cost_usd=Decimal("0.30")), us=900 * MS + 999)
    act = Counters(turns=5, usage=Usage(cost_usd=Decimal("0.10")), us=400 * MS + 1)
    made = frame(total=total, act=act)
    assert (made.turns_taken, made.cost_usd, made.elapsed_duration_ms) == (7, Decimal("0.30"), 900)
    assert (made.act_turns_taken, made.act_cost_usd, made.act_elapsed_duration_ms) == (5, Decimal("0.10"), 400)


@pytest.mark.req("FR-12")
def test_it_holds_the_leases_of_the_loop_with_their_end_and_none_that_ends_sooner() -> None:
    leases = (
        Lease(id="a", op="grant", capability="fs.write", scope="loop"),
        Lease(id="b", op="revoke", capability="fs.write:keys/**", scope="loop", expires_at_us=5_000 * MS),
        Lease(id="c", op="grant", capability="fs.delete", scope="turn"),
        Lease(id="d", op="grant", capability="fs.read", scope="step"),
    )
    assert frame(carried=Carried(leases=leases)).granted_loop_leases == (
        LeaseDelta(id="a", op="grant", capability="fs.write", scope="loop"),
        LeaseDelta(id="b", op="revoke", capability="fs.write:keys/**", scope="loop", expires_at_ms=5_000),
    )


@pytest.mark.req("FR-13", "FR-14", "FR-15")
def test_it_holds_skills_with_their_coordinates_effects_and_rules() -> None:
    carried = Carried(
        skills={"mend": Mount(call_id="call_3", message=12), "test": Mount(call_id="", message=30)},
        effects=("fs.write src/a b.py", "process.spawn make test"),
        rules={"AGENTS.md": 4, ".treadle/rules/a.md": 6},
    )
    made = frame(carried=carried)
    assert made.active_skill_ids == ("mend", "test")
    assert made.active_skill_activations == {
        "mend": SkillActivation(call_id="call_3", message_id="12"),
        "test": SkillActivation(call_id="", message_id="30"),
    }
    assert made.observed_effects == (
        ToolEffect(kind="fs.write", target="src/a b.py"),
        ToolEffect(kind="process.spawn", target="make test"),
    )
    assert made.injected_scoped_rule_ids == ("AGENTS.md", ".treadle/rules/a.md")


@pytest.mark.req("FR-16")
@pytest.mark.parametrize(
    ("isolated", "effects", "armed"),
    [
        (False, ("fs.write a",), None),
        (True, (), False),
        (True, ("fs.read a", "process.spawn make"), False),
        (True, ("fs.read a", "fs.write a"), True),
        (True, ("fs.delete a",), True),
    ],
)
def test_the_conflict_check_is_armed_at_the_first_write_in_the_scope(
    isolated: bool, effects: tuple[str, ...], armed: bool | None
) -> None:
    isolation = Isolation(origin="/o", folder="/w", branch="b", base="c1", target="main", on_accept="merge")
    scope = ScopeState(isolation=isolation) if isolated else None
    assert frame(scope=scope, carried=Carried(effects=effects)).conflict_check_armed is armed
