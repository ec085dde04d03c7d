"""The workflow machine: which task may run, and what comes of it. `next_actions` decides, `advance` folds; nothing else changes state.

    waiting ──► ready ──► running ──► done
                  ▲          ├──► failed (retry: back-off ──► ready)
                  └── asking ┘    rejected candidate: next round

Several actions can be ready: each phase in flight is one, with an id that says which task, round, phase and attempt it is.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from treadle.core import workflow_events as ev
from treadle.core.endings import WORST_FIRST, Code, Status, status_of
from treadle.core.values import Value

from .workflow_budget import reached
from .workflow_fold import FOLD, reopens
from .workflow_states import TaskState, WorkflowState


class Decide(Value, frozen=True, kw_only=True):
    """A decision or a fact that needs no I/O."""

    event: Any


class Condition(Value, frozen=True, kw_only=True):
    """Ask the condition of a task. Ends in ConditionDecided or PhaseFailed."""

    id: str
    task: str


class Perform(Value, frozen=True, kw_only=True):
    """Let a callback do its phase: a barrier. Ends in one of the phase's outcomes."""

    id: str
    task: str
    round: int
    phase: ev.TaskPhase
    attempt: int


class BeginPause(Value, frozen=True, kw_only=True):
    """A timed pause begins now. Ends in TaskSuspended, at once: the machine itself knows no clock."""

    task: str
    for_us: int


class Rest(Value, frozen=True, kw_only=True):
    """Nothing can be done now. `until_us`: something is due then; `wants`: what the rest is for."""

    wants: Literal["end", "answer", "quota", "time"]
    until_us: int | None = None


Step = Decide | BeginPause | Condition | Perform | Rest


def next_actions(state: WorkflowState) -> tuple[Step, ...]:
    """One decision, or everything that is in flight, or a rest."""
    if state.status != "running":
        return (Rest(wants="end"),)
    if (decision := _decision(state)) is not None:
        return (decision if isinstance(decision, BeginPause) else Decide(event=decision),)
    if state.running:
        return tuple(_in_flight(key, state.active[key]) for key in state.running)
    return (_rest(state),)


def _in_flight(key: str, task: TaskState) -> Condition | Perform:
    name = f"{key}.r{task.round}.{task.phase}.{task.attempt}"
    if task.step == "deciding":
        return Condition(id=f"{name}.condition", task=key)
    return Perform(id=name, task=key, round=task.round, phase=task.phase, attempt=task.attempt)


def _rest(state: WorkflowState) -> Rest:
    if state.quota is not None:
        return Rest(wants="quota", until_us=state.quota.reset_at_us)
    if state.timers:
        return Rest(wants="time", until_us=min(state.timers.values()))
    return Rest(wants="answer")


def _decision(state: WorkflowState) -> Value | None:
    if state.attention:
        return _attend(state, state.attention[0])
    if state.doomed:
        task = state.doomed.first()
        return ev.TaskSkipped(task=task, because=state.doomed[task])
    if stopping(state):
        return None if state.running else _failed(state)
    wants = bool(state.ahead or state.ready)
    if wants and state.quota is None and len(state.running) < state.settings.concurrency:
        return _start(state)
    if not wants and not state.active and not state.waiting:
        return _failed(state) if state.failed else _done(state)
    return None


def stopping(state: WorkflowState) -> bool:
    """Whether a failure ends everything: what runs is aborted, and nothing else is started."""
    return bool(state.failed) and state.settings.on_error == "stop"


# ---- one task


def _attend(state: WorkflowState, key: str) -> Value:
    task = state.active[key]
    match task.step:
        case "accepted":
            return ev.TaskFinished(task=key)
        case "exhausted":
            return ev.TaskFailed(task=key, code="exhausted", message=task.feedback or "")
        case "decided":
            return _gate_decided(key, task)
        case _:
            return _after_failure(state, key, task)


def _gate_decided(key: str, task: TaskState) -> Value:
    answer = task.answers[0]
    if answer.decision == "reject":
        return ev.TaskFailed(task=key, code="rejected", message=f"rejected by {answer.actor}: {answer.text}")
    decided = {"decision": answer.decision, "actor": answer.actor, "text": answer.text, "at_us": answer.at_us}
    return ev.TaskFinished(task=key, json=msgspec.json.encode(decided).decode())


def _after_failure(state: WorkflowState, key: str, task: TaskState) -> Value:
    failure, retry = task.failure, state.task(key).retry
    assert failure is not None
    if failure.retryable and task.phase == "perform" and task.tries < retry.attempts:
        return ev.RetryScheduled(task=key, until_us=retry_at(retry, task.tries, failure))
    return ev.TaskFailed(task=key, code=failure.code, message=failure.message)


def retry_at(retry: ev.RetrySettings, tries: int, failure: ev.PhaseFailed) -> int:
    """Wall time of the next try: the back-off with its share of chance, never before what the server asked for."""
    delay = retry.delay_us
    if retry.backoff == "exponential":
        delay <<= min(tries - 1, 40)
    if retry.max_delay_us is not None:
        delay = min(delay, retry.max_delay_us)
    delay += int(delay * retry.jitter * failure.jitter)
    return max(failure.at_us + delay, failure.retry_after_us or 0)


def _start(state: WorkflowState) -> Value | None:
    key = state.ahead[0] if state.ahead else state.ready.first()
    task, settings = state.begun(key), state.task(key)
    assert task is not None
    if settings.conditional and not task.decided:
        return ev.ConditionAsked(task=key)
    if settings.kind in ("approval", "pause"):
        return _open_gate(key, task, settings)
    attempt = task.attempt + (1 if task.phase != "check" or task.replay else 0)
    if stop := _limit(state, attempt=attempt != task.attempt):
        return None if state.running else stop
    return ev.PhaseStarted(task=key, round=task.round, phase=task.phase, attempt=attempt)


def _open_gate(key: str, task: TaskState, settings: ev.TaskSettings) -> Value:
    if settings.for_us is not None:
        return BeginPause(task=key, for_us=settings.for_us)
    kind = "approval" if settings.kind == "approval" else "pause"
    question = ev.Question(
        id=f"{key}.q{task.asked + 1}", kind=kind, prompt=settings.prompt or key, actors=settings.actors
    )
    return ev.TaskSuspended(task=key, questions=(question,))


# ---- the whole


def _limit(state: WorkflowState, *, attempt: bool) -> ev.WorkflowStopped | None:
    if state.incomplete:
        return ev.WorkflowStopped(
            status="stopped",
            code="usage-unavailable",
            kind="usage unavailable",
            evidence=state.incomplete,
            advice="Report whole usage, or give a price; then resume with it.",
        )
    if text := reached(state, attempt=attempt):
        return ev.WorkflowStopped(
            status="stopped",
            code="limit",
            kind=f"budget: {text}",
            evidence=text,
            advice="Extend the budget, then resume.",
        )
    return None


def _done(state: WorkflowState) -> ev.WorkflowStopped:
    text = f"{len(state.done)} of {len(state.index)} tasks done"
    return ev.WorkflowStopped(status="done", code="accepted", kind="accepted", evidence=text)


def _failed(state: WorkflowState) -> ev.WorkflowStopped:
    """The first failure names the ending; what did not fail but was stopped or rejected does so where nothing else failed."""
    key, task = min(state.failed.items(), key=lambda item: WORST_FIRST.index(status_of(item[1].code)))
    status = status_of(task.code)
    kind = {"exhausted": "max iterations", "aborted": "cancelled"}.get(task.code, task.code)
    return ev.WorkflowStopped(
        status=status, code=task.code, kind=kind, evidence=f"{key}: {task.message}", advice=_advice(status, task.code)
    )


def _advice(status: Status, code: Code) -> str:
    if status == "stopped":
        return "Give what ran inside more room (treadle extend, or its definition), then resume --retry-incomplete."
    return "Mend it, then resume --retry-incomplete." if reopens(code) else ""


# ---- what happened


def advance(state: WorkflowState, event: Value) -> WorkflowState:
    """The state after an event. InvalidStateTransition where the event does not fit: the state is unchanged."""
    return FOLD[type(event)](state, event)
