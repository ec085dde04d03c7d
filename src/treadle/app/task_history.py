"""What tasks of a workflow gave, and how it came to that, round by round: read from the records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Any

from treadle.core import workflow_events as ev
from treadle.core.codec import decode
from treadle.core.errors import InputError
from treadle.core.strict_json import from_json
from treadle.kernel.workflow_states import WorkflowState
from treadle.ports.ledger import Ledger, Record
from treadle.runtime.workflow_document import final_tasks, task_document, with_tasks

from .listing import AnyState, document_of

PAGE = 2_000  # records that are read at once
TOLD = ("round.judged", "task.answered", "task.finished")


async def outputs_of(
    ledger: Ledger, execution_id: str, state: WorkflowState, keys: Collection[str] | None = None
) -> dict[str, Any]:
    """What these tasks gave, or all that are done, in the order in which they ended."""
    wanted = {done.at: key for key, done in state.done.items() if keys is None or key in keys}
    found: dict[str, Any] = {}
    if wanted:
        async for record in _records(ledger, execution_id, min(wanted), max(wanted)):
            if (key := wanted.get(record.seq)) is not None:
                event: Any = decode(record.kind, record.version, record.body)
                found[key] = from_json(event.json)
    return {key: found[key] for key in state.done if key in found}


async def output_of(ledger: Ledger, execution_id: str, state: WorkflowState) -> dict[str, Any] | None:
    """The output of the whole: what its last tasks gave, by key. None while none of them is done."""
    return await outputs_of(ledger, execution_id, state, set(final_tasks(state))) or None


async def whole_document(ledger: Ledger, execution_id: str, state: AnyState, *, signal: str = "") -> dict[str, Any]:
    """The document of SV-03; of a workflow with its tasks and its output, which are too long for a listing."""
    found = document_of(execution_id, state, signal=signal)
    if isinstance(state, WorkflowState):
        return with_tasks(found, state) | {"output": await output_of(ledger, execution_id, state)}
    return found


async def task_history(ledger: Ledger, execution_id: str, state: WorkflowState, key: str) -> dict[str, Any]:
    """One task: how it stands, its rounds with verdict and feedback, what it was asked and told, and its output. InputError."""
    if key not in state.index:
        known = ", ".join(task.key for task in state.settings.tasks[:20])
        raise InputError(f"There is no task {key!r} in {execution_id}. Its tasks: {known}.")
    rounds: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    output: Any = None
    async for record in _records(ledger, execution_id, 1, state.seq):
        if record.kind not in TOLD:
            continue
        event: Any = decode(record.kind, record.version, record.body)
        if getattr(event, "task", "") != key:
            continue
        match event:
            case ev.RoundJudged():
                verdict = "accepted" if event.accept else "rejected"
                rounds.append(
                    {"round": event.round, "verdict": verdict, "feedback": event.feedback, "evidence": event.evidence}
                )
                output = from_json(event.json) if event.json else output
            case ev.TaskAnswered():
                answers.append(
                    {
                        "request_id": event.id,
                        "decision": event.decision,
                        "actor": event.actor,
                        "text": event.text,
                    }
                )
            case ev.TaskFinished() if event.json:
                output = from_json(event.json)
            case _:
                pass
    done = key in state.done
    about = {"execution_id": execution_id, "task": key, **task_document(state, key)}
    return about | {"history": rounds, "answers": answers, "output": output if done else None}


async def _records(ledger: Ledger, execution_id: str, first: int, last: int) -> AsyncIterator[Record]:
    after = first - 1
    while after < last:
        page = await ledger.records(execution_id, after=after, to=last, limit=PAGE)
        for record in page:
            yield record
        if not page:
            return
        after = page[-1].seq
