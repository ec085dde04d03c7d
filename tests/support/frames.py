"""Frames for property tests: every frame that the strategy makes is a valid one."""

from __future__ import annotations

import json
from decimal import Decimal

from hypothesis import strategies as st

from treadle.kernel.frame import LeaseDelta, LoopFrame, RecalledLesson, SkillActivation, ToolEffect

MAX_ITERATIONS = 50

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers(0, 10**9)
money = st.decimals(min_value=0, allow_nan=False, allow_infinity=False).map(abs)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_texts = json_values.map(json.dumps)
leases = st.builds(
    LeaseDelta,
    id=texts,
    op=st.sampled_from(["grant", "revoke"]),
    capability=texts,
    scope=st.just("loop"),
    expires_at_ms=st.none() | numbers,
)
effects = st.builds(
    ToolEffect, kind=st.sampled_from(["fs.read", "fs.write", "process.spawn", "moon.phase"]), target=texts
)
lessons = st.builds(RecalledLesson, lesson_id=texts, text=texts)
outcomes = st.sampled_from(["unobserved", "helpful", "neutral", "harmful"])
activations = st.builds(SkillActivation, call_id=texts, message_id=texts)


def unique(elements, key=None):
    return st.lists(elements, max_size=4, unique_by=key or (lambda one: one)).map(tuple)


@st.composite
def frames(draw) -> LoopFrame:
    act_turns, act_cost, act_ms = draw(numbers), draw(money), draw(numbers)
    evaluating = draw(st.booleans())
    iteration = draw(st.integers(0, MAX_ITERATIONS - 1))
    skills = draw(unique(texts))
    recalled = draw(unique(lessons, key=lambda one: one.lesson_id))
    return LoopFrame(
        loop_id=draw(texts),
        step_exec_id=draw(texts),
        role_key=draw(texts),
        last_act_model_id=draw(st.none() | texts),
        loop_input_json=draw(json_texts),
        iteration=iteration,
        phase="evaluate" if evaluating else "act",
        preserved_act_leaf_message_id=draw(st.none() | texts),
        last_act_output_json=draw(json_texts) if evaluating else None,
        last_act_scope_receipt_json=draw(json_texts) if evaluating else None,
        turns_taken=act_turns + draw(numbers),
        cost_usd=max(act_cost, draw(money)),
        elapsed_duration_ms=act_ms + draw(numbers),
        act_turns_taken=act_turns,
        act_cost_usd=act_cost,
        act_elapsed_duration_ms=act_ms,
        granted_loop_leases=draw(unique(leases, key=lambda one: one.id)),
        active_skill_ids=skills,
        active_skill_activations={skill: draw(activations) for skill in skills if draw(st.booleans())},
        observed_effects=draw(unique(effects, key=lambda one: (one.kind, one.target))),
        injected_scoped_rule_ids=draw(unique(texts)),
        conflict_check_armed=draw(st.none() | st.booleans()),
        recalled_lessons=recalled,
        last_rejected_iteration_json=draw(json_texts if iteration else st.none() | json_texts),
        buffered_gate_recoveries=draw(st.none() | st.lists(json_values, max_size=2).map(tuple)),
        accumulated_lesson_outcomes={one.lesson_id: draw(outcomes) for one in recalled if draw(st.booleans())},
    )


def smallest(**changes) -> LoopFrame:
    """A loop that has just started."""
    fields: dict = {
        "loop_id": "fix",
        "step_exec_id": "x1",
        "role_key": "fix/act",
        "loop_input_json": '"Fix it"',
        "iteration": 0,
        "phase": "act",
        "preserved_act_leaf_message_id": None,
        "turns_taken": 0,
        "cost_usd": Decimal(0),
        "elapsed_duration_ms": 0,
        "act_turns_taken": 0,
        "act_cost_usd": Decimal(0),
        "act_elapsed_duration_ms": 0,
        "granted_loop_leases": (),
        "active_skill_ids": (),
        "active_skill_activations": {},
        "observed_effects": (),
        "injected_scoped_rule_ids": (),
        "recalled_lessons": (),
        "accumulated_lesson_outcomes": {},
    }
    return LoopFrame(**fields | changes)


def fullest(**changes) -> LoopFrame:
    """A loop in its third round, with something in every field."""
    fields: dict = {
        "iteration": 2,
        "phase": "evaluate",
        "last_act_model_id": "openai:large",
        "preserved_act_leaf_message_id": "57",
        "last_act_output_json": '{"summary":"déjà vu"}',
        "last_act_scope_receipt_json": '["a1","b2",["kit.py"],"c3"]',
        "turns_taken": 19,
        "cost_usd": Decimal("0.10"),
        "elapsed_duration_ms": 61_250,
        "act_turns_taken": 17,
        "act_cost_usd": Decimal("0.0999999999999999999999"),
        "act_elapsed_duration_ms": 60_000,
        "granted_loop_leases": (
            LeaseDelta(id="l1", op="grant", capability="fs.write", scope="loop", expires_at_ms=1_800_000_000_000),
            LeaseDelta(id="l2", op="revoke", capability="fs.write", scope="loop"),
        ),
        "active_skill_ids": ("review", "deploy"),
        "active_skill_activations": {"review": SkillActivation(call_id="4.0", message_id="12")},
        "observed_effects": (ToolEffect(kind="fs.read", target="kit.py"), ToolEffect(kind="moon.phase", target="full")),
        "injected_scoped_rule_ids": ("python-style",),
        "conflict_check_armed": False,
        "recalled_lessons": (RecalledLesson(lesson_id="n1", text="Run the tests first."),),
        "last_rejected_iteration_json": '{"iteration":1}',
        "buffered_gate_recoveries": ({"failed": 3, "passed": 0.5},),
        "accumulated_lesson_outcomes": {"n1": "harmful"},
    }
    return smallest(**fields | changes)
