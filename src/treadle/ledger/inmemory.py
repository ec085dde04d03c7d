"""The ledger in memory, for tests and for loops that need not outlive their process: as on disk, but not durable."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from anyio.lowlevel import cancel_shielded_checkpoint

from treadle.core.digests import blob_address
from treadle.core.errors import (
    DanglingMessage,
    InputError,
    LedgerDamaged,
    LedgerError,
    LedgerGap,
    LedgerUnavailable,
    OwnerAlive,
    StaleEpoch,
    UnknownExecution,
)
from treadle.ports.ledger import (
    Batch,
    Done,
    ExecutionRow,
    Ledger,
    Ownership,
    Posted,
    Record,
    Snapshot,
    Summary,
    Vacuumed,
)

from .audit import Audited, audit, named_blobs
from .lookup import NAMED, NEWEST, PREFIX_MIN, ambiguous, busy, unknown


@dataclass(slots=True)
class _Execution:
    name: str
    kind: str
    handle: int
    created_us: int
    epoch: int
    owner: str
    holder: InMemoryLedger | None
    records: list[Record] = field(default_factory=list[Record])
    receipts: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    suspensions: dict[str, tuple[str, bytes, bytes | None]] = field(
        default_factory=dict[str, tuple[str, bytes, bytes | None]]
    )
    posted: dict[int, Posted] = field(default_factory=dict[int, Posted])
    snapshots: dict[int, Snapshot] = field(default_factory=dict[int, Snapshot])
    summary: Summary | None = None


class MemoryStore:
    """What several ledgers of one process can share, each standing for a process of its own."""

    def __init__(self) -> None:
        self.executions: dict[str, _Execution] = {}
        self.blobs: dict[str, bytes] = {}
        self.posts = self.handles = 0


class InMemoryLedger(Ledger):
    """Usable on any event loop; `done` is called by the loop, never within `submit`."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.url = "memory:"
        self._store = MemoryStore() if store is None else store
        self._poisoned: set[tuple[int, int]] = set()
        self.closed = False

    async def create(self, execution_id: str, *, kind: str, owner: str, at_us: int) -> Ownership:
        executions = self._here().executions
        if execution_id in executions:
            raise InputError(f"There is an execution {execution_id!r} in this store already.")
        self._store.handles += 1
        handle = self._store.handles
        executions[execution_id] = _Execution(execution_id, kind, handle, at_us, 1, owner, self)
        return Ownership(execution_id, handle, epoch=1, head=0)

    async def acquire(self, execution_id: str, *, owner: str, force: bool = False) -> Ownership:
        execution = self._execution(execution_id)
        if not force and self._sees_owner(execution):
            raise busy(execution_id, execution.owner)
        execution.epoch += 1
        execution.owner, execution.holder = owner, self
        return Ownership(execution_id, execution.handle, execution.epoch, len(execution.records))

    async def release(self, ownership: Ownership) -> None:
        execution = self._execution(ownership.execution_id)
        if execution.epoch == ownership.epoch and execution.holder is self:
            execution.owner, execution.holder = "", None

    def submit(self, batch: Batch, done: Done) -> None:
        error: LedgerError | None = None
        try:
            execution = self._fenced(batch.ownership)
            self._check(execution, batch)
            self._write(execution, batch)
        except LedgerError as refusal:
            error = refusal
            self._poisoned.add((batch.ownership.handle, batch.ownership.epoch))
        asyncio.get_running_loop().call_soon(done, error)

    async def row(self, execution_id: str) -> ExecutionRow:
        executions = self._here().executions
        found = executions.get(execution_id)
        if found is None and execution_id == NEWEST and executions:
            found = next(reversed(executions.values()))
        if found is None and len(execution_id) >= PREFIX_MIN:
            names = sorted(name for name in executions if name.startswith(execution_id))
            if len(names) > 1:
                raise ambiguous(execution_id, names[: NAMED + 1])
            found = executions[names[0]] if names else None
        if found is None:
            raise self._unknown(execution_id)
        return self._row(found)

    async def rows(self, *, limit: int | None = None) -> list[ExecutionRow]:
        return [self._row(execution) for execution in reversed(self._here().executions.values())][:limit]

    async def snapshot(self, execution_id: str, *, at: int | None = None) -> Snapshot | None:
        snapshots = self._execution(execution_id).snapshots
        fitting = [seq for seq in snapshots if at is None or seq <= at]
        return snapshots[max(fitting)] if fitting else None

    async def records(
        self, execution_id: str, *, after: int = 0, to: int | None = None, limit: int | None = None
    ) -> list[Record]:
        return self._execution(execution_id).records[max(after, 0) : to][:limit]

    async def chain(self, execution_id: str, leaf: int | None) -> list[Record]:
        records = self._execution(execution_id).records
        found: list[Record] = []
        child = len(records) + 1
        while leaf is not None:
            if not 0 < leaf < child:
                raise DanglingMessage(f"Message {leaf} is not in the store.")
            found.append(records[leaf - 1])
            child, leaf = leaf, records[leaf - 1].parent
        found.reverse()
        return found

    async def receipts(self, execution_id: str, task: str) -> set[str]:
        return set(self._execution(execution_id).receipts.get(task, ()))

    async def blob(self, address: str) -> bytes:
        content = self._here().blobs.get(address)
        if content is None or blob_address(content) != address:
            raise LedgerDamaged(f"Blob {address} is {'missing' if content is None else 'not what was stored'}.")
        return content

    async def suspensions(self, execution_id: str) -> list[tuple[str, str, bytes, bytes | None]]:
        return [(name, *rest) for name, rest in self._execution(execution_id).suspensions.items()]

    async def post(self, execution_id: str, kind: str, body: bytes, *, at_us: int) -> int:
        execution = self._execution(execution_id)
        self._store.posts += 1
        execution.posted[self._store.posts] = Posted(self._store.posts, kind, body, at_us)
        return self._store.posts

    async def posted(self, execution_id: str) -> list[Posted]:
        return list(self._execution(execution_id).posted.values())

    async def verify(self) -> list[str]:
        executions = (
            Audited(name, execution.records, _folded(execution)) for name, execution in self._here().executions.items()
        )
        return list(audit(executions, self._store.blobs.items()))

    async def remove(self, execution_id: str) -> None:
        execution = self._execution(execution_id)
        if self._sees_owner(execution):
            raise OwnerAlive(f"{execution_id} is being run by {execution.owner}: it cannot be removed.")
        del self._store.executions[execution_id]

    async def vacuum(self) -> Vacuumed:
        bodies = (record.body for one in self._here().executions.values() for record in one.records)
        named, blobs = named_blobs(bodies), self._store.blobs
        before = sum(map(len, blobs.values()))
        dropped = [address for address in blobs if address not in named]
        for address in dropped:
            del blobs[address]
        return Vacuumed(len(dropped), before, sum(map(len, blobs.values())))

    async def close(self) -> None:
        self.closed = True
        await cancel_shielded_checkpoint()  # the loop calls every `done` that waits

    def _here(self) -> MemoryStore:
        if self.closed:
            raise LedgerUnavailable("The store has been closed.")
        return self._store

    def _execution(self, execution_id: str) -> _Execution:
        execution = self._here().executions.get(execution_id)
        if execution is None:
            raise self._unknown(execution_id)
        return execution

    def _unknown(self, wanted: str) -> UnknownExecution:
        return unknown(wanted, list(reversed(self._store.executions)))

    def _sees_owner(self, execution: _Execution) -> bool:
        """Whether a living process owns it; that something was refused to an owner only its own process knows."""
        if execution.holder is self:
            return (execution.handle, execution.epoch) not in self._poisoned
        return execution.holder is not None and not execution.holder.closed

    def _row(self, execution: _Execution) -> ExecutionRow:
        return ExecutionRow(
            execution.name,
            execution.kind,
            execution.created_us,
            len(execution.records),
            execution.epoch,
            execution.owner,
            self._sees_owner(execution),
            execution.summary,
        )

    def _fenced(self, own: Ownership) -> _Execution:
        execution = self._here().executions.get(own.execution_id)
        if execution is None or execution.epoch != own.epoch or execution.holder is not self:
            raise StaleEpoch(
                f"{own.execution_id}: epoch {own.epoch} is over. "
                "Another owner has taken over, or it was released; this one must stop."
            )
        if (own.handle, own.epoch) in self._poisoned:
            raise LedgerGap(f"{own.execution_id}: an earlier batch was refused. Acquire the execution anew.")
        return execution

    def _check(self, execution: _Execution, batch: Batch) -> None:
        """Everything that can be refused, before anything is written."""
        own = batch.ownership
        head = len(execution.records)
        for record in batch.records:
            head += 1
            if record.seq != head:
                raise LedgerGap(f"{own.execution_id}: record {record.seq} does not follow {head - 1}.")
        if batch.snapshot is not None and batch.snapshot.seq > head:
            raise LedgerGap(f"{own.execution_id}: a snapshot of {batch.snapshot.seq} is beyond the last record {head}.")
        _check_sets(execution, batch)

    def _write(self, execution: _Execution, batch: Batch) -> None:
        execution.records += batch.records
        for task, receipt in batch.receipts:
            execution.receipts.setdefault(task, set()).add(receipt)
        self._store.blobs.update(batch.blobs)
        for name, kind, body in batch.opened:
            execution.suspensions[name] = (kind, body, None)
        for name, answer in batch.closed:
            execution.suspensions[name] = (*execution.suspensions[name][:2], answer)
        for posted in batch.taken:
            del execution.posted[posted]
        if batch.snapshot is not None:
            execution.snapshots[batch.snapshot.seq] = batch.snapshot
        execution.summary = batch.summary or execution.summary


def _check_sets(execution: _Execution, batch: Batch) -> None:
    """What must be new is new, what must be there is there."""
    receipts = [(task, receipt) for task, receipt in batch.receipts if receipt in execution.receipts.get(task, ())]
    opened = [name for name, _, _ in batch.opened]
    waiting = {name for name, (_, _, answer) in execution.suspensions.items() if answer is None}.union(opened)
    closed, taken = [name for name, _ in batch.closed], list(batch.taken)
    if (
        receipts
        or execution.suspensions.keys() & set(opened)
        or not waiting.issuperset(closed)
        or not execution.posted.keys() >= set(taken)
        or any(len(set(each)) != len(each) for each in (batch.receipts, opened, closed, taken))
    ):
        raise LedgerGap(f"{execution.name}: this contradicts what is stored. Read the execution anew.")


def _folded(execution: _Execution) -> list[tuple[str, int]]:
    summary = [("summary", execution.summary.seq)] if execution.summary else []
    return [*(("snapshot", seq) for seq in execution.snapshots), *summary]
