"""What each event of a workflow changes. Folding never decides: a skip, a retry or a stop is an event that a decision has put there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core import workflow_events as ev
from treadle.core.endings import Code, is_final, status_of
from treadle.core.errors import AnswerRefused, InvalidStateTransition
from treadle.core.persistent import PersistentMap
from treadle.core.values import Value, replace

from .workflow_accounts import ended, inside, on_charge, on_child_charged, on_child_started, on_usage, put
from .workflow_budget import extended
from .workflow_states import Done, Step, TaskState, WorkflowState


def _on_started(state: WorkflowState, e: ev.WorkflowStarted) -> WorkflowState:
    if state.seq:
        raise InvalidStateTransition("started", "started")
    dependents: dict[str, list[str]] = {}
    for task in e.settings.tasks:
        for dependency in task.after:
            dependents.setdefault(dependency, []).append(task.key)
    return WorkflowState(
        seq=1,
        epoch=1,
        settings=e.settings,
        index={task.key: place for place, task in enumerate(e.settings.tasks)},
        dependents={key: tuple(keys) for key, keys in dependents.items()},
        input_json=e.input_json,
        fingerprint=e.fingerprint,
        definition=e.definition,
        started_us=e.at_us,
        waiting=PersistentMap((task.key, len(task.after)) for task in e.settings.tasks if task.after),
        ready=PersistentMap((task.key, None) for task in e.settings.tasks if not task.after),
    )


# ---- one task at a time


def _active(state: WorkflowState, key: str, *steps: Step) -> TaskState:
    task = state.begun(key)
    if task is None or task.step not in steps:
        raise InvalidStateTransition(f"{key}: {task.step if task else _whereabouts(state, key)}", "/".join(steps))
    return task


def _whereabouts(state: WorkflowState, key: str) -> str:
    names = ("waiting", "done", "failed", "skipped")
    return next((name for name in names if key in getattr(state, name)), "unknown")


def _without(keys: tuple[str, ...], key: str) -> tuple[str, ...]:
    if keys[:1] == (key,):
        return keys[1:]
    return tuple(k for k in keys if k != key) if key in keys else keys


def _taken(state: WorkflowState, key: str) -> dict[str, Any]:
    """The task has got what it waited for, and wants no slot any more."""
    if key in state.ahead:
        return {"ahead": _without(state.ahead, key)}
    return {"ready": state.ready.without(key)}


def _on_condition_asked(state: WorkflowState, e: ev.ConditionAsked) -> WorkflowState:
    task = replace(_active(state, e.task, "ready"), step="deciding")
    return put(state, e.task, task, running=(*state.running, e.task), **_taken(state, e.task))


def _on_condition(state: WorkflowState, e: ev.ConditionDecided) -> WorkflowState:
    task = _active(state, e.task, "deciding")
    running = _without(state.running, e.task)
    if e.go:
        ahead = (e.task, *state.ahead)
        return put(state, e.task, replace(task, step="ready", decided=True), running=running, ahead=ahead)
    doomed = state.doomed.put(e.task, "")
    return put(state, e.task, replace(task, step="ready"), running=running, doomed=doomed)


def _on_phase_started(state: WorkflowState, e: ev.PhaseStarted) -> WorkflowState:
    task = _active(state, e.task, "ready")
    if (e.round, e.phase) != (task.round, task.phase) or e.attempt not in (task.attempt, task.attempt + 1):
        there = f"{e.task}: round {task.round} {task.phase} attempt {task.attempt}"
        raise InvalidStateTransition(there, f"round {e.round} {e.phase} attempt {e.attempt}")
    new = e.attempt != task.attempt
    gone = task.quota_attempt not in (0, e.attempt)  # the quota pause was an earlier attempt's
    task = replace(
        task,
        step="running",
        attempt=e.attempt,
        replay=True,
        quota_at=None if gone else task.quota_at,
        quota_attempt=0 if gone or task.quota_at is None else e.attempt,
        questions=(),
        failure=None,
    )
    total = replace(state.total, attempts=state.total.attempts + new)
    return put(state, e.task, task, running=(*state.running, e.task), total=total, **_taken(state, e.task))


def _over(state: WorkflowState, key: str, us: int, **changes: Any) -> WorkflowState:
    """The running phase of a task has ended, as `changes` say."""
    task, account = ended(state, _active(state, key, "running"), **changes)
    if us and "total" in account:
        account["total"] = replace(account["total"], us=account["total"].us + us)
    return put(state, key, task, us, running=_without(state.running, key), **account)


def _on_phase_stopped(state: WorkflowState, e: ev.PhaseStopped) -> WorkflowState:
    task = state.active.get(e.task)
    if task is not None and task.step == "deciding":
        running = _without(state.running, e.task)
        ready = state.ready.put(e.task, None)
        return put(state, e.task, replace(task, step="ready"), e.us, running=running, ready=ready)
    state = _over(state, e.task, e.us, step="ready")
    return replace(state, ready=state.ready.put(e.task, None))


def _on_phase_failed(state: WorkflowState, e: ev.PhaseFailed) -> WorkflowState:
    task = _active(state, e.task, "running", "deciding")
    if task.step == "deciding":
        failed = replace(task, step="failed", failure=replace(e, retryable=False))
        running = _without(state.running, e.task)
        return put(state, e.task, failed, e.us, running=running, attention=(*state.attention, e.task))
    state = _over(state, e.task, e.us, step="failed", failure=e, tries=task.tries + 1, answers=())
    return replace(state, attention=(*state.attention, e.task))


def _on_retry(state: WorkflowState, e: ev.RetryScheduled) -> WorkflowState:
    task = replace(_active(state, e.task, "failed"), step="back-off")
    timers = state.timers.put(e.task, e.until_us)
    return put(state, e.task, task, attention=_without(state.attention, e.task), timers=timers)


def _on_due(state: WorkflowState, e: ev.TaskDue) -> WorkflowState:
    task = _active(state, e.task, "back-off", "asking")
    timers = state.timers.without(e.task)
    if task.step == "back-off":
        ready = state.ready.put(e.task, None)
        return put(state, e.task, replace(task, step="ready"), timers=timers, ready=ready)
    task = replace(task, step="accepted")
    return put(state, e.task, task, timers=timers, attention=(*state.attention, e.task))


def _on_candidate(state: WorkflowState, e: ev.CandidateSaved) -> WorkflowState:
    if _active(state, e.task, "running").phase != "attempt":
        raise InvalidStateTransition(f"{e.task}: check", "candidate")
    changes = {"candidate_at": state.seq + 1, "phase": "check", "step": "ready", "replay": False}
    state = _over(state, e.task, e.us, answers=(), children={}, **changes)
    return replace(state, ahead=(e.task, *state.ahead))


def _on_judged(state: WorkflowState, e: ev.RoundJudged) -> WorkflowState:
    task = _active(state, e.task, "running")
    if task.phase != "check" or task.round != e.round:
        raise InvalidStateTransition(f"{e.task}: round {task.round} {task.phase}", f"verdict on round {e.round}")
    changes: dict[str, Any] = {"answers": (), "children": {}, "replay": False}
    if e.accept:
        state = _over(state, e.task, e.us, step="accepted", candidate_at=state.seq + 1, **changes)
        return replace(state, attention=(*state.attention, e.task))
    if task.round >= state.task(e.task).max_rounds:
        state = _over(state, e.task, e.us, step="exhausted", feedback=e.feedback, **changes)
        return replace(state, attention=(*state.attention, e.task))
    changes |= {"round": task.round + 1, "phase": "attempt", "candidate_at": None, "feedback": e.feedback}
    state = _over(state, e.task, e.us, step="ready", **changes)
    return replace(state, ahead=(e.task, *state.ahead))


# ---- a task ends


def _on_finished(state: WorkflowState, e: ev.TaskFinished) -> WorkflowState:
    task = _active(state, e.task, "running", "accepted", "decided")
    seq = state.seq + 1
    at = task.candidate_at if task.step == "accepted" and task.candidate_at is not None else seq
    if task.step == "running":
        state = replace(_over(state, e.task, e.us), seq=state.seq)
    waiting, ready = state.waiting, state.ready
    for key in state.dependents.get(e.task, ()):
        left = waiting.get(key)
        if left is None:
            continue  # skipped for another dependency
        if left > 1:
            waiting = waiting.put(key, left - 1)
        else:
            waiting, ready = waiting.without(key), ready.put(key, None)
    return replace(
        state,
        seq=seq,
        active=state.active.without(e.task),
        done=state.done.put(e.task, Done(at=at, attempt=task.attempt, rounds=task.round)),
        total=replace(state.total, rounds=state.total.rounds + task.round),
        waiting=waiting,
        ready=ready,
        attention=_without(state.attention, e.task),
    )


def _on_failed(state: WorkflowState, e: ev.TaskFailed) -> WorkflowState:
    task = _active(state, e.task, "failed", "exhausted", "decided")
    return replace(
        state,
        seq=state.seq + 1,
        active=state.active.without(e.task),
        failed=state.failed.put(e.task, replace(task, code=e.code, message=e.message, replay=True)),
        attention=_without(state.attention, e.task),
        doomed=_doomed(state, e.task),
    )


def _doomed(state: WorkflowState, key: str) -> PersistentMap[str]:
    """With what depends on it."""
    doomed = state.doomed
    for task in state.dependents.get(key, ()):
        if task in state.waiting and task not in doomed:
            doomed = doomed.put(task, key)
    return doomed


def _on_skipped(state: WorkflowState, e: ev.TaskSkipped) -> WorkflowState:
    if e.task not in state.waiting and e.task not in state.active:
        raise InvalidStateTransition(f"{e.task}: {_whereabouts(state, e.task)}", "skipped")
    state = replace(state, waiting=state.waiting.without(e.task), doomed=state.doomed.without(e.task))
    return replace(
        state,
        seq=state.seq + 1,
        active=state.active.without(e.task),
        skipped=state.skipped.put(e.task, e.because),
        doomed=_doomed(state, e.task),
    )


# ---- questions


def _on_suspended(state: WorkflowState, e: ev.TaskSuspended) -> WorkflowState:
    task = _active(state, e.task, "running", "ready")
    seq = state.seq + 1
    changes: dict[str, Any] = {
        "step": "asking",
        "questions": e.questions,
        "answers": (),
        "asked": task.asked + 1,
        "saved_at": task.saved_at if e.state_json is None else seq,
    }
    if task.step == "running":
        state = _over(state, e.task, e.us, **changes)
    else:
        state = put(state, e.task, replace(task, **changes), e.us, **_taken(state, e.task))
    if e.until_us is not None:
        return replace(state, timers=state.timers.put(e.task, e.until_us))
    return replace(state, asking=(*state.asking, e.task))


def _on_answered(state: WorkflowState, e: ev.TaskAnswered) -> WorkflowState:
    task = state.active.get(e.task)
    if task is None or task.step not in ("asking", "ready") or e.id not in {q.id for q in task.questions}:
        raise AnswerRefused(f"{e.id!r} is not an open question")
    questions = tuple(question for question in task.questions if question.id != e.id)
    answered = replace(task, questions=questions, answers=(*task.answers, e))
    if task.step == "ready":
        return put(state, e.task, answered)
    gate = state.task(e.task).kind in ("approval", "pause")
    answered = replace(answered, step="decided" if gate else "ready")
    state = put(state, e.task, answered, asking=_without(state.asking, e.task))
    if gate:
        return replace(state, attention=(*state.attention, e.task))
    return replace(state, ready=state.ready.put(e.task, None))


def _on_saved(state: WorkflowState, e: ev.StateSaved) -> WorkflowState:
    return put(state, e.task, replace(inside(state, e.task), saved_at=state.seq + 1))


# ---- the whole


def _on_interrupted(state: WorkflowState, e: ev.WorkflowInterrupted) -> WorkflowState:
    for key in state.running:
        state = replace(_on_phase_stopped(state, ev.PhaseStopped(task=key)), seq=state.seq)
    active = PersistentMap(
        (key, replace(task, replay=task.replay or bool(task.attempt))) for key, task in state.active.items()
    )
    changes: dict[str, Any] = {}
    if e.reason == "signal" and state.status == "running":
        changes = {"status": "paused", "code": "interrupted"}
    elif e.reason == "taken-over":
        changes = {"epoch": e.epoch}
        if state.code == "interrupted":
            changes |= {"status": "running", "code": ""}
    total = replace(state.total, us=state.total.us + e.us)
    return replace(state, seq=state.seq + 1, active=active, total=total, **changes)


def _on_quota_paused(state: WorkflowState, e: ev.QuotaPaused) -> WorkflowState:
    state = _over(state, e.task, e.us, step="ready", quota_at=state.seq + 1, quota_attempt=0)
    earlier = state.quota
    quota = e if earlier is None else _later(earlier, e)
    return replace(state, ahead=(e.task, *state.ahead), quota=quota)


def _later(a: ev.QuotaPaused, b: ev.QuotaPaused) -> ev.QuotaPaused:
    """Of two pauses the one that takes longer; an unknown reset takes longest."""
    if a.reset_at_us is None or b.reset_at_us is None:
        return a if a.reset_at_us is None else b
    return a if a.reset_at_us >= b.reset_at_us else b


def _on_quota_ended(state: WorkflowState, _: ev.QuotaEnded) -> WorkflowState:
    if state.quota is None:
        raise InvalidStateTransition(state.status, "quota ended")
    return replace(state, seq=state.seq + 1, quota=None)


def _on_extended(state: WorkflowState, e: ev.WorkflowExtended) -> WorkflowState:
    settings = replace(
        state.settings,
        budget=extended(state.settings.budget, e.budget),
        priced=state.settings.priced if e.priced is None else e.priced,
    )
    state = replace(state, seq=state.seq + 1, settings=settings)
    if state.status != "stopped" or (state.code == "usage-unavailable" and not e.priced):
        return state
    return replace(state, status="running", code="", outcome="", evidence="", advice="", incomplete="")


def reopens(code: Code) -> bool:
    """Whether a failed task may be tried again when somebody says so: not one that a person rejected, or ended for good."""
    return not is_final(status_of(code), code)


def _on_reopened(state: WorkflowState, _: ev.WorkflowReopened) -> WorkflowState:
    if state.status not in ("failed", "stopped"):
        raise InvalidStateTransition(state.status, "reopened")
    again = {key: task for key, task in state.failed.items() if reopens(task.code)}
    failed = PersistentMap((key, task) for key, task in state.failed.items() if key not in again)
    skipped = PersistentMap((key, because) for key, because in state.skipped.items() if not because)
    waiting = dict(state.waiting.items())
    for key in state.skipped:
        if key not in skipped:
            waiting[key] = sum(dependency not in state.done for dependency in state.task(key).after)
    fresh = {
        key: replace(task, step="ready", tries=0, failure=None, code="", message="") for key, task in again.items()
    }
    state = replace(
        state,
        seq=state.seq + 1,
        failed=failed,
        skipped=skipped,
        waiting=PersistentMap(waiting),
        active=PersistentMap([*state.active.items(), *fresh.items()]),
        ahead=(),
        ready=PersistentMap((key, None) for key in (*fresh, *state.ahead, *state.ready)),
        status="running",
        code="",
        outcome="",
        evidence="",
        advice="",
    )
    for key in (*failed, *skipped):
        state = replace(state, doomed=_doomed(state, key))
    return state


def _on_adopted(state: WorkflowState, e: ev.WorkflowAdopted) -> WorkflowState:
    return replace(
        state,
        seq=state.seq + 1,
        settings=e.settings,
        index={task.key: place for place, task in enumerate(e.settings.tasks)},
        fingerprint=e.fingerprint,
        definition=e.definition or state.definition,
    )


def _on_stopped(state: WorkflowState, e: ev.WorkflowStopped) -> WorkflowState:
    return replace(
        state,
        seq=state.seq + 1,
        status=e.status,
        code=e.code,
        outcome=e.kind,
        evidence=e.evidence,
        advice=e.advice,
    )


FOLD: dict[type[Value], Callable[[WorkflowState, Any], WorkflowState]] = {
    ev.WorkflowStarted: _on_started,
    ev.WorkflowInterrupted: _on_interrupted,
    ev.ConditionAsked: _on_condition_asked,
    ev.ConditionDecided: _on_condition,
    ev.PhaseStarted: _on_phase_started,
    ev.PhaseStopped: _on_phase_stopped,
    ev.PhaseFailed: _on_phase_failed,
    ev.RetryScheduled: _on_retry,
    ev.TaskDue: _on_due,
    ev.CandidateSaved: _on_candidate,
    ev.RoundJudged: _on_judged,
    ev.TaskFinished: _on_finished,
    ev.TaskFailed: _on_failed,
    ev.TaskSkipped: _on_skipped,
    ev.TaskSuspended: _on_suspended,
    ev.TaskAnswered: _on_answered,
    ev.StateSaved: _on_saved,
    ev.ChargeAnnounced: on_charge,
    ev.UsageCharged: on_usage,
    ev.ChildStarted: on_child_started,
    ev.ChildCharged: on_child_charged,
    ev.QuotaPaused: _on_quota_paused,
    ev.QuotaEnded: _on_quota_ended,
    ev.WorkflowExtended: _on_extended,
    ev.WorkflowReopened: _on_reopened,
    ev.WorkflowAdopted: _on_adopted,
    ev.WorkflowStopped: _on_stopped,
}
