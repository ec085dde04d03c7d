"""The table of outcomes: whole, ordered, and what each means to a program (AG-17)."""

from __future__ import annotations

import pytest

from support.machine import Machine, finish
from treadle.app.ending import rest_of
from treadle.core.endings import ending
from treadle.core.settings import Limits
from treadle.kernel.mutation import needs_change
from treadle.kernel.outcomes import OUTCOMES, outcome_of
from treadle.kernel.states import LoopState

KINDS = {
    "accepted", "no change", "max iterations", "budget", "timeout", "thrash", "provider", "permission", "safety",
    "verification failed", "required edit missing", "recovery exhausted", "cancelled", "internal", "unknown",
}  # fmt: skip


@pytest.mark.req("AG-17")
def test_the_table_has_every_kind_and_each_leads_to_an_ending() -> None:
    assert {row.kind for row in OUTCOMES} >= KINDS
    for row in OUTCOMES:
        found = ending(row.status, row.code)
        assert found.success == (row.kind == "accepted")
        assert found.nonfailure == (
            row.kind in ("accepted", "no change", "budget", "usage unavailable", "cancelled", "rejected")
        )


@pytest.mark.req("AG-17")
def test_where_two_hold_the_earlier_row_decides() -> None:
    machine = Machine(turns=["plan", [finish()]], verdicts=[True]).start(limits=Limits(max_turns=2))
    assert machine.rest().outcome == "budget: max_turns"
    machine = Machine(turns=["plan", [finish()]], verdicts=[True]).start(limits=Limits(max_turns=3))
    assert machine.rest().outcome == "accepted"


@pytest.mark.req("AG-17")
@pytest.mark.parametrize(("required", "code"), [(True, "required-edit-missing"), (False, "no-change")])
def test_an_edit_that_was_asked_for_and_not_made_is_no_success(required: bool, code: str) -> None:
    machine = Machine(turns=["plan", [finish()]], verdicts=[True])
    assert machine.start(baseline=True, edit_required=required).rest().code == code


@pytest.mark.req("AG-17")
@pytest.mark.parametrize(
    ("kind", "row"), [("thrash: repeat", "thrash"), ("budget: max_cost", "budget"), ("new kind", "unknown")]
)
def test_a_stored_kind_finds_its_row(kind: str, row: str) -> None:
    assert outcome_of(kind).kind == row


@pytest.mark.req("AG-09")
@pytest.mark.parametrize(
    ("task", "must"),
    [
        ("Fix the failing test", True),
        ("Please add a flag", True),
        ("The build is broken. Repair it.", True),
        ("Explain how to fix the build", False),
        ("Review the change", False),
        ("What would you change here?", False),
        ("Fix nothing yet: do not change any file, only report", False),
        ("", False),
    ],
)
def test_whether_a_task_must_change_something_is_told_by_its_words(task: str, must: bool) -> None:
    assert needs_change(task) == must


@pytest.mark.req("SV-02")
def test_what_a_running_loop_was_last_told_stands_alone() -> None:
    """It has no ending yet that it could be the reason of."""
    assert rest_of("x", LoopState(status="running", evidence="pytest -q: exit code 1")).why == "pytest -q: exit code 1"
