"""Lets the process of a show die at a crash point, or lose its execution to another owner there; then another goes on to the end.

In memory a death is an exception and a store that takes nothing more; `tests/crash/workflow_kills.py` does the same with SIGKILL.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import anyio

from treadle.app.runtime import Reopening
from treadle.app.stores import open_store
from treadle.app.workflow_runtime import WorkflowRuntime
from treadle.core import workflow_events as ev
from treadle.core.codec import decode
from treadle.core.errors import LedgerError, LedgerUnavailable, StaleEpoch, TreadleError, UnknownExecution
from treadle.kernel import workflow as machine
from treadle.kernel.workflow_budget import standing
from treadle.kernel.workflow_states import WorkflowState
from treadle.ledger.inmemory import InMemoryLedger, MemoryStore
from treadle.ports.clock import NO_CRASH_POINTS, CrashPoints
from treadle.ports.ledger import Batch, Done, Ledger, Ownership
from treadle.ports.task import Observation
from treadle.settings import Settings
from treadle.telemetry.hub import Hub
from treadle.testing import VirtualClock

from .crashing import Died
from .shows import RUN, Desk, Ended, Show, World

Fate = Literal["dies", "robbed"]
SETTINGS = Settings(environ={}, state_dir=Path("/nonexistent"))
LATER_S = 3_600.0


class Watching(Hub):
    """Notes what sinks would be handed, without their threads."""

    def __init__(self, now_us: Callable[[], int], world: World) -> None:
        super().__init__(now_us)
        self.world = world

    def publish(self, observation: Observation) -> None:
        self.world.say(
            "observed",
            execution=observation.execution_id,
            task=observation.task,
            attempt=observation.attempt,
            kind=observation.kind,
            seq=observation.seq,
            data=repr(observation.data),
        )


# ---- processes in memory


class MortalLedger(InMemoryLedger):
    """A process's way to the store, with the crash points of a real one."""

    def __init__(self, store: MemoryStore, points: FateAt) -> None:
        super().__init__(store)
        self.points = points

    async def create(self, execution_id: str, *, kind: str, owner: str, at_us: int) -> Ownership:
        own = await super().create(execution_id, kind=kind, owner=owner, at_us=at_us)
        self.points.reach("ledger.in-acquire")
        return own

    async def acquire(self, execution_id: str, *, owner: str, force: bool = False) -> Ownership:
        own = await super().acquire(execution_id, owner=owner, force=force)
        self.points.reach("ledger.in-acquire")
        return own

    def submit(self, batch: Batch, done: Done) -> None:
        """Whoever dies here hears nothing: it raises in nobody's hands, and what still unwinds finds the store closed."""
        try:
            self.points.reach("ledger.before-commit")
            super().submit(batch, done if self.points.name != "ledger.after-commit" else self._unless_dead(done))
            self.points.reach("ledger.after-commit")
        except Died:
            if self.points.name == "ledger.before-commit":
                asyncio.get_running_loop().call_soon(done, LedgerUnavailable("dead"))

    def _unless_dead(self, done: Done) -> Done:
        return lambda error: done(LedgerUnavailable("dead") if self.closed else error)


class FateAt(CrashPoints):
    """Counts how often points are reached; at one of them the process meets its fate."""

    def __init__(self, name: str = "", nth: int = 0, fate: Fate = "dies") -> None:
        self.name, self.left, self.fate = name, nth, fate
        self.counts: Counter[str] = Counter()
        self.ledger: MortalLedger | None = None
        self.dead = self.robbed = False
        self.before: dict[str, WorkflowState] = {}  # what was durable then

    def reach(self, name: str) -> None:
        self.counts[name] += 1
        if name != self.name or self.dead or self.robbed:
            return
        self.left -= 1
        if self.left:
            return
        assert self.ledger is not None
        self.before = durable(self.ledger)
        if self.fate == "robbed":
            self.robbed = True
            thief = InMemoryLedger(self.ledger._store)
            thief.closed = True  # and gone again
            for execution in self.ledger._store.executions.values():
                execution.epoch += 1
                execution.owner, execution.holder = "thief", thief
            return
        self.dead = self.ledger.closed = True
        raise Died(name)


def durable(ledger: InMemoryLedger) -> dict[str, WorkflowState]:
    """Every workflow in the store, folded anew."""
    found: dict[str, WorkflowState] = {}
    for name, execution in ledger._store.executions.items():
        if execution.kind == "workflow" and execution.records:
            found[name] = fold(execution.records)[0]
    return found


async def durable_in(url: str) -> dict[str, WorkflowState]:
    """The same of a store on disk."""
    ledger = await open_store(url, NO_CRASH_POINTS)
    try:
        rows = [row for row in await ledger.rows() if row.kind == "workflow" and row.head]
        return {row.execution_id: fold(await ledger.records(row.execution_id))[0] for row in rows}
    finally:
        await ledger.close()


def fold(records: Any) -> tuple[WorkflowState, tuple[Any, ...]]:
    """The state that these records make, and their events."""
    state = WorkflowState()
    events = tuple(decode(record.kind, record.version, record.body) for record in records)
    for event in events:
        state = machine.advance(state, event)
    return state, events


# ---- one process, in memory or real


async def live(show: Show, world: World, ledger: Ledger, points: CrashPoints, clock: Any) -> WorkflowState:
    """Begins or goes on, with a person at the desk, until it rests for good."""
    world.now_us = clock.wall_us
    runtime = WorkflowRuntime(
        ledger,
        SETTINGS,
        clock=clock,
        points=points,
        hub=Watching(clock.wall_us, world),
        quota_wait_s=show.quota_wait_s,
    )
    for _ in range(60):
        workflow, how = show.make(world), Reopening()
        try:
            state = await runtime.state(RUN)
        except UnknownExecution:
            state = WorkflowState()
        if state.seq and standing(state)[0] not in ("running", "paused"):
            desk = Desk(runtime, state, world)
            if not await show.person(desk):
                return state
            how = desk.how
            if runtime.resting(await runtime.state(RUN), how):
                continue
        session = await (
            runtime.resume(RUN, workflow, how) if state.seq else runtime.start(workflow, show.input, execution_id=RUN)
        )
        try:
            await session.run()
        finally:
            await session.close()
    raise AssertionError("it never comes to its end")


async def concluded(ledger: Ledger, world: World, deaths: int) -> Ended:
    """How it ended, as read from the store."""
    runtime = WorkflowRuntime(ledger, SETTINGS)
    state = await runtime.state(RUN)
    folded, events = fold(await ledger.records(RUN))
    assert folded == state
    assert await ledger.verify() == []
    document = await runtime.document(RUN, state)
    outputs = await runtime.outputs(RUN, state)
    rows = await ledger.rows()  # one that died before its first record has an empty row, and goes on under another name
    return Ended(*standing(state), outputs, state, document, events, sum(row.head > 0 for row in rows), world, deaths)


class Lives:
    """A show in one store, from its begin to its end, whatever becomes of its first process."""

    def __init__(self, show: Show) -> None:
        self.show, self.world, self.store = show, World(), MemoryStore()
        self.clock = VirtualClock()

    def once(self, points: FateAt) -> bool:
        """One process. Whether it came to the end."""
        ledger = points.ledger = MortalLedger(self.store, points)
        self.world.silent = lambda: points.dead

        async def main() -> None:
            with anyio.fail_after(600):  # a hang is told; a slow machine is none
                await live(self.show, self.world, ledger, points, self.clock)

        try:
            anyio.run(main)
        except (Died, TreadleError, BaseExceptionGroup) as error:
            if not points.dead and not (points.robbed and _only_stale(error)):
                raise
            return False
        finally:
            ledger.closed = True
        return not points.dead

    def to_the_end(self, points: FateAt) -> Ended:
        """With one fate, and a second process where the first met it. What is wrong is an AssertionError."""
        whole = self.once(points)
        met_at = len(self.world.lines())
        if not whole:
            self.clock.advance(LATER_S)
            assert self.once(FateAt()), "the second process met no end"
        end = anyio.run(concluded, InMemoryLedger(self.store), self.world, int(points.dead or points.robbed))
        self.show.judge(end)
        lawful(end, points.before, met_at)
        return end


def _only_stale(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_only_stale, error.exceptions))
    return isinstance(error, StaleEpoch | LedgerError)


# ---- what holds of every show


def lawful(end: Ended, before: dict[str, WorkflowState], met_at: int) -> None:
    """Identities, attempts, charges, observations, and what may be called again once `before` was durable."""
    calls = end.world.lines("did")
    keys: dict[tuple[Any, ...], str] = {}
    given: dict[str, Any] = {}
    for line in calls:
        where = (line["execution"], line["task"], line["round"], line["phase"])
        assert keys.setdefault(where, line["key"]) == line["key"], "one phase, one key"
        assert given.setdefault(line["key"], line["given"]) == line["given"], "a replay begins with something else"
    assert len(set(keys.values())) == len(keys), "two phases share a key"
    _attempts(calls)
    _once(end)
    for line in [one for one in end.world.lines()[met_at:] if one["what"] == "did"]:
        _not_done(line, before)


def _attempts(calls: list[dict[str, Any]]) -> None:
    """Cumulative; one for each call but for the check that follows its own attempt."""
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for line in calls:
        where = (line["execution"], line["task"])
        known = last.get(where)
        if known is not None:
            same = (known["round"], known["phase"], "check") == (line["round"], "attempt", line["phase"])
            least = known["attempt"] + (not same)
            assert line["attempt"] >= least, f"{known} and then {line}"
            assert known["round"] <= line["round"] <= known["round"] + 1
        last[where] = line


def _once(end: Ended) -> None:
    receipts = Counter(
        (event.task, event.receipt) for event in end.events if isinstance(event, ev.UsageCharged) and event.receipt
    )
    assert all(count == 1 for count in receipts.values()), "a receipt was counted twice"
    seen = Counter(
        (line["execution"], line["seq"], line["kind"], line["task"], line["data"])
        for line in end.world.lines("observed")
        if line["seq"]
    )
    assert all(count == 1 for count in seen.values()), "a replay was observed twice"
    heads = defaultdict[str, int](int)
    for line in end.world.lines("observed"):
        if line["seq"]:
            assert line["seq"] >= heads[line["execution"]], "observed out of order"
            heads[line["execution"]] = line["seq"]
    outcomes = Counter(
        (event.task, getattr(event, "round", 0), type(event).__name__)
        for event in end.events
        if isinstance(event, ev.RoundJudged | ev.TaskFinished)
    )
    assert all(count == 1 for count in outcomes.values()), "a phase was done twice"


def _not_done(line: dict[str, Any], before: dict[str, WorkflowState]) -> None:
    """What was done when the process met its fate is not called again."""
    state = before.get(line["execution"])
    if state is None:
        return
    key = line["task"]
    assert key not in state.done, f"{key} was done, and was called again"
    assert key not in state.skipped or state.skipped[key], f"{key} was not to run, and was called"
    task = state.active.get(key)
    if task is not None:
        place = (line["round"], line["phase"] == "check")
        assert place >= (task.round, task.phase == "check"), (
            f"{key}: {place} again after round {task.round} {task.phase}"
        )
        assert task.step != "accepted", f"{key} was accepted, and was called again"
