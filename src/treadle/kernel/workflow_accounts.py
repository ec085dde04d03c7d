"""What the events of a workflow's accounts change: charges, reported usage, and what executions inside it spend."""

from __future__ import annotations

from typing import Any

from treadle.core import workflow_events as ev
from treadle.core.errors import InvalidStateTransition, OutsideRound
from treadle.core.persistent import PersistentMap
from treadle.core.usage import NO_USAGE, Usage
from treadle.core.values import replace

from .workflow_budget import missing
from .workflow_states import Child, OpenCharge, TaskState, WorkflowState


def put(state: WorkflowState, key: str, task: TaskState, us: int = 0, **changes: Any) -> WorkflowState:
    """The state with this task as it is now, one event later."""
    total = replace(state.total, us=state.total.us + us) if us else state.total
    changes.setdefault("total", total)
    return replace(state, seq=state.seq + 1, active=state.active.put(key, task), **changes)


def ended(state: WorkflowState, task: TaskState, **changes: Any) -> tuple[TaskState, dict[str, Any]]:
    """A phase is over: charges that it announced and did not report are in doubt, children hold nothing any more."""
    doubt = sum((charge.reserve for charge in task.charges), NO_USAGE)
    held = sum((child.reserve for child in task.children.values()), doubt)
    children = {name: replace(child, reserve=NO_USAGE) for name, child in task.children.items()}
    account: dict[str, Any] = {}
    if held != NO_USAGE:
        account = {"reserved": state.reserved - held}
    if doubt != NO_USAGE:
        account["total"] = replace(state.total, in_doubt=state.total.in_doubt + doubt)
    return replace(task, **({"charges": (), "children": children} | changes)), account


def inside(state: WorkflowState, key: str) -> TaskState:
    """The running task, or OutsideRound."""
    task = state.active.get(key)
    if task is None or task.step != "running":
        raise OutsideRound
    return task


def on_charge(state: WorkflowState, e: ev.ChargeAnnounced) -> WorkflowState:
    """A charge is held in reserve."""
    task = inside(state, e.task)
    charges = (*task.charges, OpenCharge(receipt=e.receipt, reserve=e.reserve))
    return put(state, e.task, replace(task, charges=charges), reserved=state.reserved + e.reserve)


def on_usage(state: WorkflowState, e: ev.UsageCharged) -> WorkflowState:
    """Usage is counted, and the charge that it settles is no longer held."""
    task = inside(state, e.task)
    settled = [c for c in task.charges if e.receipt and c.receipt == e.receipt]
    reserved = state.reserved - sum((c.reserve for c in settled), NO_USAGE) if settled else state.reserved
    task = replace(task, charges=tuple(c for c in task.charges if c not in settled)) if settled else task
    return put(
        state,
        e.task,
        task,
        total=replace(state.total, usage=state.total.usage + e.usage),
        reserved=reserved,
        incomplete=state.incomplete or e.incomplete or missing(state, e.usage),
    )


def on_child_started(state: WorkflowState, e: ev.ChildStarted) -> WorkflowState:
    """What the child may spend is held in reserve."""
    task = inside(state, e.task)
    known = task.children.get(e.child, Child(key=e.key))
    children = {**task.children, e.child: replace(known, reserve=known.reserve + e.reserve)}
    return put(state, e.task, replace(task, children=children), reserved=state.reserved + e.reserve)


def on_child_charged(state: WorkflowState, e: ev.ChildCharged) -> WorkflowState:
    """What the child has spent counts; nothing is held for it any more."""
    where = "active" if e.task in state.active else "failed"
    tasks: PersistentMap[TaskState] = getattr(state, where)
    task: TaskState | None = tasks.get(e.task)
    if task is None or e.child not in task.children:
        raise InvalidStateTransition(f"{e.task}: not active", f"child {e.child}")
    old = task.children[e.child]
    child = replace(old, reserve=NO_USAGE, usage=old.usage + e.usage, in_doubt=plus(old.in_doubt, e.in_doubt))
    tasks = tasks.put(e.task, replace(task, children={**task.children, e.child: child}))
    total = state.total
    return replace(
        state,
        seq=state.seq + 1,
        total=replace(total, usage=total.usage + e.usage, in_doubt=plus(total.in_doubt, e.in_doubt)),
        reserved=state.reserved - old.reserve,
        incomplete=state.incomplete or e.incomplete,
        **{where: tasks},
    )


def plus(a: Usage, b: Usage) -> Usage:
    """The sum, without making a new value for nothing."""
    return a if b == NO_USAGE else a + b
