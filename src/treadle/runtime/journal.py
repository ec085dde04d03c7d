"""The state of one execution in memory and its way to the ledger. Only `emit` changes state; a barrier awaits `flush`.

Memory is ahead of the disk between the two. When a commit fails, memory is worthless: the journal is poisoned and must be opened anew.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

import anyio

from treadle.core import events as ev
from treadle.core.child_events import ChildEnded, ChildIntended, ChildWoken
from treadle.core.codec import decode, encode
from treadle.core.digests import blob_address
from treadle.core.errors import InputError, LedgerDamaged, LedgerError, StaleEpoch, TreadleError, UnknownExecution
from treadle.core.lesson_events import LessonsDistilled, LessonsVoted
from treadle.core.messages import BRANCHING, MESSAGES, Compacted, ModelResponded, Prompted, ToolsFinished
from treadle.core.values import Value
from treadle.kernel.loop import advance
from treadle.kernel.snapshot import SNAPSHOT_VERSION, freeze, thaw
from treadle.kernel.states import LoopState
from treadle.kernel.view import View
from treadle.ports.ledger import Batch, Ledger, Ownership, Record, Summary
from treadle.ports.ledger import Snapshot as StoredSnapshot
from treadle.ports.observer import Observer, Progress

from .branch import fill
from .document import summary_bytes

if TYPE_CHECKING:
    from treadle.ports.clock import Clock

SNAPSHOT_EVERY = 128  # records; more would slow a resume. The ledger keeps the newest, and one of each larger span
YIELD_EVERY = 8  # commits in place: often enough for others and for a cancellation, seldom enough to cost nothing
RESTS = (ev.Stopped, ev.Suspended, ev.Interrupted, ev.CallbackRaised)
_ENDINGS = (LessonsVoted, LessonsDistilled)  # may come after the end of a failed loop
_CHILDREN = (ChildWoken, ChildIntended, ChildEnded)
SUMMARISED = (
    *RESTS,
    ev.LoopStarted,
    ev.Judged,
    ev.ActFinished,
    ev.ActFailed,
    ev.Answered,
    ev.Extended,
    ev.Reopened,
    *_CHILDREN,
    *_ENDINGS,
)


class Folded(Protocol):
    """What every state has."""

    @property
    def seq(self) -> int:
        """Number of the last event that is folded in; 0 before the first."""
        ...


S = TypeVar("S", bound=Folded)


@dataclass(frozen=True, slots=True)
class Machine(Generic[S]):
    """What a journal must know of the machine whose events it keeps."""

    kind: str  # of its executions
    initial: Callable[[], S]
    advance: Callable[[S, Any], S]
    freeze: Callable[[S], bytes]
    thaw: Callable[[bytes, int], S]
    version: int  # of its snapshots
    summary: Callable[[str, S], bytes]
    rests: tuple[type[Value], ...]  # events after which it may rest: a snapshot is taken
    summarised: tuple[type[Value], ...]  # events that change what a listing shows


LOOP = Machine("loop", LoopState, advance, freeze, thaw, SNAPSHOT_VERSION, summary_bytes, RESTS, SUMMARISED)


async def create_execution(ledger: Ledger, execution_id: str, *, kind: str, owner: str, at_us: int) -> Ownership:
    """A new execution; or one that died between its making and its first record, which is as good as new."""
    try:
        return await ledger.create(execution_id, kind=kind, owner=owner, at_us=at_us)
    except InputError:
        if (await ledger.row(execution_id)).head:
            raise
        return await ledger.acquire(execution_id, owner=owner)


class Loaded(NamedTuple, Generic[S]):
    """A state as it was read from a ledger."""

    state: S
    snapshot_seq: int  # of the snapshot it was made from; 0: from none
    last_us: int  # wall time of its last record


async def load_state(ledger: Ledger, execution_id: str, *, at: int | None = None) -> Loaded[LoopState]:
    """The state of a loop as of `at`, or now."""
    return await load(LOOP, ledger, execution_id, at=at)


async def load(
    machine: Machine[S], ledger: Ledger, execution_id: str, *, at: int | None = None, known: Loaded[S] | None = None
) -> Loaded[S]:
    """The same of any machine; `known` is an earlier state to go on from."""
    if known is None:
        snapshot = await ledger.snapshot(execution_id, at=at)
        try:
            state = machine.thaw(snapshot.body, snapshot.version) if snapshot else machine.initial()
        except LedgerDamaged:  # it only saves time: the records are the truth. `treadle ledger verify` tells of it
            state = machine.initial()
        known = Loaded(state, snapshot.seq if snapshot else 0, 0)
    state, last_us = known.state, known.last_us
    records = await ledger.records(execution_id, after=state.seq, to=at)
    for record in records:
        state = machine.advance(state, decode(record.kind, record.version, record.body))
        last_us = record.at_us
    if not last_us and state.seq:
        last_us = (await ledger.records(execution_id, after=state.seq - 1, to=state.seq))[0].at_us
    return Loaded(state, known.snapshot_seq, last_us)


@asynccontextmanager
async def given_up_on_failure(ledger: Ledger, ownership: Ownership) -> AsyncGenerator[None]:
    """An execution that cannot be opened is not kept: for as long as this process lives nobody else could go on with it."""
    try:
        yield
    except BaseException:
        with anyio.CancelScope(shield=True), suppress(LedgerError):  # what is raised says already that the store failed
            await ledger.release(ownership)
        raise


class JournalOf(Generic[S]):
    """One owned execution of a machine. `emit` may be called from any thread; everything else from the event loop's."""

    machine: Machine[S]
    snapshot_every = SNAPSHOT_EVERY

    def __init__(
        self,
        ledger: Ledger,
        ownership: Ownership,
        clock: Clock,
        observers: tuple[Observer, ...],
        state: S,
        snapshot_seq: int,
    ) -> None:
        self.ledger, self.ownership, self.clock, self.observers = ledger, ownership, clock, observers
        self.state = state
        self._summarised = frozenset(self.machine.summarised)
        self.last_us = 0  # wall time of the last record before this journal was opened
        self.failure: TreadleError | None = None
        self._lock = threading.Lock()
        self._records: list[Record] = []
        self._receipts: list[tuple[str, str]] = []
        self._blobs: list[tuple[str, bytes]] = []
        self._opened: list[tuple[str, str, bytes]] = []
        self._closed: list[tuple[str, bytes]] = []
        self._taken: list[int] = []
        self._seen: set[int] = set()
        self._snapshot_seq = snapshot_seq
        self._summarise = self._rest = False
        self._in_place = 0  # commits
        self._submitted = self._settled_count = 0  # batches: committed in the order of their submission
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._loop = asyncio.get_running_loop()  # the port's `done` comes back on it
        self._thread = threading.get_ident()

    @classmethod
    async def create(
        cls,
        ledger: Ledger,
        execution_id: str,
        started: Any,
        *,
        clock: Clock,
        owner: str,
        observers: tuple[Observer, ...] = (),
    ) -> Self:
        """A new execution with its first record, durable when this returns."""
        machine = cls.machine
        ownership = await create_execution(ledger, execution_id, kind=machine.kind, owner=owner, at_us=started.at_us)
        journal = cls(ledger, ownership, clock, observers, machine.initial(), 0)
        async with given_up_on_failure(ledger, ownership):
            journal.emit(started)
            await journal.flush()
        return journal

    @classmethod
    async def open(
        cls,
        ledger: Ledger,
        execution_id: str,
        *,
        clock: Clock,
        owner: str,
        observers: tuple[Observer, ...] = (),
        force: bool = False,
        known: Loaded[S] | None = None,
    ) -> Self:
        """Takes an execution over. What its last owner had in flight is still in the state: see `Driver.take_over`.

        `known` is what was read of it before, so that only what came since is read.
        """
        ownership = await ledger.acquire(execution_id, owner=owner, force=force)
        async with given_up_on_failure(ledger, ownership):
            state, snapshot_seq, last_us = await load(cls.machine, ledger, execution_id, known=known)
            if not state.seq:  # killed between the execution's row and its first record: nothing to go on from
                raise UnknownExecution(f"{execution_id} was never started: run it again")
        journal = cls(ledger, ownership, clock, observers, state, snapshot_seq)
        journal.last_us = last_us
        return journal

    @property
    def execution_id(self) -> str:
        """The execution's id."""
        return self.ownership.execution_id

    # ---- the only way state changes

    def emit(self, event: Any, *, taken: int | None = None) -> None:
        """Folds the event and queues its record. Raises what the fold raises, with nothing changed."""
        kind, version, body = encode(event)
        with self._lock:
            before = self.state
            self.state = self.machine.advance(before, event)
            seq, at_us = self.state.seq, self.clock.wall_us()
            parent = event.parent if isinstance(event, BRANCHING) else None
            self._records.append(Record(seq, kind, version, parent, at_us, body))
            self._note_rows(event, body)
            if taken is not None:
                self._taken.append(taken)
                self._seen.add(taken)
            state = self.state
        self._emitted(before, seq, event, body)
        if self.observers:
            self._told(Progress(self.execution_id, seq, kind, event, state, at_us))

    def _told(self, progress: Progress) -> None:
        for observer in self.observers:
            observer.notify(progress)

    def _note_rows(self, event: Value, body: bytes) -> None:
        """Queues what belongs to the event's record; subclasses add the rows of their own events."""
        if type(event) in self._summarised:
            self._summarise = True
            self._rest = self._rest or isinstance(event, self.machine.rests)

    def _emitted(self, before: S, seq: int, event: Value, body: bytes) -> None:
        """The event has changed `before`; what a subclass derives from events is brought up to date here."""

    def tell(self, kind: str, data: object) -> None:
        """An ephemeral note to observers: never a record."""
        if self.observers:
            self._told(Progress(self.execution_id, 0, kind, data, self.state, self.clock.wall_us()))

    def put_blob(self, content: bytes) -> str:
        """Keeps content with the next commit. Its address."""
        address = blob_address(content)
        with self._lock:
            self._blobs.append((address, content))
        return address

    def take(self, posted_id: int) -> None:
        """A request from outside is dealt with, without an event."""
        with self._lock:
            self._taken.append(posted_id)
            self._seen.add(posted_id)

    def was_taken(self, posted_id: int) -> bool:
        """Whether it is dealt with, though perhaps not committed yet."""
        return posted_id in self._seen

    # ---- durability

    def _batch(self) -> Batch | None:
        with self._lock:
            if not self._records and not self._taken:
                return None
            records, self._records = self._records, []
            receipts, self._receipts = self._receipts, []
            blobs, self._blobs = self._blobs, []
            opened, self._opened = self._opened, []
            closed, self._closed = self._closed, []
            taken, self._taken = self._taken, []
            summarise, self._summarise = self._summarise, False
            rest, self._rest = self._rest, False
            state = self.state
        snapshot = None
        if state.seq - self._snapshot_seq >= self.snapshot_every or (rest and state.seq > self._snapshot_seq):
            self._snapshot_seq = state.seq
            snapshot = StoredSnapshot(state.seq, self.machine.version, self.machine.freeze(state))
        summary = Summary(state.seq, self.machine.summary(self.execution_id, state)) if summarise else None
        return Batch(self.ownership, records, receipts, blobs, opened, closed, taken, snapshot, summary)

    def _submit(self) -> None:
        if self.failure is not None:
            raise self.failure
        if (batch := self._batch()) is not None:
            self._submitted += 1
            self.ledger.submit(batch, self._settled)

    def _commit_now(self) -> bool:
        """Whether all that was buffered has been committed, or refused, within this call."""
        if self.failure is not None or self._settled_count < self._submitted:
            return False
        batch = self._batch()
        if batch is None:
            return False
        self._submitted += 1
        if self.ledger.commit_now(batch, self._settled):
            return True
        self.ledger.submit(batch, self._settled)
        return False

    def flush_soon(self) -> None:
        """Queues what is buffered and returns. From another thread, it is queued as soon as the event loop gets to it."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self._submit_quietly)
        else:
            self._submit()

    def flush_later(self, seconds: float) -> asyncio.TimerHandle:
        """Queues what is buffered then, unless the timer is cancelled before."""
        return self._loop.call_later(seconds, self._submit_quietly)

    def _submit_quietly(self) -> None:
        if self.failure is None:  # the owner hears of a failure at its next flush
            self._submit()

    def _settled(self, error: TreadleError | None) -> None:
        self.failure = self.failure or error
        self._settled_count += 1
        while self._waiting and self._waiting[0][0] <= self._settled_count:
            future = self._waiting.popleft()[1]
            if not future.done():  # a native cancel() passes anyio's shield and cancels the future
                future.set_result(None)

    async def flush(self) -> None:
        """Returns when everything emitted so far is durable. LedgerError: the journal is poisoned from now on."""
        if self._commit_now():
            self._in_place += 1
            if not self._in_place % YIELD_EVERY:
                await asyncio.sleep(0)
        else:
            self._submit()
        if self._settled_count < self._submitted:  # what was queued by flush_soon is waited for as well
            try:
                await self._durable()
            except asyncio.CancelledError:  # memory is ahead of the disk: a commit is never abandoned half way
                if self._settled_count < self._submitted:
                    with anyio.CancelScope(shield=True):
                        await self._durable()
                raise
        if self.failure is not None:
            raise self.failure

    def _durable(self) -> asyncio.Future[None]:
        """Done when all that has been queued is committed or refused."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((self._submitted, future))
        return future

    async def barrier(self) -> None:
        """Returns when what is paid or changed next has its intent on disk (LG-04), and the execution is still ours to do it (RT-03):
        the process may have slept while it waited for the disk. LedgerError: the journal is poisoned from now on.
        """
        await self.flush()
        await self.confirm()

    async def confirm(self) -> None:
        """Returns where the execution is still ours: the store is asked where our lease may have lapsed meanwhile (RT-03).

        LedgerError: the journal is poisoned from now on.
        """
        if not self.ledger.lapsed(self.ownership):
            return
        try:
            await self.ledger.confirm(self.ownership)
        except LedgerError as error:
            self.failure = self.failure or error
            raise

    async def close(self) -> None:
        """Flushes where that is still possible, and gives the ownership up.

        After a refused commit as well: it may have landed for all that, and say that a person must answer whom nobody would hear.
        """
        try:
            if self.failure is None:
                await self.flush()
        finally:
            if not isinstance(self.failure, StaleEpoch):
                try:
                    await self.ledger.release(self.ownership)
                except LedgerError:
                    if self.failure is None:  # or else the owner has heard of the store's failure already
                        raise


class Journal(JournalOf[LoopState]):
    """One owned execution of a loop, with the branches of messages that its agents are on."""

    machine = LOOP

    def __init__(
        self,
        ledger: Ledger,
        ownership: Ownership,
        clock: Clock,
        observers: tuple[Observer, ...],
        state: LoopState,
        snapshot_seq: int,
    ) -> None:
        super().__init__(ledger, ownership, clock, observers, state, snapshot_seq)
        self.views: dict[ev.Phase, View] = {}

    def _note_rows(self, event: Value, body: bytes) -> None:
        if isinstance(event, MESSAGES):  # the common case: nothing belongs to them
            return
        if isinstance(event, ev.UsageReported):
            if event.receipt:
                self._receipts.append(("loop", event.receipt))
        elif isinstance(event, ev.Suspended):
            self._opened.append((event.id, event.kind, body))
        elif isinstance(event, ev.Answered | ChildWoken):
            self._closed.append((event.id, body))
        super()._note_rows(event, body)

    def _emitted(self, before: LoopState, seq: int, event: Value, body: bytes) -> None:
        # A view of another branch stays until `view` makes it anew: its generation must not come again.
        if isinstance(event, MESSAGES):
            view = self.views.get(before.phase)
            if view is not None and view.leaf == event.parent:
                view.append(seq, event, body)
        elif isinstance(event, Compacted):
            view = self.views.get(before.phase)
            if view is not None and view.leaf == event.base:
                view.compact(seq, event)

    async def view(self, phase: ev.Phase, examples: tuple[Prompted | ModelResponded | ToolsFinished, ...] = ()) -> View:
        """The branch that the agent of this phase is on, examples first."""
        view = self.views.get(phase)
        leaf = self.state.agent.leaf
        if view is None or view.leaf != leaf:
            await self.flush()
            generation = view.generation if view else 0
            view = self.views[phase] = View()
            view.generation = generation
            await fill(view, self.ledger, self.execution_id, leaf, examples)
        return view
