"""What people ask of a workflow, checked against its state and turned into events (TC-22, TC-23)."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core import workflow_events as ev
from treadle.core.endings import is_final
from treadle.core.errors import AnswerRefused, InputError
from treadle.core.values import Value

from .steering import Answer, Cancel, ChangeLease, Compact, EditPlan, Extend, MarkStep, Pause, Pin, Steering, Step
from .workflow_states import WorkflowState


def to_events(state: WorkflowState, steering: Sequence[Steering], at_us: int) -> list[Value]:
    """The events that grant all of it. AnswerRefused or InputError where one of them cannot be granted: then none is."""
    seen: set[str] = set()
    events: list[Value] = []
    for one in steering:
        if isinstance(one, Answer):
            if one.request_id in seen:
                raise AnswerRefused(f"{one.request_id!r} is answered twice.")
            seen.add(one.request_id)
        events.append(_to_event(state, one, at_us))
    return events


def _to_event(state: WorkflowState, steering: Steering, at_us: int) -> Value:
    match steering:
        case Answer():
            return _answered(state, steering, at_us)
        case Cancel():
            if is_final(state.status, state.code):
                raise InputError(f"It has ended already: {state.status}, {state.code}")
            by = f"cancelled by {steering.actor}" + (f": {steering.reason}" if steering.reason else "")
            return ev.WorkflowStopped(status="cancelled", code="aborted", kind="cancelled", evidence=by)
        case Pause():
            raise InputError("A workflow is paused where it runs: Ctrl-C or SIGTERM to its process.")
        case Step():
            raise InputError("A workflow has no turns or rounds; a loop inside it has: name that.")
        case Extend():
            return _extended(state, steering)
        case Compact() | ChangeLease():
            raise InputError(
                "A workflow has no conversation: compact the loop inside it that has grown (treadle show)."
            )
        case Pin():
            raise InputError("A workflow is not pinned; a loop inside it may be: name that.")
        case EditPlan() | MarkStep():
            raise InputError("A workflow has no plan; a loop inside it may have one: name that.")


def _answered(state: WorkflowState, answer: Answer, at_us: int) -> ev.TaskAnswered:
    task, question = _open(state, answer.request_id)
    if not answer.actor.strip():
        raise AnswerRefused("An answer needs the name of who gives it (--as).")
    if question.actors and answer.actor not in question.actors:
        raise AnswerRefused(f"{answer.actor!r} may not decide {question.id!r}; {', '.join(question.actors)} may.")
    if answer.end:
        raise AnswerRefused("Inside a workflow a plan goes back with a reason; treadle cancel ends the workflow.")
    if question.kind == "question":
        _check_text(question, answer)
    elif answer.decision == "answer":
        raise AnswerRefused(f"{question.id!r} waits for a decision: approve or reject it.")
    elif answer.decision == "reject" and not answer.text.strip():
        raise AnswerRefused("A rejection needs a reason (--reason).")
    return ev.TaskAnswered(
        task=task, id=question.id, decision=answer.decision, text=answer.text, actor=answer.actor, at_us=at_us
    )


def _open(state: WorkflowState, request_id: str) -> tuple[str, ev.Question]:
    if state.status == "running":
        for key, task in state.active.items():
            for question in task.questions if task.step in ("asking", "ready") else ():
                if question.id == request_id:
                    return key, question
    asked = [q.id for key in state.asking for q in state.active[key].questions]
    if not asked:
        raise AnswerRefused("Nothing is waiting for an answer; it may have been answered already.")
    raise AnswerRefused(f"{request_id!r} is no open question; open are: {', '.join(asked[:10])}.")


def _check_text(question: ev.Question, answer: Answer) -> None:
    if answer.decision != "answer":
        raise AnswerRefused(f"{question.id!r} is a question: answer it.")
    if not answer.text.strip():
        raise AnswerRefused("The answer is empty.")
    if question.choices and answer.text not in question.choices:
        raise AnswerRefused(f"{answer.text!r} is none of the choices: {', '.join(question.choices)}.")


def _extended(state: WorkflowState, extend: Extend) -> ev.WorkflowExtended:
    by = ev.BudgetSettings(
        max_cost_usd=extend.max_cost_usd,
        max_tokens=extend.max_tokens,
        max_requests=extend.max_turns,
        max_duration_us=extend.max_duration_us,
    )
    return extension(state, extend.actor, by)


def extension(state: WorkflowState, actor: str, by: ev.BudgetSettings) -> ev.WorkflowExtended:
    """The event that raises these limits. InputError where one would not be raised, or it has ended."""
    if is_final(state.status, state.code):
        raise InputError(f"It has ended ({state.status}, {state.code}) and cannot be extended.")
    names = [name for name in ev.BudgetSettings.__struct_fields__ if getattr(by, name) is not None]
    if not names:
        raise InputError("Say which limit is to be extended.")
    for name in names:
        old, new = getattr(state.settings.budget, name), getattr(by, name)
        if old is not None and new <= old:
            raise InputError(f"{name} is {old} already; {new} would not extend it.")
    return ev.WorkflowExtended(actor=actor, budget=by)
