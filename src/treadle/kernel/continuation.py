"""The frame of a loop, made from its state (FR-01 to FR-11). Between two frames the records are enough."""

from __future__ import annotations

from typing import Any

import msgspec

from .frame import FrameIdentity, LeaseDelta, LoopFrame, RecalledLesson, SkillActivation, ToolEffect
from .lesson_state import GateRecovery
from .scopes import armed
from .states import LoopState


def frame_of(state: LoopState) -> LoopFrame:
    """The continuation as of now. Durations are rounded down to whole milliseconds."""
    evaluating = state.phase == "evaluate"
    leaf = state.preserved_leaf
    carried, memory = state.carried, state.memory
    return LoopFrame(
        loop_id=state.settings.loop_id,
        step_exec_id=state.step_exec_id,
        role_key=state.settings.role_key,
        last_act_model_id=state.last_act_model or None,
        loop_input_json=state.input_json,
        iteration=state.iteration,
        phase=state.phase,
        preserved_act_leaf_message_id=None if leaf is None else str(leaf),
        last_act_output_json=state.last_output_json if evaluating else None,
        last_act_scope_receipt_json=state.last_receipt_json if evaluating else None,
        turns_taken=state.total.turns,
        cost_usd=state.total.usage.cost_usd,
        elapsed_duration_ms=state.total.us // 1000,
        act_turns_taken=state.act.turns,
        act_cost_usd=state.act.usage.cost_usd,
        act_elapsed_duration_ms=state.act.us // 1000,
        granted_loop_leases=tuple(
            LeaseDelta(
                id=lease.id,
                op=lease.op,
                capability=lease.capability,
                scope="loop",
                expires_at_ms=None if lease.expires_at_us is None else lease.expires_at_us // 1000,
            )
            for lease in carried.leases
            if lease.scope == "loop"
        ),
        active_skill_ids=tuple(carried.skills),
        active_skill_activations={
            name: SkillActivation(call_id=mount.call_id, message_id=str(mount.message))
            for name, mount in carried.skills.items()
        },
        observed_effects=tuple(_effect(effect) for effect in carried.effects),
        injected_scoped_rule_ids=tuple(carried.rules),
        conflict_check_armed=armed(state),
        recalled_lessons=tuple(RecalledLesson(lesson_id=one.lesson_id, text=one.text) for one in memory.recalled or ()),
        last_rejected_iteration_json=state.last_rejected_json,
        buffered_gate_recoveries=tuple(map(_recovery, memory.recoveries)) if state.settings.gates else None,
        accumulated_lesson_outcomes=memory.outcomes,
    )


def _recovery(recovery: GateRecovery) -> dict[str, Any]:
    """As JSON has it, so that it is read back as it is."""
    return {**msgspec.to_builtins(recovery), "changed": list(recovery.changed)}


def _effect(effect: str) -> ToolEffect:
    kind, _, target = effect.partition(" ")
    return ToolEffect(kind=kind, target=target)


def identity_of(state: LoopState) -> FrameIdentity:
    """What a frame of this execution must belong to."""
    return FrameIdentity(state.settings.loop_id, state.step_exec_id, state.settings.role_key)
