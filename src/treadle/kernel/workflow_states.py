"""The folded state of a workflow. Its size goes with the number of tasks: outputs, candidates and saved states are known by their record.

A task is in exactly one of `waiting`, `active`, `done`, `failed` and `skipped`, or is in `ready` alone until it first runs.
An active one is known besides by what comes next of it: `ahead` or `ready` (wants a slot), `running` (has one), `attention` (a decision
is due), `timers` (until a moment) or `asking` (until an answer). No event costs more in a graph of many tasks than in one of few.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from treadle.core.endings import Code, Status
from treadle.core.errors import LedgerDamaged
from treadle.core.persistent import PersistentMap, from_stored, to_stored
from treadle.core.usage import NO_USAGE, Usage
from treadle.core.values import Value
from treadle.core.workflow_events import (
    PhaseFailed,
    Question,
    QuotaPaused,
    TaskAnswered,
    TaskKind,
    TaskPhase,
    TaskSettings,
    WorkflowSettings,
)

FIRST_PHASE: dict[TaskKind, TaskPhase] = {
    "task": "perform",
    "loop": "attempt",
    "approval": "perform",
    "pause": "perform",
}
Step = Literal["ready", "deciding", "running", "failed", "accepted", "exhausted", "decided", "back-off", "asking"]


class OpenCharge(Value, frozen=True, kw_only=True):
    """What a running callback has said that it is about to pay."""

    receipt: str
    reserve: Usage


class Child(Value, frozen=True, kw_only=True):
    """An execution inside a task's phase, and what of its spending has been charged."""

    key: str
    reserve: Usage = NO_USAGE
    usage: Usage = NO_USAGE
    in_doubt: Usage = NO_USAGE


class TaskState(Value, frozen=True, kw_only=True):
    """One task that has begun and has not been done."""

    step: Step = "ready"
    phase: TaskPhase = "perform"
    round: int = 1
    attempt: int = 0  # cumulative; the first phase makes it 1 (TC-08)
    tries: int = 0  # failures that retry has to reckon with
    decided: bool = False  # its condition said yes
    replay: bool = False  # the phase was begun before and has no outcome
    candidate_at: int | None = None  # seq of the record
    saved_at: int | None = None
    feedback: str | None = None
    failure: PhaseFailed | None = None
    code: Code = ""
    message: str = ""
    questions: tuple[Question, ...] = ()
    answers: tuple[TaskAnswered, ...] = ()  # to the questions of the last suspension
    asked: int = 0  # suspensions so far: makes the ids of questions unique
    charges: tuple[OpenCharge, ...] = ()
    children: dict[str, Child] = msgspec.field(default_factory=dict[str, Child])
    quota_at: int | None = None  # seq of the quota pause that the next attempt resumes
    quota_attempt: int = 0  # ... and which attempt that is


class Done(Value, frozen=True, kw_only=True, array_like=True):
    """A finished task."""

    at: int  # seq of the record with its output
    attempt: int
    rounds: int


class Totals(Value, frozen=True, kw_only=True):
    """Since the start of the workflow. Never reset."""

    attempts: int = 0
    rounds: int = 0  # of tasks that are done
    usage: Usage = NO_USAGE
    in_doubt: Usage = NO_USAGE
    us: int = 0  # active time; concurrent work counts once


class WorkflowState(Value, frozen=True, kw_only=True):
    """Everything that decides what comes next."""

    seq: int = 0
    epoch: int = 0
    settings: WorkflowSettings = WorkflowSettings(name="", version="", tasks=())
    index: dict[str, int] = msgspec.field(default_factory=dict[str, int])  # key -> place in settings.tasks
    dependents: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    input_json: str = "null"
    fingerprint: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    definition: str = ""
    started_us: int = 0
    status: Status = "running"  # as recorded: see `standing`
    code: Code = ""
    outcome: str = ""
    evidence: str = ""
    advice: str = ""
    waiting: PersistentMap[int] = PersistentMap[int]()  # task -> dependencies that are not done
    ahead: tuple[str, ...] = ()  # wants a slot before those that are ready: a round goes on before another task begins
    ready: PersistentMap[None] = PersistentMap[None]()
    running: tuple[str, ...] = ()
    attention: tuple[str, ...] = ()
    timers: PersistentMap[int] = PersistentMap[int]()  # task -> wall time
    asking: tuple[str, ...] = ()
    active: PersistentMap[TaskState] = PersistentMap[TaskState]()
    done: PersistentMap[Done] = PersistentMap[Done]()
    failed: PersistentMap[TaskState] = PersistentMap[TaskState]()
    skipped: PersistentMap[str] = PersistentMap[str]()  # task -> the dependency that it is for
    doomed: PersistentMap[str] = PersistentMap[str]()  # to be skipped, and for which dependency
    quota: QuotaPaused | None = None
    total: Totals = Totals()
    reserved: Usage = NO_USAGE  # of announced charges and running children
    incomplete: str = ""  # why usage is not fully known

    def task(self, key: str) -> TaskSettings:
        """The settings of a task."""
        return self.settings.tasks[self.index[key]]

    def begun(self, key: str) -> TaskState | None:
        """An active task; one that is ready and has never run is as good as begun. None for any other."""
        if (task := self.active.get(key)) is not None:
            return task
        if key not in self.index or any(key in each for each in (self.waiting, self.done, self.failed, self.skipped)):
            return None
        return TaskState(phase=FIRST_PHASE[self.task(key).kind])


SNAPSHOT_VERSION = 2
_encode = msgspec.json.Encoder(decimal_format="string", enc_hook=to_stored).encode
_decode = msgspec.json.Decoder(WorkflowState, dec_hook=from_stored).decode


def freeze(state: WorkflowState) -> bytes:
    """The state as JSON."""
    return _encode(state)


def thaw(body: bytes, version: int) -> WorkflowState:
    """The state; an empty one where the snapshot is of another version, so that everything is refolded. LedgerDamaged."""
    if version != SNAPSHOT_VERSION:
        return WorkflowState()
    try:
        return _decode(body)
    except msgspec.DecodeError as error:
        raise LedgerDamaged(f"A snapshot cannot be read: {error}") from error
