"""A plan in words, for models and people, and as a document for programs."""

from __future__ import annotations

from typing import Any

from treadle.core.plans import PlanStep, check_words

from . import texts
from .plan_standing import completed_count, gated, is_complete, next_step, verified_count
from .states import LoopState, PlanState, StepState


def step_line(state: StepState) -> str:
    """One step for the model or a person: mark, id, title, and what matters of it."""
    step = state.step
    more: list[str] = []
    if state.status in ("in-progress", "failed"):
        more.append(state.status.replace("-", " ") + (f": {state.reason}" if state.reason else ""))
    if state.status == "done" and state.by != "check":
        more.append(f"marked by {state.actor}: {state.reason}" if state.by == "person" else "done, without a check")
    if state.status != "done":
        if step.after:
            more.append(f"after {', '.join(step.after)}")
        if step.check:
            more.append(f"check: {check_words(step.check)}")
    marks = {"pending": " ", "in-progress": ">", "done": "x", "failed": "!"}
    return f"[{marks[state.status]}] {step.id}. {step.title}" + (f" ({'; '.join(more)})" if more else "")


def listed(plan: PlanState) -> str:
    """The whole plan, a step a line."""
    return "\n".join(step_line(step) for step in plan.steps)


def plan_prompt(state: LoopState) -> str:
    """The plan as part of each request of act: it outlives whatever is left out of the conversation."""
    plan = state.plan
    if not plan.steps:
        return texts.PLAN_MODE if gated(state) else ""
    head = texts.PLAN_MODE_WAITS if gated(state) else f"The plan ({completed_count(plan)} of {len(plan.steps)} done):"
    return f"{head}\n{listed(plan)}"


def as_document(plan: PlanState) -> dict[str, Any] | None:
    """For programs; None where there is no plan."""
    if not plan.steps:
        return None
    approved = plan.approved == plan.digest
    following = next_step(plan)
    return {
        "digest": plan.digest,
        "approved": approved,
        "approved_by": plan.approved_by if approved else None,
        "complete": is_complete(plan),
        "done": completed_count(plan),
        "verified": verified_count(plan),
        "next": following.step.id if following else None,
        "steps": [_step_document(step) for step in plan.steps],
    }


def _step_document(state: StepState) -> dict[str, Any]:
    return {
        **steps_as_written((state.step,))[0],
        "status": state.status,
        "by": state.by or None,
        "reason": state.reason or None,
        "evidence": state.evidence or None,
        "actor": state.actor or None,
    }


def steps_as_written(steps: tuple[PlanStep, ...]) -> list[dict[str, Any]]:
    """Steps in the form that `read_steps` reads."""
    made: list[dict[str, Any]] = []
    for step in steps:
        row: dict[str, Any] = {"id": step.id, "title": step.title}
        if step.check is not None:
            row["check"] = {"tool": step.check.tool, "args": step.check.args} if step.check.args else step.check.tool
        if step.after:
            row["after"] = list(step.after)
        made.append(row)
    return made
