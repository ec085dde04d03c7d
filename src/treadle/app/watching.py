"""Executions as they go, read from the ledger alone: for `treadle watch` and the service, from any process, without delaying an owner."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from treadle.core import events as ev
from treadle.core.codec import decode
from treadle.core.messages import ModelResponded, ToolCall, ToolsFinished
from treadle.core.plans import check_words
from treadle.core.spoken import one_line
from treadle.kernel.loop import advance
from treadle.kernel.states import LoopState
from treadle.kernel.window import budget_of, window_of
from treadle.kernel.workflow import advance as advance_workflow
from treadle.kernel.workflow_states import WorkflowState
from treadle.ports.ledger import ExecutionRow, Ledger, Record
from treadle.ports.observer import Progress
from treadle.runtime.journal import load_state
from treadle.runtime.workflow_journal import KIND, load_workflow
from treadle.telemetry.said import brief
from treadle.telemetry.throughput import Snapshot, Window

from .listing import AnyState, document_of
from .under_way import shortcoming, under_way
from .waits import documents_inside, with_waits

LOOK_BACK = 400  # records before now that are read for what happened lately
CALLS, VERDICTS = 6, 4
PAGE = 1_000


class Call(NamedTuple):
    """A call that has its result."""

    status: str
    what: str
    us: int
    note: str = ""  # why it was of no use


class Verdict(NamedTuple):
    """How a round ended."""

    round: int
    accept: bool
    feedback: str


class Flight(NamedTuple):
    """Something that is under way since `since_us` (wall time), as far as records tell."""

    what: str
    since_us: int


class Watched:
    """One execution. `refresh` reads what has been added; the rest is what that has come to."""

    def __init__(self, ledger: Ledger, row: ExecutionRow) -> None:
        self._ledger = ledger
        self.row = row
        self.state: AnyState | None = None
        self.calls: deque[Call] = deque(maxlen=CALLS)
        self.verdicts: deque[Verdict] = deque(maxlen=VERDICTS)
        self.events: deque[str] = deque(maxlen=VERDICTS)  # what else is worth knowing, newest last
        self.model = ""
        self.said = ""  # what the model said last
        self.window_used = 0  # tokens that its last request and answer fill
        self.last_us = row.created_us  # wall time of the newest record
        self.notes: list[Progress] = []  # of the last refresh
        self.waits: list[dict[str, Any]] = []  # of a workflow that runs: what it waits for, however deep inside
        self._window: Window | None = None
        self._batch: dict[str, ToolCall] = {}

    @property
    def execution_id(self) -> str:
        """Its id."""
        return self.row.execution_id

    async def refresh(self, row: ExecutionRow) -> bool:
        """Whether anything is new since the last call, its owner's death included, and what is waited for inside it."""
        changed, before = await self._read(row), self.waits
        self.waits = await self._waiting()
        return changed or self.waits != before

    async def _waiting(self) -> list[dict[str, Any]]:
        if not isinstance(self.state, WorkflowState) or self.state.status != "running":
            return []
        found = document_of(self.execution_id, self.state)
        return with_waits(found, (await documents_inside(self._ledger, found)).get).get("waits", [])

    async def _read(self, row: ExecutionRow) -> bool:
        before, self.row, self.notes = self.row, row, []
        if self.state is None:
            after = max(0, row.head - LOOK_BACK)
            self.state = await self._begin(after)
            self._window = Window(row.created_us if not after else self.last_us)
        elif row.head == self.state.seq:
            return before.owner_alive != row.owner_alive
        while self.state.seq < row.head:
            page = await self._ledger.records(self.execution_id, after=self.state.seq, to=row.head, limit=PAGE)
            if not page:
                break
            for record in page:
                self._fold(record)
        return True

    async def _begin(self, after: int) -> AnyState:
        if self.row.kind == KIND:
            return await load_workflow(self._ledger, self.execution_id, at=after) if after else WorkflowState()
        state, _, self.last_us = await load_state(self._ledger, self.execution_id, at=after) if after else _NEW
        return state

    def _fold(self, record: Record) -> None:
        event: Any = decode(record.kind, record.version, record.body)
        if isinstance(self.state, WorkflowState):
            self.state = advance_workflow(self.state, event)
        else:
            assert self.state is not None
            round_before = self.state.round
            self.state = advance(self.state, event)
            self._note(event, record, round_before)
        self.last_us = record.at_us
        self.notes.append(Progress(self.execution_id, record.seq, record.kind, event, self.state, record.at_us))

    def _note(self, event: Any, record: Record, number: int) -> None:
        match event:
            case ModelResponded():
                self._batch = {call.id: call for call in event.calls}
                self.said = one_line(event.text, 300) or self.said
                self.window_used = event.usage.tokens
                if self._window is not None:
                    usage = event.usage
                    self._window.add(record.at_us, usage.input_tokens, usage.output_tokens, 1)
            case ev.UsageReported():
                if self._window is not None:
                    self._window.add(record.at_us, event.usage.input_tokens, event.usage.output_tokens, 0)
            case ToolsFinished():
                for result in event.results:
                    call = self._batch.get(result.id)
                    what = f"{call.name} {brief(call.args)}".rstrip() if call else result.id
                    self.calls.append(Call(result.status, what, event.us, shortcoming(result)))
            case ev.ModelIntended():
                self.model = event.model
            case ev.Judged():
                self.verdicts.append(Verdict(number, event.accept, event.feedback))
            case _:
                if said := _NOTABLE.get(record.kind):
                    self.events.append(said(event))

    # ---- what that has come to

    @property
    def running(self) -> bool:
        """Whether somebody works on it now."""
        return self.state is not None and self.state.status == "running" and self.row.owner_alive

    def throughput(self, now_us: int) -> Snapshot:
        """How fast it goes, by the times of its records."""
        window = self._window or Window(self.row.created_us)
        return window.snapshot(max(now_us, self.last_us))

    def flight(self) -> Flight | None:
        """What is under way; None where it rests, or nobody can tell."""
        state = self.state
        if not isinstance(state, LoopState) or state.status != "running":
            return None
        what = under_way(state, self.model)
        return Flight(what, self.last_us) if what else None

    def window(self) -> tuple[int, int]:
        """(tokens used, tokens that it has) of the model's window, as last counted; zeros where nobody has counted."""
        state = self.state
        known = window_of(state) if isinstance(state, LoopState) else None
        if known is None or known.prompt is None or not self.window_used:
            return 0, 0
        return self.window_used, budget_of(known.prompt, known.ceiling)

    def document(self, now_us: int) -> dict[str, Any]:
        """As one JSON object: the document of SV-03, and what is under way."""
        assert self.state is not None
        flight, rate = self.flight(), self.throughput(now_us)
        found = document_of(self.execution_id, self.state)
        agent = self.state.agent if isinstance(self.state, LoopState) else None
        return {
            **found,
            **({"waits": self.waits} if self.waits else {}),
            "seq": self.state.seq,
            "owner_alive": self.row.owner_alive,
            "turn": self.state.total.turns if isinstance(self.state, LoopState) else None,
            "agent_state": agent.state if agent else None,
            "in_flight": {"what": flight.what, "since_us": flight.since_us} if flight else None,
            "plan": plan_of(self.state),
            "said": self.said,
            "window": dict(zip(("used", "budget"), self.window(), strict=True)),
            "last_calls": [call._asdict() for call in self.calls],
            "throughput": rate._asdict(),
        }


_NEW = (LoopState(), 0, 0)
_NOTABLE: dict[str, Callable[[Any], str]] = {
    "guard.tripped": lambda event: f"guard {event.guard}: {event.response}: {one_line(event.evidence, 120)}",
    "escalated": lambda event: f"goes on with {event.model}: {one_line(event.reason, 80)}",
    "compaction.judged": lambda event: f"compacted: {event.before:,} to {event.after:,} tokens",
    "compaction.failed": lambda event: f"compaction failed: {event.reason}",
    "model.failed": lambda event: f"model: {event.kind}: {one_line(event.message, 120)}",
    "workspace.changed": lambda event: f"the workspace changed meanwhile: {one_line(', '.join(event.paths), 120)}",
    "extended": lambda event: f"limits extended by {one_line(event.actor, 40)}",
}


def plan_of(state: AnyState) -> list[dict[str, Any]] | None:
    """The steps of its plan with their status; None where there is none."""
    steps: Any = getattr(getattr(state, "plan", None), "steps", ())
    found = [
        {
            "id": one.step.id,
            "title": one.step.title,
            "status": one.status,
            "by": one.by,
            "reason": one.reason,
            "check": check_words(one.step.check) if one.step.check else "",
        }
        for one in steps
    ]
    return found or None


class Fleet:
    """The newest executions of a store, and every one of these that runs. Only what has changed is read again."""

    def __init__(self, ledger: Ledger, *, limit: int) -> None:
        self._ledger, self._limit = ledger, limit
        self._known: dict[str, Watched] = {}

    async def refresh(self) -> tuple[list[Watched], list[Watched]]:
        """(all of them, newest first; those in which anything is new)."""
        rows = [row for row in await self._ledger.rows(limit=self._limit) if row.head]
        known, changed = self._known, list[Watched]()
        self._known = {row.execution_id: known.get(row.execution_id) or Watched(self._ledger, row) for row in rows}
        for row in rows:
            watched = self._known[row.execution_id]
            if await watched.refresh(row):
                changed.append(watched)
        return list(self._known.values()), changed

    def throughput(self, now_us: int) -> Snapshot:
        """All of them together: totals over what was read of them."""
        all_of_them = [watched.throughput(now_us) for watched in self._known.values()]
        return Snapshot(
            sum(one.input_tokens for one in all_of_them),
            sum(one.output_tokens for one in all_of_them),
            sum(one.turns for one in all_of_them),
            sum(one.input_tokens_s for one in all_of_them),
            sum(one.output_tokens_s for one in all_of_them),
            sum(one.turns_s for one in all_of_them),
            max((one.window_s for one in all_of_them), default=1.0),
        )
