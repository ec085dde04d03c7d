"""What a stored frame looks like, that it comes back exactly, and that older versions are brought up to date."""

from __future__ import annotations

import hashlib
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.frames import MAX_ITERATIONS, frames, fullest, money, smallest
from treadle.core.errors import InvalidField, UnsupportedVersion
from treadle.core.lesson_events import OUTCOMES, worse
from treadle.kernel.frame import VERSION, dump_frame, load_frame, upgrade

GOLDEN = Path(__file__).parents[1] / "fixtures" / "frames"
ALWAYS = {
    *("kind", "loopId", "stepExecId", "roleKey", "loopInputJson", "iteration", "phase", "preservedActLeafMessageId"),
    *("turnsTaken", "costUsd", "elapsedDurationMs", "actTurnsTaken", "actCostUsd", "actElapsedDurationMs"),
    *("grantedLoopLeases", "activeSkillIds", "activeSkillActivations", "observedEffects", "injectedScopedRuleIds"),
    *("recalledLessons", "accumulatedLessonOutcomes"),
}
SOMETIMES = {
    *("lastActModelId", "lastActOutputJson", "lastActScopeReceiptJson", "conflictCheckArmed"),
    *("lastRejectedIterationJson", "bufferedGateRecoveries"),
}


def stored(frame) -> dict:
    return json.loads(dump_frame(frame, max_iterations=MAX_ITERATIONS))


def sealed(frame_json: str, version: int) -> bytes:
    digest = "sha256:" + hashlib.sha256(frame_json.encode()).hexdigest()
    return f'{{"schema":"treadle.frame","version":{version},"digest":"{digest}","frame":{frame_json}}}'.encode()


@given(frames())
def test_a_frame_comes_back_as_it_was_written(frame):
    data = dump_frame(frame, max_iterations=MAX_ITERATIONS)
    again = load_frame(data, max_iterations=MAX_ITERATIONS)
    assert again == frame
    assert dump_frame(again, max_iterations=MAX_ITERATIONS) == data


@pytest.mark.req("FR-01")
def test_the_json_has_the_names_of_the_interface_and_says_its_kind():
    frame = stored(fullest())["frame"]
    assert set(frame) == ALWAYS | SOMETIMES
    assert frame["kind"] == "loop-frame"
    assert set(frame["activeSkillActivations"]["review"]) == {"callId", "messageId"}


@pytest.mark.req("FR-16")
def test_what_is_absent_is_left_out_of_the_json():
    assert set(stored(smallest())["frame"]) == ALWAYS
    assert stored(smallest(conflict_check_armed=False))["frame"]["conflictCheckArmed"] is False


@pytest.mark.req("FR-06")
def test_a_leaf_that_is_not_there_is_an_explicit_null():
    assert stored(smallest())["frame"]["preservedActLeafMessageId"] is None


@pytest.mark.req("FR-11")
@given(money, st.sampled_from(["cost_usd", "act_cost_usd"]))
def test_money_is_a_json_number_outside_and_the_same_decimal_inside(amount, name):
    frame = smallest(**{"cost_usd": amount, name: amount})
    data = dump_frame(frame, max_iterations=1)
    outside = re.search(rb'"%b":([^,]+),' % (b"costUsd" if name == "cost_usd" else b"actCostUsd"), data)
    assert outside is not None
    assert re.fullmatch(rb"(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", outside[1])
    inside = getattr(load_frame(data, max_iterations=1), name)
    assert inside.as_tuple() == amount.as_tuple()


@pytest.mark.req("FR-23")
def test_the_digest_is_over_the_exact_stored_bytes():
    envelope = stored(fullest())
    assert list(envelope) == ["schema", "version", "digest", "frame"]
    spaced = json.dumps(envelope["frame"], indent=1)
    again = load_frame(sealed(spaced, VERSION), max_iterations=3)
    assert again.loop_id == "fix"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.name)
@pytest.mark.req("FR-23")
def test_frames_of_every_released_version_are_still_read(path):
    expected = {"smallest": smallest, "fullest": fullest}[path.name.split(".")[1]]()
    assert load_frame(path.read_bytes(), max_iterations=3) == expected


def test_todays_form_is_the_golden_form():
    for name, frame in (("smallest", smallest()), ("fullest", fullest())):
        golden = GOLDEN / f"v{VERSION}.{name}.json"
        assert dump_frame(frame, max_iterations=3) == golden.read_bytes()


@pytest.mark.req("FR-23")
def test_an_older_frame_is_upgraded_step_by_step():
    def to_one(document):
        return {**document, "roleKey": document["loopId"] + "/act", "costUsd": document["costUsd"] + 1}

    old = {**stored(fullest())["frame"], "roleKey": ""}
    data = sealed(json.dumps(old), 0)
    frame = load_frame(data, max_iterations=3, steps={0: to_one})
    assert frame.role_key == "fix/act"
    assert frame.cost_usd == Decimal("1.1")


@pytest.mark.req("FR-23")
def test_upgrade_steps_run_in_order_from_the_stored_version_on():
    steps = {n: lambda document, n=n: {"trail": [*document["trail"], n]} for n in (1, 2, 3, 4)}
    assert upgrade({"trail": []}, 2, steps, 4) == {"trail": [2, 3]}
    assert upgrade({"trail": []}, 4, steps, 4) == {"trail": []}


def test_a_gap_in_the_chain_is_an_unsupported_version():
    with pytest.raises(UnsupportedVersion, match="version 2"):
        upgrade({}, 1, {1: dict, 3: dict}, 4)


def test_an_old_frame_that_its_step_cannot_read_is_an_invalid_field():
    with pytest.raises(InvalidField, match="version 1"):
        upgrade({}, 1, {1: lambda document: {"loop": document["loop"]}}, 2)


@given(st.sampled_from(OUTCOMES), st.sampled_from(OUTCOMES))
def test_the_worse_outcome_wins_whichever_came_last(one, other):
    order = ["unobserved", "helpful", "neutral", "harmful"]
    assert worse(one, other) == worse(other, one) == order[max(order.index(one), order.index(other))]
