"""The journal of a workflow: outputs at hand by the record that they stand in, and observations once their records are durable."""

from __future__ import annotations

from collections import deque
from typing import Any

from treadle.core import workflow_events as ev
from treadle.core.codec import decode
from treadle.core.errors import InvalidStateTransition, LedgerDamaged, TreadleError, UnknownExecution, WorkflowMismatch
from treadle.core.values import Value
from treadle.kernel.workflow import advance
from treadle.kernel.workflow_states import SNAPSHOT_VERSION, WorkflowState, freeze, thaw
from treadle.ports.clock import Clock
from treadle.ports.ledger import Batch, Ledger, Ownership
from treadle.ports.observer import Observer
from treadle.ports.task import Observation, ObservationHub

from .journal import SNAPSHOT_EVERY, JournalOf, Machine, load
from .observations import observations
from .workflow_document import summary_bytes

KIND = "workflow"
RESTS = (ev.WorkflowStopped, ev.WorkflowInterrupted)
SUMMARISED = (
    *RESTS,
    ev.WorkflowStarted,
    ev.TaskSuspended,
    ev.TaskAnswered,
    ev.TaskFailed,
    ev.QuotaPaused,
    ev.QuotaEnded,
    ev.WorkflowExtended,
    ev.WorkflowReopened,
    ev.WorkflowAdopted,
)
WORKFLOW = Machine(KIND, WorkflowState, advance, freeze, thaw, SNAPSHOT_VERSION, summary_bytes, RESTS, SUMMARISED)


async def load_workflow(ledger: Ledger, execution_id: str, *, at: int | None = None) -> WorkflowState:
    """The state as of `at` or now. WorkflowMismatch where this is no workflow; LedgerDamaged where its records contradict one another."""
    row = await ledger.row(execution_id)
    if row.kind != KIND:
        raise WorkflowMismatch(f"{row.execution_id} is a {row.kind}, not a workflow.")
    if not row.head:
        raise UnknownExecution(f"{row.execution_id} was never started: run it again")
    try:
        return (await load(WORKFLOW, ledger, row.execution_id, at=at))[0]
    except (InvalidStateTransition, KeyError) as error:
        raise LedgerDamaged(f"{row.execution_id}: its records contradict one another: {error}") from error


class WorkflowJournal(JournalOf[WorkflowState]):
    """One owned execution of a workflow. `hub` is set before anything that is worth observing is emitted."""

    machine = WORKFLOW

    def __init__(
        self,
        ledger: Ledger,
        ownership: Ownership,
        clock: Clock,
        observers: tuple[Observer, ...],
        state: WorkflowState,
        snapshot_seq: int,
    ) -> None:
        super().__init__(ledger, ownership, clock, observers, state, snapshot_seq)
        self.hub: ObservationHub | None = None
        self._texts: dict[int, str] = {}
        self._objects: dict[int, Any] = {}
        self._holding: tuple[Value, Any] | None = None
        self._noted: deque[Observation] = deque()
        self._marks: deque[int] = deque()
        self._space_snapshots()

    def _space_snapshots(self) -> None:
        """A snapshot holds every task, so a large graph is written less often."""
        self.snapshot_every = max(SNAPSHOT_EVERY, 2 * len(self.state.settings.tasks))

    # ---- outputs

    def emit_with(self, event: Value, held: Any) -> None:
        """Emits an outcome whose value is no JSON: it is kept in memory."""
        self._holding = None if held is None else (event, held)
        self.emit(event)

    def _note_rows(self, event: Value, body: bytes) -> None:
        match event:
            case ev.UsageCharged() if event.receipt:
                self._receipts.append((event.task, event.receipt))
            case ev.TaskSuspended():
                self._opened += [(q.id, q.kind, body) for q in event.questions if not q.child]
            case ev.TaskAnswered() if "." in event.id and event.id.startswith(f"{event.task}.q"):
                self._closed.append((event.id, body))
            case ev.WorkflowStarted():
                self._space_snapshots()
            case _:
                pass
        super()._note_rows(event, body)

    def _emitted(self, before: WorkflowState, seq: int, event: Value, body: bytes) -> None:
        match event:
            case ev.CandidateSaved() | ev.RoundJudged() | ev.TaskFinished() | ev.StateSaved() if event.json:
                self._texts[seq] = event.json
            case _:
                pass
        if self._holding is not None and self._holding[0] is event:
            self._objects[seq] = self._holding[1]
            self._holding = None
        if self.hub is not None:
            at_us = self.clock.wall_us()
            for kind, task, data in observations(event):
                attempt = before.active[task].attempt if task in before.active else 0
                attempt = getattr(event, "attempt", attempt)
                self._noted.append(Observation(self.execution_id, task, attempt, kind, seq, data, at_us))

    def held(self, seq: int) -> Any:
        """The value of a record that is no JSON; None where it is."""
        return self._objects.get(seq)

    async def event(self, seq: int) -> Any:
        """The event of a record that is durable."""
        record = (await self.ledger.records(self.execution_id, after=seq - 1, to=seq))[0]
        return decode(record.kind, record.version, record.body)

    async def text(self, seq: int) -> str:
        """The JSON in a record: an output, a candidate or a saved state."""
        if seq not in self._texts:
            event = await self.event(seq)
            self._texts[seq] = (event.state_json or "") if isinstance(event, ev.TaskSuspended) else event.json
        return self._texts[seq]

    # ---- observations, once their records are durable: a replay repeats none

    def _batch(self) -> Batch | None:
        batch = super()._batch()
        if batch is not None:
            self._marks.append(batch.records[-1].seq if batch.records else 0)
        return batch

    def _settled(self, error: TreadleError | None) -> None:
        mark = self._marks.popleft()
        super()._settled(error)
        while error is None and self._noted and self._noted[0].seq <= mark:
            observation = self._noted.popleft()
            if self.hub is not None:
                self.hub.publish(observation)
