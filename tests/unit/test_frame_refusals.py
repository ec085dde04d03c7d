"""A frame that cannot be trusted is refused with a typed error that names the field."""

from __future__ import annotations

import hashlib
import json
import math
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.frames import MAX_ITERATIONS, frames, fullest, smallest
from treadle.core.errors import (
    BrokenInvariant,
    DanglingMessage,
    DigestMismatch,
    FrameError,
    IdentityMismatch,
    InvalidField,
    MalformedFrame,
    StaleScopeReceipt,
    UnsupportedVersion,
    WrongKind,
)
from treadle.kernel.frame import (
    FrameIdentity,
    LeaseDelta,
    RecalledLesson,
    SkillActivation,
    ToolEffect,
    check_invariants,
    dump_frame,
    load_frame,
)


def sealed(frame_json: str, *, version: str = "1", schema: str = "treadle.frame") -> bytes:
    digest = "sha256:" + hashlib.sha256(frame_json.encode()).hexdigest()
    return f'{{"schema":"{schema}","version":{version},"digest":"{digest}","frame":{frame_json}}}'.encode()


def with_fields(**changes) -> bytes:
    """A frame whose writer meant it: the digest fits. None takes the field out."""
    frame = json.loads(dump_frame(fullest(), max_iterations=3))["frame"] | changes
    return sealed(json.dumps({name: value for name, value in frame.items() if value is not ...}))


def refuse(error: type[FrameError], path: str, data: bytes, **given) -> FrameError:
    with pytest.raises(FrameError) as caught:
        load_frame(data, max_iterations=3, **given)
    assert type(caught.value) is error, caught.value
    assert caught.value.path == path
    assert str(caught.value).startswith(path)
    return caught.value


def survives(data: bytes) -> bool:
    try:
        load_frame(data, max_iterations=MAX_ITERATIONS)
    except FrameError:
        return False
    return True


@pytest.mark.req("FR-23")
@pytest.mark.parametrize("frame", [smallest(), fullest()], ids=["smallest", "fullest"])
def test_any_single_changed_byte_is_detected(frame):
    data = dump_frame(frame, max_iterations=3)
    unseen = [
        (at, other)
        for at, byte in enumerate(data)
        for other in {byte ^ 1, byte ^ 0x20, byte ^ 0x80, byte ^ 0xFF, 0, 0x20, 0x09, 0x30, 0x22} - {byte}
        if survives(data[:at] + bytes([other]) + data[at + 1 :])
    ]
    assert unseen == []


@pytest.mark.req("FR-23")
@settings(max_examples=50)
@given(frames(), st.data())
def test_any_single_changed_byte_of_any_frame_is_detected(frame, data):
    stored = dump_frame(frame, max_iterations=MAX_ITERATIONS)
    at = data.draw(st.integers(0, len(stored) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda value: value != stored[at]))
    assert not survives(stored[:at] + bytes([other]) + stored[at + 1 :])


@pytest.mark.req("FR-23")
@settings(max_examples=200)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_noise_is_refused_with_a_typed_error(noise):
    assert not survives(noise)
    assert not survives(sealed(noise.decode(errors="replace")))


@pytest.mark.req("FR-23")
@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe", b'{"a":' * 100_000, dump_frame(smallest(), max_iterations=1)[:-1]], ids=len
)
def test_what_is_no_json_is_malformed(data):
    refuse(MalformedFrame, "$", data)


@pytest.mark.req("FR-23")
def test_other_spellings_of_the_same_envelope_are_malformed():
    data = dump_frame(smallest(), max_iterations=3)
    for other in (
        data + b"\n",
        data.replace(b'"version":1', b'"version": 1'),
        data.replace(b'"version":1', b'"version":1,"version":1'),
        data.replace(b'"schema"', b'"sch\\u0065ma"'),
        data.replace(b"treadle.frame", b"treadl\\u0065.frame"),
        json.dumps(json.loads(data), sort_keys=True, separators=(",", ":")).encode(),
    ):
        refuse(MalformedFrame, "$", other)


@pytest.mark.req("FR-23")
def test_a_key_that_is_there_twice_is_malformed():
    frame = json.dumps(json.loads(dump_frame(smallest(), max_iterations=3))["frame"])
    refuse(MalformedFrame, "$.frame", sealed(frame.replace('"iteration": 0', '"iteration": 0, "iteration": 0')))


@pytest.mark.req("FR-23")
@pytest.mark.parametrize(
    "text", ['"\\ud800"', "NaN", "-Infinity", "[" * 100_000 + "]" * 100_000, "9" * 5_000], ids=lambda text: text[:9]
)
def test_json_that_others_read_differently_is_refused(text):
    frame = json.dumps(json.loads(dump_frame(fullest(), max_iterations=3))["frame"] | {"lastActModelId": "@"})
    with pytest.raises((MalformedFrame, InvalidField)):
        load_frame(sealed(frame.replace('"@"', text)), max_iterations=3)


@pytest.mark.req("FR-01", "FR-23")
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("agent-frame", "the frame of an agent"),
        ("task-frame", "the frame of a workflow task"),
        ("export", "an export"),
        ("recipe", "'recipe'"),
        (None, "no kind"),
        (..., "no kind"),
        ([], "no kind"),
    ],
)
def test_a_frame_of_another_kind_is_refused_and_named(kind, said):
    assert said in str(refuse(WrongKind, "$.frame.kind", with_fields(kind=kind)))


@pytest.mark.req("FR-23")
def test_a_document_of_another_schema_is_of_the_wrong_kind():
    refuse(WrongKind, "$.schema", sealed("{}", schema="cooking.recipe"))


@pytest.mark.req("FR-23")
def test_a_newer_version_is_refused_before_anything_else_is_looked_at():
    refuse(UnsupportedVersion, "$.version", b'{"version": 2, "seal": [], "kind": 7}')


@pytest.mark.req("FR-23")
@pytest.mark.parametrize("version", ["0", "-1"])
def test_a_version_that_no_step_upgrades_is_unsupported(version):
    frame = json.dumps(json.loads(dump_frame(smallest(), max_iterations=3))["frame"])
    refuse(UnsupportedVersion, "$.version", sealed(frame, version=version))


@pytest.mark.req("FR-23")
def test_a_changed_value_is_a_digest_mismatch():
    refuse(DigestMismatch, "$.digest", dump_frame(fullest(), max_iterations=3).replace(b'"phase":"e', b'"phase":"E'))


@pytest.mark.req("FR-23")
@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b"[]", "$"),
        (b'{"version": true}', "$.version"),
        (b'{"version": "1"}', "$.version"),
        (b'{"schema": "treadle.frame"}', "$.version"),
        (b'{"version": 1}', "$.schema"),
        (b'{"schema":"treadle.frame","version":1,"digest":7,"frame":{}}', "$.digest"),
        (b'{"schema":"treadle.frame","version":1,"digest":"","frame":{},"more":1}', "$.more"),
        (sealed("7"), "$.frame"),
    ],
)
def test_a_field_of_the_envelope_that_is_missing_or_mistyped_is_named(data, path):
    refuse(InvalidField, path, data)


@pytest.mark.req("FR-23")
@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"roleKey": ...}, "$.frame.roleKey"),
        ({"preservedActLeafMessageId": ...}, "$.frame.preservedActLeafMessageId"),
        ({"surprise": 1}, "$.frame.surprise"),
        ({"phase": "check"}, "$.frame.phase"),
        ({"loopId": 7}, "$.frame.loopId"),
        ({"lastActModelId": None}, "$.frame.lastActModelId"),
        ({"conflictCheckArmed": None}, "$.frame.conflictCheckArmed"),
        ({"activeSkillIds": ["a", 1]}, "$.frame.activeSkillIds[1]"),
        ({"activeSkillActivations": {"review": {"callId": "1"}}}, "$.frame.activeSkillActivations[...].messageId"),
        ({"grantedLoopLeases": [{"id": "1"}]}, "$.frame.grantedLoopLeases[0].op"),
        ({"accumulatedLessonOutcomes": {"n1": "splendid"}}, "$.frame.accumulatedLessonOutcomes[...]"),
        ({"loopInputJson": "{"}, "$.frame.loopInputJson"),
        ({"lastActOutputJson": ""}, "$.frame.lastActOutputJson"),
    ],
)
def test_a_field_of_the_frame_that_is_missing_or_mistyped_is_named(changes, path):
    refuse(InvalidField, path, with_fields(**changes))


@pytest.mark.req("FR-11")
@pytest.mark.parametrize(
    "name", ["iteration", "turnsTaken", "actTurnsTaken", "elapsedDurationMs", "actElapsedDurationMs"]
)
@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_a_count_is_a_whole_number_and_nothing_like_it(name, value):
    refuse(InvalidField, f"$.frame.{name}", with_fields(**{name: value}))


@pytest.mark.req("FR-11")
@pytest.mark.parametrize("name", ["costUsd", "actCostUsd"])
@pytest.mark.parametrize("value", [True, "0.10", "NaN", None])
def test_money_is_a_number_and_nothing_like_it(name, value):
    refuse(InvalidField, f"$.frame.{name}", with_fields(**{name: value}))


@pytest.mark.req("FR-11")
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_stored_money_is_finite(value):
    refuse(MalformedFrame, "$", with_fields(costUsd=value))


@pytest.mark.req("FR-11", "FR-24")
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("iteration", "$.frame.iteration"),
        ("turns_taken", "$.frame.turnsTaken"),
        ("act_turns_taken", "$.frame.actTurnsTaken"),
        ("elapsed_duration_ms", "$.frame.elapsedDurationMs"),
        ("act_elapsed_duration_ms", "$.frame.actElapsedDurationMs"),
        ("cost_usd", "$.frame.costUsd"),
        ("act_cost_usd", "$.frame.actCostUsd"),
    ],
)
def test_nothing_below_zero_is_loaded_or_saved(name, path):
    refuse(BrokenInvariant, path, with_fields(**{path.removeprefix("$.frame."): -1}))
    with pytest.raises(BrokenInvariant, match="negative") as caught:
        dump_frame(fullest(**{name: Decimal(-1) if "cost" in name else -1}), max_iterations=3)
    assert caught.value.path == path


@pytest.mark.req("FR-11")
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"iteration": True}, InvalidField),
        ({"turns_taken": 19.0}, InvalidField),
        ({"cost_usd": 0.1}, InvalidField),
        ({"cost_usd": 1}, InvalidField),
        ({"cost_usd": Decimal("NaN")}, BrokenInvariant),
        ({"cost_usd": Decimal("sNaN")}, BrokenInvariant),
        ({"cost_usd": Decimal("Infinity")}, BrokenInvariant),
        ({"act_cost_usd": Decimal("-0")}, BrokenInvariant),
    ],
)
def test_amounts_that_are_none_are_not_saved(changes, error):
    with pytest.raises(error):
        dump_frame(fullest(**changes), max_iterations=3)
    with pytest.raises(error):
        check_invariants(fullest(**changes), 3)


@pytest.mark.req("FR-24", "FR-13", "FR-18")
@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"act_turns_taken": 20}, "$.frame.turnsTaken"),
        ({"act_cost_usd": Decimal("0.1000000000000000000001")}, "$.frame.costUsd"),
        ({"act_elapsed_duration_ms": 61_251}, "$.frame.elapsedDurationMs"),
        ({"iteration": 3}, "$.frame.iteration"),
        ({"active_skill_ids": ("deploy",)}, "$.frame.activeSkillActivations"),
        ({"active_skill_ids": ("review", "review")}, "$.frame.activeSkillIds"),
        ({"recalled_lessons": ()}, "$.frame.accumulatedLessonOutcomes"),
        ({"recalled_lessons": (RecalledLesson(lesson_id="n1", text=""),) * 2}, "$.frame.recalledLessons"),
        ({"injected_scoped_rule_ids": ("a", "b", "a")}, "$.frame.injectedScopedRuleIds"),
        ({"observed_effects": (ToolEffect(kind="fs.read", target="a"),) * 2}, "$.frame.observedEffects"),
        (
            {"granted_loop_leases": (LeaseDelta(id="l", op="grant", capability="c", scope="loop"),) * 2},
            "$.frame.grantedLoopLeases",
        ),
        (
            {"granted_loop_leases": (LeaseDelta(id="l", op="grant", capability="c", scope="step"),)},
            "$.frame.grantedLoopLeases",
        ),
        ({"last_rejected_iteration_json": None}, "$.frame.lastRejectedIterationJson"),
    ],
)
def test_contradictions_are_neither_loaded_nor_saved(changes, path):
    frame = fullest(**changes)
    with pytest.raises(BrokenInvariant) as caught:
        dump_frame(frame, max_iterations=3)
    assert caught.value.path == path
    refuse(BrokenInvariant, path, sealed(msgspec.json.Encoder(decimal_format="number").encode(frame).decode()))


@pytest.mark.req("FR-07")
@pytest.mark.parametrize("name", ["last_act_output_json", "last_act_scope_receipt_json"])
def test_evaluate_has_an_output_and_a_receipt_and_act_has_neither(name):
    for frame in (fullest(**{name: None}), smallest(**{name: "1"})):
        with pytest.raises(BrokenInvariant, match=f"phase {frame.phase}"):
            dump_frame(frame, max_iterations=3)


@pytest.mark.req("FR-24")
def test_the_number_of_rounds_is_checked_where_it_is_known():
    data = dump_frame(fullest(iteration=7), max_iterations=8)
    refuse(BrokenInvariant, "$.frame.iteration", data)
    assert load_frame(data, max_iterations=None).iteration == 7


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"buffered_gate_recoveries": (math.nan,)}, "$.frame.bufferedGateRecoveries"),
        ({"buffered_gate_recoveries": ({1: 2},)}, "$.frame.bufferedGateRecoveries"),
        ({"buffered_gate_recoveries": (object(),)}, "$.frame"),
        ({"active_skill_ids": ["review"]}, "$.frame.activeSkillIds"),
        ({"role_key": "\ud800"}, "$.frame"),
        ({"role_key": 7}, "$.frame.roleKey"),
        ({"last_act_output_json": "\ud800"}, "$.frame.lastActOutputJson"),
    ],
)
def test_what_would_not_come_back_the_same_is_not_saved(changes, path):
    with pytest.raises(InvalidField) as caught:
        dump_frame(fullest(**changes), max_iterations=3)
    assert caught.value.path == path


@pytest.mark.req("FR-02", "FR-23")
@pytest.mark.parametrize(
    ("identity", "path"),
    [
        (FrameIdentity("other", "x1", "fix/act"), "$.frame.loopId"),
        (FrameIdentity("fix", "x2", "fix/act"), "$.frame.stepExecId"),
        (FrameIdentity("fix", "x1", "fix/evaluate"), "$.frame.roleKey"),
    ],
)
def test_a_frame_of_another_loop_step_or_role_is_refused(identity, path):
    data = dump_frame(fullest(), max_iterations=3)
    assert load_frame(data, max_iterations=3, identity=FrameIdentity("fix", "x1", "fix/act")) == fullest()
    refuse(IdentityMismatch, path, data, identity=identity)


@pytest.mark.req("FR-23")
def test_a_message_that_is_not_there_is_dangling():
    data = dump_frame(fullest(), max_iterations=3)
    assert load_frame(data, max_iterations=3, has_message={"57", "12"}.__contains__) == fullest()
    refuse(DanglingMessage, "$.frame.preservedActLeafMessageId", data, has_message={"12"}.__contains__)
    path = "$.frame.activeSkillActivations['review'].messageId"
    refuse(DanglingMessage, path, data, has_message={"57"}.__contains__)
    bare = dump_frame(smallest(), max_iterations=3)
    assert load_frame(bare, max_iterations=3, has_message=lambda _: False) == smallest()


@pytest.mark.req("FR-23")
def test_a_receipt_that_the_workspace_no_longer_holds_is_stale():
    data = dump_frame(fullest(), max_iterations=3)
    seen = []
    assert load_frame(data, max_iterations=3, receipt_holds=lambda receipt: not seen.append(receipt)) == fullest()
    assert seen == [fullest().last_act_scope_receipt_json]
    refuse(StaleScopeReceipt, "$.frame.lastActScopeReceiptJson", data, receipt_holds=lambda _: False)


def test_skill_coordinates_are_kept_field_for_field():
    frame = fullest(active_skill_activations={"review": SkillActivation(call_id="9.1", message_id="40")})
    assert load_frame(dump_frame(frame, max_iterations=3), max_iterations=3) == frame
