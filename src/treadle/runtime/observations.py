"""Which events of a workflow are worth observing, and as what (TC-27)."""

from __future__ import annotations

from typing import Any

from treadle.core import workflow_events as ev
from treadle.core.values import Value

Noted = tuple[str, str, dict[str, Any]]  # kind, task, data


def observations(event: Value) -> tuple[Noted, ...]:
    """What is worth observing of an event: mostly one thing or nothing."""
    match event:
        case ev.WorkflowStarted():
            return (("start", "", {"name": event.settings.name, "tasks": len(event.settings.tasks)}),)
        case ev.WorkflowInterrupted() if event.reason == "taken-over":
            return (("resume", "", {"epoch": event.epoch}),)
        case ev.WorkflowStopped():
            end = {"status": event.status, "code": event.code, "evidence": event.evidence}
            finish = ("finish", "", end)
            return (("budget", "", end), finish) if event.status == "stopped" else (finish,)
        case ev.QuotaEnded():
            return (("quota", "", {"ended": True}),)
        case ev.TaskSuspended() if not event.questions:
            return (("gate", event.task, {"until_us": event.until_us}),)
        case ev.TaskSuspended():
            return tuple(_asked(event.task, question) for question in event.questions)
        case _:
            noted = _of_work(event) or _of_people(event)
            return () if noted is None else (noted,)


def _asked(task: str, question: ev.Question) -> Noted:
    kind = "gate" if question.kind in ("approval", "pause") else "question"
    return kind, task, {"id": question.id, "prompt": question.prompt}


def _of_work(event: Value) -> Noted | None:
    match event:
        case ev.PhaseStarted():
            return "attempt", event.task, {"round": event.round, "phase": event.phase}
        case ev.RetryScheduled():
            return "retry", event.task, {"until_us": event.until_us}
        case ev.CandidateSaved():
            return "loop", event.task, {"candidate": True}
        case ev.RoundJudged():
            return "loop", event.task, {"round": event.round, "accept": event.accept, "feedback": event.feedback}
        case ev.TaskFinished():
            return "task", event.task, {"status": "done"}
        case ev.TaskFailed():
            return "task", event.task, {"status": "failed", "code": event.code, "message": event.message}
        case ev.TaskSkipped():
            return "task", event.task, {"status": "skipped", "because": event.because}
        case _:
            return None


def _of_people(event: Value) -> Noted | None:
    """Accounts, waits and answers."""
    match event:
        case ev.UsageCharged() | ev.ChildCharged():
            return "usage", event.task, {"usage": event.usage}
        case ev.StateSaved():
            return "checkpoint", event.task, {}
        case ev.QuotaPaused():
            return "quota", event.task, {"message": event.message, "reset_at_us": event.reset_at_us}
        case ev.TaskAnswered():
            kind = "answer" if event.decision == "answer" else "decision"
            return kind, event.task, {"id": event.id, "decision": event.decision, "actor": event.actor}
        case _:
            return None
