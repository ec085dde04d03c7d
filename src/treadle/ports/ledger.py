"""The store of executions: append-only records, receipts, blobs, suspensions, snapshots, and who owns what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from treadle.core.errors import TreadleError


class Record(NamedTuple):
    """One stored event. `parent` is set for messages; `at_us` is wall time and is never folded."""

    seq: int
    kind: str
    version: int
    parent: int | None
    at_us: int
    body: bytes


class Snapshot(NamedTuple):
    """Folded state as of `seq`. It only saves time: refolding from the first record gives the same."""

    seq: int
    version: int
    body: bytes


class Posted(NamedTuple):
    """A request from outside the owner (answer, cancel, steering), not yet taken into the records."""

    id: int
    kind: str
    body: bytes
    at_us: int


class Summary(NamedTuple):
    """What a listing shows of an execution, as of `seq`; stale while it runs, exact once it rests."""

    seq: int
    body: bytes


class ExecutionRow(NamedTuple):
    """One execution as listed. `owner_alive`: whether the process that took it last still lives."""

    execution_id: str
    kind: str
    created_us: int
    head: int
    epoch: int
    owner: str
    owner_alive: bool
    summary: Summary | None


class Ownership(NamedTuple):
    """The right to commit to one execution. `handle` is the store's own short id, `head` the last committed sequence number."""

    execution_id: str
    handle: int
    epoch: int
    head: int


class Vacuumed(NamedTuple):
    """What was given back: blobs that nothing names, and the size of the store before and after, in bytes."""

    blobs: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What one flush writes, in one transaction: records contiguous from the last, and everything that belongs to them."""

    ownership: Ownership
    records: Sequence[Record]
    receipts: Sequence[tuple[str, str]] = ()  # (task, receipt)
    blobs: Sequence[tuple[str, bytes]] = ()  # (content address, content)
    opened: Sequence[tuple[str, str, bytes]] = ()  # suspensions: (id, kind, body)
    closed: Sequence[tuple[str, bytes]] = ()  # answers to them: (id, body)
    taken: Sequence[int] = ()  # ids of Posted that these records consume
    snapshot: Snapshot | None = None
    summary: Summary | None = None


Done = Callable[[TreadleError | None], None]


class Ledger(ABC):
    """A store of executions.

    Atomic: a batch is committed whole or not at all. Ordered: batches of one execution are committed in the order of `submit`;
    a batch whose first record does not follow the last committed one is refused with LedgerGap. Fenced: a batch whose epoch is
    not the stored one is refused with StaleEpoch. After any refusal every later batch of that ownership is refused as well: the
    owner drops its memory and acquires anew. A refused batch never harms the others that share its transaction.
    Durable: `done(None)` is called only when the batch would survive a power cut.
    Readers never block writers and see only what is committed.
    All methods raise LedgerError subclasses for faults of the store, with where and what to do.
    """

    url: str

    @abstractmethod
    async def create(self, execution_id: str, *, kind: str, owner: str, at_us: int) -> Ownership:
        """A new execution, owned by `owner` at epoch 1. InputError when the id is taken."""

    @abstractmethod
    async def acquire(self, execution_id: str, *, owner: str, force: bool = False) -> Ownership:
        """Takes over: the epoch goes up by one and every older owner is fenced.

        UnknownExecution; OwnerAlive while another living process owns it, unless `force`.
        """

    @abstractmethod
    async def release(self, ownership: Ownership) -> None:
        """Gives the ownership up, where it is still ours: the execution has no owner, its epoch stays."""

    def lapsed(self, ownership: Ownership) -> bool:
        """Whether others may have taken it for abandoned since it was last known to be ours: `confirm` must be asked before
        anything is paid or changed."""
        return False

    async def confirm(self, ownership: Ownership) -> None:
        """Returns where it is still ours, with the right to it renewed.

        StaleEpoch where it is not; LedgerUnavailable where nobody can tell.
        """

    @abstractmethod
    def submit(self, batch: Batch, done: Done) -> None:
        """Queues the batch and returns at once. `done` is called once, on the thread of the event loop that opened the ledger."""

    def commit_now(self, batch: Batch, done: Done) -> bool:
        """Commits within this call, `done` included, where that is sooner than queueing; False: it was not touched, so submit it.

        It may block the event loop for as long as one quick commit takes.
        """
        return False

    @abstractmethod
    async def row(self, execution_id: str) -> ExecutionRow:
        """The execution with this id, or with this unique prefix of at least 4 characters; `last` names the newest.

        UnknownExecution, naming close or ambiguous ids.
        """

    @abstractmethod
    async def rows(self, *, limit: int | None = None) -> list[ExecutionRow]:
        """Executions, newest first."""

    @abstractmethod
    async def snapshot(self, execution_id: str, *, at: int | None = None) -> Snapshot | None:
        """The latest snapshot, at or before `at`."""

    @abstractmethod
    async def records(
        self, execution_id: str, *, after: int = 0, to: int | None = None, limit: int | None = None
    ) -> list[Record]:
        """Records with after < seq <= to, in order."""

    @abstractmethod
    async def chain(self, execution_id: str, leaf: int | None) -> list[Record]:
        """The branch of messages that ends in `leaf`, oldest first; empty for None. DanglingMessage where a parent is missing."""

    @abstractmethod
    async def receipts(self, execution_id: str, task: str) -> set[str]:
        """All receipts of a task."""

    @abstractmethod
    async def blob(self, address: str) -> bytes:
        """The content. LedgerDamaged where it is missing or does not fit its address."""

    @abstractmethod
    async def suspensions(self, execution_id: str) -> list[tuple[str, str, bytes, bytes | None]]:
        """(id, kind, body, answer) in order of opening; answer is None while open."""

    @abstractmethod
    async def post(self, execution_id: str, kind: str, body: bytes, *, at_us: int) -> int:
        """Leaves a request for the owner, durable when this returns. Its id."""

    @abstractmethod
    async def posted(self, execution_id: str) -> list[Posted]:
        """Requests that no batch has taken yet, oldest first. Cheap: owners ask often."""

    @abstractmethod
    async def verify(self) -> list[str]:
        """What is wrong with the store, a line each; empty when it is sound."""

    @abstractmethod
    async def remove(self, execution_id: str) -> None:
        """Takes the execution out of the store, for good and in one transaction. Its blobs stay until `vacuum`.

        UnknownExecution; OwnerAlive while a living process owns it.
        """

    @abstractmethod
    async def vacuum(self) -> Vacuumed:
        """Drops blobs that no record names, and gives their room and that of removed executions back.

        OwnerAlive where that would hold up a living owner.
        """

    @abstractmethod
    async def close(self) -> None:
        """Writes what is queued, then closes. Idempotent."""
