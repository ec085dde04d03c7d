"""Any order of calls by two processes against a model that fits on a page."""

import asyncio
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from conformance.ledger_kit import STORES, SqlitePlace, record, submit
from support import postgres
from treadle.core.errors import LedgerGap, OwnerAlive, StaleEpoch
from treadle.ports.ledger import Batch, Ownership, Snapshot

PROCESSES = st.sampled_from([0, 1])
NAMES = st.sampled_from(["run-a", "run-b", "run-c"])


@dataclass
class Execution:
    """What must be true of one execution. `holder` is the life of a process: a new one after each reopening."""

    epoch: int
    holder: int | None
    records: list = field(default_factory=list)
    posted: list = field(default_factory=list)
    receipts: set = field(default_factory=set)
    snapshot: int | None = None
    poisoned: bool = False


class LedgerMachine(RuleBasedStateMachine):
    place: type

    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp())
        self.store = self.place(self.folder)
        self.ledgers = [self.run(self.store.open()), self.run(self.store.open())]
        self.lives = [1, 2]
        self.model: dict[str, Execution] = {}
        self.owned: list[tuple[int, int, Ownership]] = []  # process, its life, what it was given

    def run(self, awaitable):
        async def call():
            return await awaitable

        return self.runner.run(call())

    def teardown(self):
        assert self.run(self.ledgers[0].verify()) == []
        for ledger in self.ledgers:
            self.run(ledger.close())
        self.runner.close()
        shutil.rmtree(self.folder)

    def sees_owner(self, process, name):
        """That something was refused to an owner only its own process knows."""
        execution = self.model[name]
        return execution.holder in self.lives and not (execution.poisoned and execution.holder == self.lives[process])

    @rule(process=PROCESSES, name=NAMES)
    def create(self, process, name):
        if name in self.model:
            return
        own = self.run(self.ledgers[process].create(name, kind="loop", owner=f"p{process}", at_us=1))
        self.model[name] = Execution(1, self.lives[process])
        self.owned.append((process, self.lives[process], own))

    @precondition(lambda self: self.model)
    @rule(process=PROCESSES, data=st.data(), force=st.booleans())
    def acquire(self, process, data, force):
        name = data.draw(st.sampled_from(sorted(self.model)))
        execution = self.model[name]
        acquire = self.ledgers[process].acquire(name, owner=f"p{process}", force=force)
        if self.sees_owner(process, name) and not force:
            with pytest.raises(OwnerAlive):
                self.run(acquire)
            return
        own = self.run(acquire)
        assert (own.epoch, own.head) == (execution.epoch + 1, len(execution.records))
        execution.epoch, execution.holder, execution.poisoned = own.epoch, self.lives[process], False
        self.owned.append((process, self.lives[process], own))

    @precondition(lambda self: self.owned)
    @rule(data=st.data())
    def release(self, data):
        process, life, own = data.draw(st.sampled_from(self.owned))
        self.run(self.ledgers[process].release(own))
        execution = self.model[own.execution_id]
        if execution.epoch == own.epoch and execution.holder == life == self.lives[process]:
            execution.holder = None

    @precondition(lambda self: self.owned)
    @rule(
        data=st.data(),
        counts=st.lists(st.integers(0, 3), min_size=1, max_size=4),
        gap_at=st.integers(0, 9),
        with_snapshot=st.booleans(),
        take=st.booleans(),
    )
    def submit_batches(self, data, counts, gap_at, with_snapshot, take):
        """Several batches of one owner, current or stale, sound or with a gap, all queued before any is awaited."""
        process, life, own = data.draw(st.sampled_from(self.owned))
        execution = self.model[own.execution_id]
        expected, batches, seq = [], [], len(execution.records)
        for index, count in enumerate(counts):
            first = seq + 1 + (index == gap_at)
            new = [record(number, text=f"{own.epoch} {number}") for number in range(first, first + count)]
            if not self.may_commit(own, life, process):
                expected.append(StaleEpoch)
            elif execution.poisoned or (new and first != seq + 1):
                execution.poisoned = True
                expected.append(LedgerGap)
            else:
                expected.append(type(None))
            receipt = f"{own.execution_id} {own.epoch} {len(self.owned)} {len(execution.receipts)} {index}"
            taken = [execution.posted[0][0]] if take and execution.posted and expected[-1] is type(None) else []
            snapshot = Snapshot(seq + count, 1, b"s") if with_snapshot and expected[-1] is type(None) else None
            batches.append(Batch(own, new, receipts=[("loop", receipt)], taken=taken, snapshot=snapshot))
            if expected[-1] is type(None):
                seq += count
                execution.records += new
                execution.receipts.add(receipt)
                execution.posted = execution.posted[len(taken) :]
                execution.snapshot = seq if snapshot else execution.snapshot

        async def outcomes():
            return await asyncio.gather(*(submit(self.ledgers[process], batch) for batch in batches))

        assert [type(error) for error in self.run(outcomes())] == expected

    def may_commit(self, own, life, process):
        execution = self.model[own.execution_id]
        return execution.epoch == own.epoch and execution.holder == life == self.lives[process]

    @precondition(lambda self: self.model)
    @rule(process=PROCESSES, data=st.data(), body=st.binary(max_size=5))
    def post(self, process, data, body):
        name = data.draw(st.sampled_from(sorted(self.model)))
        number = self.run(self.ledgers[process].post(name, "answer", body, at_us=3))
        self.model[name].posted.append((number, "answer", body, 3))

    @rule(process=PROCESSES)
    def reopen(self, process):
        self.run(self.ledgers[process].close())
        self.ledgers[process] = self.run(self.store.open())
        self.lives[process] = max(self.lives) + 1

    @precondition(lambda self: self.model)
    @rule(process=PROCESSES, data=st.data())
    def read_back(self, process, data):
        name = data.draw(st.sampled_from(sorted(self.model)))
        ledger, execution = self.ledgers[process], self.model[name]
        to = data.draw(st.integers(0, len(execution.records)))
        assert self.run(ledger.records(name, to=to)) == execution.records[:to]
        assert self.run(ledger.posted(name)) == execution.posted
        assert self.run(ledger.receipts(name, "loop")) == execution.receipts
        snapshot = self.run(ledger.snapshot(name))
        assert (snapshot.seq if snapshot else None) == execution.snapshot

    @invariant()
    def the_listing_is_true(self):
        for process, ledger in enumerate(self.ledgers):
            rows = self.run(ledger.rows())
            assert [row.execution_id for row in rows] == list(reversed(self.model))
            for row in rows:
                execution = self.model[row.execution_id]
                alive = self.sees_owner(process, row.execution_id)
                assert (row.epoch, row.head, row.owner_alive) == (execution.epoch, len(execution.records), alive)


class UnsyncedSqlitePlace(SqlitePlace):
    """Thousands of commits whose durability nobody asks for here."""

    synchronous = "OFF"


@pytest.mark.req("TC-26")
@pytest.mark.parametrize("name", list(STORES))
def test_a_store_does_what_the_model_says(name):
    if name == "postgres" and postgres.binaries() is None:
        pytest.skip("no Postgres server is installed")
    places = {**STORES, "sqlite": UnsyncedSqlitePlace}

    class Machine(LedgerMachine):
        place = places[name]

    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(Machine, settings=settings(max_examples=25, stateful_step_count=25, deadline=None))
