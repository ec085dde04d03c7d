"""The rules of a plan: which step is next, what the outcome of a call says of it, when act may finish, and what waits for a person.

    pending ──► in-progress ──► done           a call begins a step; the success of its check ends it
                    │   ▲
                    ▼   │
                   failed                      its check failed: the next call tries again, or another plan replaces it

In plan mode the gate is shut until a person approves the plan as it stands, and shuts again when the plan changes (AG-07).
Decisions become events here; what they make of the state is in `plan_fold`.
"""

from __future__ import annotations

from typing import Any

from treadle.core.errors import PlanRefused
from treadle.core.events import Event, PlanWritten, StepMoved, StepStatus, Suspended
from treadle.core.messages import ToolCall, ToolResult, ToolsFinished
from treadle.core.plans import check_words, read_steps, verifies

from . import texts
from .plan_standing import find, gated, next_step, open_steps, ready
from .plan_words import listed, step_line
from .states import LoopState, Outcome, PlanState, StepState


def due(state: LoopState) -> Event | None:
    """What the outcomes of the last batch say of the steps, one event at a time; None where nothing is left to say."""
    plan = state.plan
    for index, outcome in enumerate(plan.outcomes):
        started = [step for step in plan.steps if step.status in ("in-progress", "failed")]
        found = next((step for step in started if step.step.check and _verifies(step, outcome)), None)
        if found is not None:
            status = "done" if outcome.passed else "failed"
            reason = "" if outcome.passed else outcome.said
            return StepMoved(
                step=found.step.id, status=status, by="check", reason=reason, evidence=outcome.key, taken=index + 1
            )
        if all(step.status != "in-progress" for step in started) and (following := next_step(plan)):
            return StepMoved(step=following.step.id, status="in-progress", by="work", evidence=outcome.key, taken=index)
    return None


def _verifies(step: StepState, outcome: Outcome) -> bool:
    check = step.step.check
    return check is not None and verifies(check, outcome.tool, outcome.args)


def before_turn(state: LoopState) -> Event | None:
    """What the plan wants said or asked before the next request; None for most."""
    plan = state.plan
    if plan.digest and not plan.asked and gated(state):
        return request(state)
    return None


def request(state: LoopState) -> Suspended:
    """Asks a person to approve the plan as it stands. The id names its digest, so an answer is bound to it."""
    plan = state.plan
    return Suspended(
        id=f"r{state.round}.plan{plan.written}.{plan.digest}", kind="plan", prompt=f"Approve this plan?\n{listed(plan)}"
    )


def answer_call(state: LoopState, call: ToolCall, key: str) -> Event:
    """Carries a call of the plan's tools out, and answers it once that is recorded."""
    plan = state.plan
    if plan.applied == key:
        return _said(state, call, texts.plan_taken(listed(plan), gated=gated(state)))
    args = call.args if isinstance(call.args, dict) else {}
    try:
        if call.name == "write_plan":
            return PlanWritten(steps=read_steps(args.get("steps")), by="model", call=key, withdraws=_withdrawn(state))
        return _moved(state, args, key)
    except PlanRefused as refusal:
        return _said(state, call, f"argument error: {refusal}", status="error")


def _withdrawn(state: LoopState) -> str:
    return state.pending.id if state.pending is not None and state.pending.kind == "plan" else ""


def _said(state: LoopState, call: ToolCall, text: str, status: Any = "ok") -> ToolsFinished:
    result = ToolResult(id=call.id, content=text, status=status)
    return ToolsFinished(parent=state.agent.leaf or 0, results=(result,), us=0)


def _moved(state: LoopState, args: dict[str, Any], key: str) -> StepMoved:
    """The model starts a step, gives it up, or says that one without a check is done. PlanRefused."""
    plan = state.plan
    step = known_step(plan, args.get("step"))
    status: StepStatus = args.get("status", "done")  # the tool's schema allows no others
    reason = str(args.get("reason") or "").strip()
    if gated(state):
        raise PlanRefused("the plan", "waits for a person's approval; until then no step of it is begun")
    match status:
        case "in-progress":
            if not ready(plan, step):
                raise PlanRefused(f"step {step.step.id}", f"waits for {', '.join(_missing(plan, step))}")
        case "failed":
            if not reason:
                raise PlanRefused("reason", "is missing: say why the step failed")
        case _:
            _may_be_done(plan, step)
    by = "model"
    evidence = plan.last if status == "done" else ""
    return StepMoved(step=step.step.id, status=status, by=by, reason=reason, evidence=evidence, call=key)


def _may_be_done(plan: PlanState, step: StepState) -> None:
    name, check = f"step {step.step.id}", step.step.check
    if check is not None:
        raise PlanRefused(
            name, f"is done when its check succeeds: {check_words(check)}. Run that; nobody has to say so"
        )
    if step.status != "in-progress":
        raise PlanRefused(name, f"is {step.status}, not in progress: do it first, by a tool")
    if not plan.last or not plan.last_passed:
        why = "the last call did not succeed" if plan.last else "no call has been made for it"
        raise PlanRefused(name, f"is not shown to be done: {why}. Show it by a call that succeeds")


def known_step(plan: PlanState, name: Any) -> StepState:
    """The step with this id. PlanRefused where there is none."""
    found = find(plan, str(name))
    if found is None:
        known = ", ".join(step.step.id for step in plan.steps)
        raise PlanRefused(
            f"step {str(name)[:40]!r}", f"is not in the plan; there are {known}" if known else "is in no plan"
        )
    return found


def _missing(plan: PlanState, step: StepState) -> list[str]:
    return [name for name in step.step.after if (found := find(plan, name)) and found.status != "done"]


def refused_finish(state: LoopState) -> str:
    """Why `finish` does not end act now, with what is open; empty where it does."""
    plan = state.plan
    if gated(state):
        return texts.FINISH_GATED
    left = open_steps(plan)
    if not left:
        return ""
    firm = plan.refused + 1 >= state.settings.guards.no_call
    return texts.finish_open("\n".join(step_line(step) for step in left), firm=firm)
