"""How a plan stands: what is open, done and verified, which step is next, and whether plan mode holds act back."""

from __future__ import annotations

from .states import LoopState, PlanState, StepState


def gated(state: LoopState) -> bool:
    """Whether only reading is allowed: plan mode, and the plan as it stands has no person's approval."""
    if not state.settings.plan_mode or state.phase != "act":
        return False
    plan = state.plan
    return not plan.digest or plan.approved != plan.digest


def open_steps(plan: PlanState) -> tuple[StepState, ...]:
    """What is not done."""
    return tuple(step for step in plan.steps if step.status != "done")


def completed_count(plan: PlanState) -> int:
    """Steps that are done, on whosever word."""
    return sum(step.status == "done" for step in plan.steps)


def verified_count(plan: PlanState) -> int:
    """Steps that are done because their check succeeded. A person's mark is none (AG-08)."""
    return sum(step.status == "done" and step.by == "check" for step in plan.steps)


def is_complete(plan: PlanState) -> bool:
    """There is a plan, and all of it is done."""
    return bool(plan.steps) and not open_steps(plan)


def next_step(plan: PlanState) -> StepState | None:
    """The step to go on with: one in progress, else the first open one that waits for none."""
    under_way = next((step for step in plan.steps if step.status == "in-progress"), None)
    return under_way or next((step for step in plan.steps if step.status != "done" and ready(plan, step)), None)


def ready(plan: PlanState, step: StepState) -> bool:
    """Whether all that it waits for is done."""
    done = {one.step.id for one in plan.steps if one.status == "done"}
    return done.issuperset(step.step.after)


def refused_too_often(state: LoopState) -> tuple[str, str] | None:
    """What ends a loop whose agent calls finish again and again (AG-06): twice as often as it may be silent."""
    plan = state.plan
    if not plan.refused or plan.refused < 2 * state.settings.guards.no_call:
        return None
    why = "steps of the plan were open" if plan.steps else "there was no plan yet"
    return "finish", f"finish was called {plan.refused} times in a row though {why}; see treadle plan show"


def find(plan: PlanState, name: str) -> StepState | None:
    """The step with this id."""
    return next((step for step in plan.steps if step.step.id == name), None)
