"""The document of a workflow: the keys of SV-03 where they have a meaning, and its tasks."""

from __future__ import annotations

from typing import Any

from treadle.core.endings import exit_code, status_of
from treadle.core.workflow_events import Question
from treadle.kernel.workflow_budget import standing
from treadle.kernel.workflow_states import WorkflowState

from .document import iso, to_json

MOST_WAITS = 20  # that a listing tells of one execution


def document(execution_id: str, state: WorkflowState, *, signal: str = "") -> dict[str, Any]:
    """`pending` is the first open question, `questions` are all."""
    status, code = standing(state)
    total = state.total
    asked = questions(state) if status == "waiting-input" else []
    quota = state.quota if code == "quota" else None
    return {
        "execution_id": execution_id,
        "kind": "workflow",
        "name": state.settings.name,
        "version": state.settings.version,
        "status": status,
        "code": code,
        "pending": _quota(quota.message, quota.reset_at_us) if quota else asked[0] if asked else None,
        "questions": asked,
        **(_under_way(state) if status == "running" else {}),
        "rounds": total.rounds,
        "attempts": total.attempts,
        "turns_taken": total.usage.requests,
        "act_turns_taken": total.usage.requests,
        "cost_usd": total.usage.cost_usd,
        "in_doubt_usd": total.in_doubt.cost_usd,
        "usage": {
            "input_tokens": total.usage.input_tokens,
            "output_tokens": total.usage.output_tokens,
            "cache_read_tokens": total.usage.cache_read_tokens,
            "cache_write_tokens": total.usage.cache_write_tokens,
            "requests": total.usage.requests,
            "in_doubt_requests": total.in_doubt.requests,
        },
        "output": None,
        "outcome": {"kind": state.outcome, "evidence": state.evidence, "advice": state.advice}
        if state.outcome
        else None,
        "started_at": iso(state.started_us),
        "elapsed_ms": total.us // 1000,
        "act_elapsed_ms": total.us // 1000,
        "task": state.settings.name,
        "workspace": "",
        "exit_code": exit_code(status, code, signal=signal),
    }


def _under_way(state: WorkflowState) -> dict[str, Any]:
    """`waits`: what is waited for although the whole runs; `inside`: executions that run in it. Only where there are any."""
    asked = [question for key in state.asking[:MOST_WAITS] for question in _asked_by(state, key)]
    waits = [
        {"for": "answer" if question["kind"] == "question" else "decision", **question}
        for question in asked[:MOST_WAITS]
    ]
    if state.quota is not None:
        waits.append(_wait("quota", state.quota.task, state.quota.message, state.quota.reset_at_us))
    if state.timers and not state.running:
        key, until_us = min(state.timers.items(), key=lambda item: item[1])
        waits.append(_wait("time", key, "", until_us))
    inside = [{"execution_id": child, "task": key} for key in state.running for child in state.active[key].children]
    return ({"waits": waits} if waits else {}) | ({"inside": inside} if inside else {})


def _wait(wanted: str, task: str, prompt: str, until_us: int | None) -> dict[str, Any]:
    return {"for": wanted, "task": task, "child": "", "request_id": "", "prompt": prompt, "until_us": until_us}


def _asked_by(state: WorkflowState, key: str) -> list[dict[str, Any]]:
    questions = state.active[key].questions
    return [{**_question(one), "task": key, "child": one.child} for one in questions]


def with_tasks(found: dict[str, Any], state: WorkflowState) -> dict[str, Any]:
    """The document with the status of each task: too long for a listing."""
    return {**found, "tasks": {task.key: task_document(state, task.key) for task in state.settings.tasks}}


def final_tasks(state: WorkflowState) -> list[str]:
    """The tasks that are done and that no other depends on: what they gave is the output of the workflow."""
    return [task.key for task in state.settings.tasks if task.key in state.done and task.key not in state.dependents]


def task_document(state: WorkflowState, key: str) -> dict[str, Any]:
    """How a task stands."""
    settings = state.task(key)
    about: dict[str, Any] = {"kind": settings.kind, "after": list(settings.after)}
    if (done := state.done.get(key)) is not None:
        return {**about, "status": "done", "attempts": done.attempt, "rounds": done.rounds}
    if (failed := state.failed.get(key)) is not None:
        return {
            **about,
            "status": status_of(failed.code),
            "code": failed.code,
            "message": failed.message,
            "attempts": failed.attempt,
        }
    if (active := state.begun(key)) is not None:
        step = {"asking": "waiting-input", "ready": "ready", "back-off": "retrying"}.get(active.step, "running")
        return {**about, "status": step, "round": active.round, "phase": active.phase, "attempts": active.attempt}
    if key in state.skipped:
        return {**about, "status": "skipped", "because": state.skipped[key]}
    return {**about, "status": "waiting"}


def questions(state: WorkflowState) -> list[dict[str, Any]]:
    """What is asked, oldest first."""
    return [{**_question(question), "task": key} for key in state.asking for question in state.active[key].questions]


def _question(question: Question) -> dict[str, Any]:
    return {
        "request_id": question.id,
        "kind": question.kind,
        "prompt": question.prompt,
        "choices": list(question.choices),
        "actors": list(question.actors),
        "until_us": None,
    }


def _quota(message: str, until_us: int | None) -> dict[str, Any]:
    return {"request_id": "quota", "kind": "quota", "prompt": message, "choices": [], "until_us": until_us}


def summary_bytes(execution_id: str, state: WorkflowState) -> bytes:
    """The document as stored beside an execution, for listings."""
    return to_json(document(execution_id, state))
