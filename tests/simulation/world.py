"""What is outside of every process: chance, the providers' bill, what tools have changed, and a trace of all that happened."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from decimal import Decimal
from hashlib import blake2b
from typing import Any, NamedTuple

from treadle.core.usage import NO_USAGE, Usage
from treadle.ports.ledger import Batch

from .machine import PROCESS, Process, VirtualLoop


class Faulty(AssertionError):
    """A promise was broken."""


class Charged(NamedTuple):
    """One line of the bill."""

    execution: str
    key: str
    usage: Usage


class Asked(NamedTuple):
    """A request as it began: what had been billed to its execution by then."""

    execution: str
    call: str
    billed_usd: Decimal


class World:
    """Shared by all processes of one trial. Everything is decided by one stream of chance, in the order of events."""

    def __init__(self, seed: int, loop: VirtualLoop) -> None:
        self.seed, self.loop = seed, loop
        self.chance = random.Random(seed)
        self.calm = False  # no more faults
        self.down = self.full = False  # the store
        self.rates: dict[str, float] = {}
        self.bill: list[Charged] = []
        self.asked: list[Asked] = []
        self.happened: Counter[str] = Counter()
        self.effects: dict[str, list[str]] = defaultdict(list)  # key of a mutating call -> who did it, in order
        self.files: dict[str, int] = {}  # what can be looked up
        self.again: dict[str, int] = {}  # how often a person went on with a failed execution
        self.begun: Counter[tuple[Any, ...]] = Counter()
        self.faults: list[str] = []
        self.epochs: dict[str, int] = {}  # of the last commit
        self.owners: dict[tuple[str, int], str] = {}
        self.lost: dict[tuple[str, str], int] = {}  # (execution, process) -> epoch that it has lost to another
        self.trace: list[str] = []
        self.keep_trace = False
        self._digest = blake2b(digest_size=16)
        self._billed: dict[str, Usage] = {}
        self._keys: set[str] = set()

    # ---- chance

    def hit(self, what: str) -> bool:
        """Whether this fault happens now."""
        rate = self.rates.get(what, 0.0)
        if self.calm or not rate or self.chance.random() >= rate:
            return False
        self.happened[what] += 1
        return True

    def likely(self, share: float) -> bool:
        return self.chance.random() < share

    def span(self, most: float) -> float:
        """Seconds: most are short."""
        return round(self.chance.random() ** 3 * most, 6)

    def new_id(self) -> str:
        return f"{self.chance.getrandbits(60):015x}"[:12]

    # ---- what is noted

    def note(self, what: str, *about: Any) -> None:
        line = f"{self.loop.time():.6f} {what} {' '.join(map(str, about))}"
        self._digest.update(line.encode())
        if self.keep_trace:
            self.trace.append(line)

    @property
    def digest(self) -> str:
        """Of everything that happened, in order."""
        return self._digest.hexdigest()

    def fault(self, what: str) -> None:
        self.note("FAULT", what)
        self.faults.append(what)

    def expect(self, holds: object, what: str) -> None:
        if not holds:
            self.fault(what)

    # ---- the bill

    def ask(self, execution: str, call: str) -> bool:
        """A paid or changing call begins in this process: it must be the owner, as far as anyone can tell."""
        process = PROCESS.get()
        assert process is not None
        self.note("begin", process.name, execution, call)
        stale = self.is_stale(process, execution)
        self.expect(not stale, f"{process.name} began {call} of {execution} after another owner had taken it over")
        self.asked.append(Asked(execution, call, self.billed(execution).cost_usd))
        return stale

    def charge(self, execution: str, key: str, usage: Usage) -> None:
        """The provider writes it down."""
        self.note("billed", key, usage.cost_usd)
        self.expect(key not in self._keys, f"two requests on the wire for one intent: {key}")
        self._keys.add(key)
        self.bill.append(Charged(execution, key, usage))
        self._billed[execution] = self._billed.get(execution, NO_USAGE) + usage

    def billed(self, execution: str) -> Usage:
        return self._billed.get(execution, NO_USAGE)

    def billed_to(self, executions: Iterable[str]) -> Usage:
        return sum(map(self.billed, executions), NO_USAGE)

    def change(self, key: str, execution: str, *, began_stale: bool) -> None:
        """A mutating call takes effect."""
        process = PROCESS.get()
        assert process is not None
        late = self.is_stale(process, execution)  # it had begun before: no fence reaches into the world
        self.note("changed", process.name, key, "late" if late else "")
        if not late or began_stale:
            self.effects[key].append(process.name)

    # ---- commits

    def committed(self, process: Process, batch: Batch) -> None:
        """The store has taken it: epochs only grow, and an epoch belongs to one process."""
        own = batch.ownership
        first = batch.records[0].seq if batch.records else 0
        self.note("commit", process.name, own.execution_id, own.epoch, first, len(batch.records))
        for record in batch.records:
            self._digest.update(record.body)
        last = self.epochs.get(own.execution_id, 0)
        self.expect(own.epoch >= last, f"{own.execution_id}: epoch {own.epoch} committed after epoch {last}")
        self.epochs[own.execution_id] = max(last, own.epoch)
        owner = self.owners.setdefault((own.execution_id, own.epoch), process.name)
        self.expect(owner == process.name, f"{own.execution_id}: {owner} and {process.name} committed at {own.epoch}")

    def acquired(self, process: Process, execution: str, epoch: int, before: str | None) -> None:
        self.note("acquire", process.name, execution, epoch)
        self.owners[execution, epoch] = process.name
        if before is not None and before != process.name:
            self.lost[execution, before] = epoch
        self.lost.pop((execution, process.name), None)

    def is_stale(self, process: Process, execution: str) -> bool:
        return (execution, process.name) in self.lost
