"""What happened to a plan: results of calls, a new writing, a step that moved, a person's decision. Nothing is decided here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from treadle.core.errors import InvalidStateTransition
from treadle.core.events import Answered, PlanWritten, StepMoved, Suspended
from treadle.core.messages import ToolCall, ToolResult, ToolsFinished
from treadle.core.plans import plan_digest
from treadle.core.values import Value, replace

from . import texts
from .plan_standing import find, gated
from .states import LoopState, Outcome, PlanState, StepState

WORK = ("read", "idempotent", "mutating")
_RULES = re.compile(r"([=\-_.*#~])\1{4,}")  # lines that programs draw
SAID = 200  # characters of a failed check's output that are kept as the reason


def fold_results(state: LoopState, event: ToolsFinished) -> LoopState:
    """Notes how calls of act ended, to be held against the plan; and a finish that was refused."""
    if state.phase != "act" or not (state.plan.digest or state.settings.plan_mode):
        return state
    return replace(state, plan=_with_results(state, event))


def _with_results(state: LoopState, event: ToolsFinished) -> PlanState:
    plan, first = state.plan, state.agent.answered
    calls = state.agent.calls[first : first + len(event.results)]
    outcomes: list[Outcome] = []
    refused, applied = plan.refused, plan.applied
    for offset, (call, result) in enumerate(zip(calls, event.results, strict=True)):
        if call.kind == "plan":
            applied = ""
        elif call.kind == "finish" and result.status == "not-run" and (plan.steps or gated(state)):
            refused += 1
        elif call.kind in WORK and result.status != "not-run" and plan.steps and not gated(state):
            outcomes.append(_outcome(state, first + offset, call, result))
    plan = replace(plan, refused=refused, applied=applied, outcomes=tuple(outcomes))
    return replace(plan, last=outcomes[-1].key, last_passed=outcomes[-1].passed) if outcomes else plan


def _outcome(state: LoopState, index: int, call: ToolCall, result: ToolResult) -> Outcome:
    passed = result.status == "ok" and result.passed
    said = "" if passed else " ".join(_RULES.sub("", result.content).split())[-SAID:]
    key = f"r{state.round}.{state.phase}.t{state.agent.turn}.c{index}"
    return Outcome(key=key, tool=call.name, args=call.args, passed=passed, said=said)


def fold_written(state: LoopState, event: PlanWritten) -> LoopState:
    """Steps that are as they were keep their progress; a changed plan shuts the gate of plan mode again."""
    before = {step.step.id: step for step in state.plan.steps}
    steps = tuple(
        kept if (kept := before.get(step.id)) is not None and kept.step == step else StepState(step=step)
        for step in event.steps
    )
    digest = plan_digest(event.steps)
    same = digest == state.plan.digest and state.plan.approved == digest
    plan = replace(
        state.plan,
        steps=steps,
        digest=digest,
        written=state.plan.written + 1,
        asked=same,
        applied=event.call or state.plan.applied,
        outcomes=(),
    )
    state = replace(state, plan=plan)
    if event.withdraws and state.pending is not None and state.pending.id == event.withdraws:
        state = replace(state, pending=None, status="running", code="")
    return _planning_again(state) if gated(state) else state


def _planning_again(state: LoopState) -> LoopState:
    """A changed plan starts a new agent run at Planning, with the old counters: Executing has no way back (AG-01)."""
    if state.agent.state not in ("executing", "error_recovery"):
        return state
    return replace(state, agent=replace(state.agent, state="planning"))


def fold_moved(state: LoopState, event: StepMoved) -> LoopState:
    """One step has another status."""
    plan = state.plan
    if find(plan, event.step) is None:
        raise InvalidStateTransition("the plan", f"step {event.step}")
    steps = tuple(_with(step, event) if step.step.id == event.step else step for step in plan.steps)
    fresh = event.status == "in-progress" and event.by != "work"
    over = event.status in ("done", "failed")
    plan = replace(
        plan,
        steps=steps,
        outcomes=plan.outcomes[event.taken :],
        applied=event.call or plan.applied,
        last="" if fresh or over else plan.last,
        last_passed=plan.last_passed and not (fresh or over),
        refused=0 if event.status == "done" else plan.refused,
    )
    return replace(state, plan=plan)


def _with(step: StepState, event: StepMoved) -> StepState:
    return replace(
        step, status=event.status, by=event.by, reason=event.reason, evidence=event.evidence, actor=event.actor
    )


def fold_reopened(state: LoopState) -> LoopState:
    """Another try: what was refused before counts no more."""
    return replace(state, plan=replace(state.plan, refused=0)) if state.plan.refused else state


def fold_asked(state: LoopState, event: Suspended) -> LoopState:
    """Where the plan is asked for: this writing of it is before the person."""
    if event.kind != "plan":
        return state
    return replace(state, plan=replace(state.plan, asked=True))


def fold_answered(state: LoopState, event: Answered) -> LoopState:
    """A person's decision on the plan that the request named: approved, or back to the model with the reason."""
    agent = state.agent
    if event.decision == "approve":
        plan = replace(state.plan, approved=state.plan.digest, approved_by=event.actor)
        agent = replace(agent, state="executing" if agent.state == "planning" else agent.state)
        text = texts.plan_approved(event)
    else:
        plan, text = state.plan, texts.plan_rejected(event)
    agent = replace(agent, step="prompt", prompt=text, origin="person")
    return replace(state, plan=plan, agent=agent, pending=None, status="running", code="")


FOLD: dict[type[Value], Callable[[LoopState, Any], LoopState]] = {PlanWritten: fold_written, StepMoved: fold_moved}
