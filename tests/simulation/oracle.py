"""What must be true of every execution, told from its records and from the world, and never from what a process has in memory."""

from __future__ import annotations

from typing import Any

from treadle.core import events as ev
from treadle.core.codec import decode
from treadle.core.endings import ENDINGS
from treadle.core.errors import TreadleError
from treadle.core.messages import Compacted, ModelResponded, Prompted, ToolsFinished
from treadle.core.usage import NO_USAGE, Usage
from treadle.core.workflow_events import ChildStarted
from treadle.kernel import loop as loops
from treadle.kernel import snapshot as loop_snapshots
from treadle.kernel import workflow as workflows
from treadle.kernel import workflow_states
from treadle.kernel.budget import possibly_charged
from treadle.kernel.states import LoopState
from treadle.kernel.workflow_budget import standing
from treadle.kernel.workflow_states import WorkflowState
from treadle.ledger.inmemory import InMemoryLedger, MemoryStore

from .world import World

ROWS = {(row.status, row.code) for row in ENDINGS}
COUNTERS = ("requests", "input_tokens", "output_tokens", "cost_usd")


async def judge(world: World, store: MemoryStore) -> dict[str, Any]:
    """Every execution in the store; faults are noted in the world. execution -> its state, folded anew."""
    ledger = InMemoryLedger(store)
    for line in await ledger.verify():
        world.fault(f"the store is unsound: {line}")
    states: dict[str, Any] = {}
    children: dict[str, list[str]] = {}
    for name, execution in store.executions.items():
        try:
            if execution.records and execution.kind == "loop":
                states[name] = _loop(world, name, execution)
            elif execution.records:
                states[name], children[name] = _workflow(world, name, execution)
        except TreadleError as error:
            world.fault(f"{name} can never be opened again: {error!r}")
    for name, state in states.items():
        _ending(world, name, state)
        _accounts(world, name, state, _family(name, states, children))
    for key, who in world.effects.items():
        world.expect(len(who) == 1, f"{key} was done {len(who)} times, by {', '.join(who)}")
    return states


def _ending(world: World, name: str, state: Any) -> None:
    status, code = standing(state) if isinstance(state, WorkflowState) else (state.status, state.code)
    world.expect(status == "running" or (status, code) in ROWS, f"{name} ended as {status}, {code}: no such row")


def _accounts(world: World, name: str, state: Any, family: dict[str, Any]) -> None:
    """counted <= billed <= counted + in doubt, of an execution with all that runs inside it."""
    billed = world.billed_to(family)
    counted = state.total.usage
    doubt = possibly_charged(state) if isinstance(state, LoopState) else _open(state)
    for counter in COUNTERS:
        least, paid = getattr(counted, counter), getattr(billed, counter)
        most = least + getattr(doubt, counter)
        what = f"{name}: {counter} counted {least}, billed {paid}, counted and in doubt {most}"
        if all(_rested(one) for one in family.values()):  # a child is charged when it rests
            world.expect(least <= paid <= most, what)
        else:
            world.expect(least <= paid, what)


def _rested(state: Any) -> bool:
    return not state.active if isinstance(state, WorkflowState) else state.status != "running"


def _open(state: WorkflowState) -> Usage:
    charges = [charge for task in state.active.values() for charge in task.charges]
    return sum((charge.reserve for charge in charges), state.total.in_doubt)


def _family(name: str, states: dict[str, Any], children: dict[str, list[str]]) -> dict[str, Any]:
    """An execution and all that ran inside it; one that died before its first record goes on under the next name."""
    found = {name: states[name]}
    for child in children.get(name, ()):
        for one in states:
            if one.startswith(child) and not one[len(child) :].strip("0"):
                found |= _family(one, states, children)
    return found


# ---- loops


def _loop(world: World, name: str, execution: Any) -> LoopState:
    state, calls = LoopState(), _Calls(world, name)
    asked = {one.call: one.billed_usd for one in world.asked if one.execution == name}
    usage, cut = NO_USAGE, False
    for record in execution.records:
        event: Any = decode(record.kind, record.version, record.body)
        again, cut = cut, isinstance(event, ev.Interrupted) and event.reason == "deadline"
        world.expect(not (again and cut), f"{name}: it is cut off by its limit, and begins the same again")
        if isinstance(event, ev.ModelIntended | ev.CompactionIntended):
            _within(world, name, state, event, asked)
        calls.see(record.seq, event)
        usage += _usage(event)
        state = loops.advance(state, event)
        _same(world, name, execution, record.seq, state, loop_snapshots.freeze)
    world.expect(usage == state.total.usage, f"{name}: records add up to {usage}, the state says {state.total.usage}")
    return state


def _usage(event: Any) -> Usage:
    return (
        event.usage
        if isinstance(event, ModelResponded | ev.UsageReported | Compacted | ev.CompactionFailed)
        else NO_USAGE
    )


def _within(world: World, name: str, state: LoopState, event: Any, asked: dict[str, Any]) -> None:
    """No intent once a limit has been reached: by our count, and by the provider's."""
    total, limits = state.total, state.settings.limits
    if limits.max_turns is not None:
        world.expect(
            total.turns < limits.max_turns, f"{name}: {event.call} at {total.turns} of {limits.max_turns} turns"
        )
    if limits.max_tokens is not None:
        spent = total.usage.tokens + total.in_doubt.tokens
        world.expect(spent < limits.max_tokens, f"{name}: {event.call} at {spent} of {limits.max_tokens} tokens")
    if limits.max_cost_usd is not None:
        spent_usd = total.usage.cost_usd + total.in_doubt.cost_usd
        told = asked.get(event.call, spent_usd)
        what = f"{name}: {event.call} at ${spent_usd}, billed ${told}, of ${limits.max_cost_usd}"
        world.expect(spent_usd < limits.max_cost_usd and told < limits.max_cost_usd, what)
    if limits.max_duration_us is not None:
        world.expect(total.us < limits.max_duration_us, f"{name}: {event.call} after {total.us} us")
    policy = state.settings.act_policy
    if state.phase == "act" and policy.max_turns is not None:
        world.expect(state.act.turns < policy.max_turns, f"{name}: {event.call} at {state.act.turns} turns of act")


class _Calls:
    """Every call gets one result, in its place, before anything else is said on its branch."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.open: dict[int, list[str]] = {}  # leaf -> ids of calls that wait for their result there
        self.intended: set[str] = set()

    def see(self, seq: int, event: Any) -> None:
        if isinstance(event, ev.ModelIntended | ev.CompactionIntended):
            self.world.expect(event.call not in self.intended, f"{self.name}: {event.call} was intended twice")
            self.intended.add(event.call)
        if isinstance(event, ModelResponded):
            self.open[seq] = [call.id for call in event.calls if call.kind not in ("finish", "verdict")]
        elif isinstance(event, ToolsFinished):
            waiting = self.open.pop(event.parent, [])
            ids = [result.id for result in event.results]
            fits = waiting[: len(ids)] == ids or set(ids) <= set(waiting) | {"f", "v"}
            self.world.expect(fits, f"{self.name}: results {ids} for calls {waiting} in record {seq}")
            self.open[seq] = [one for one in waiting if one not in ids]
        elif isinstance(event, Prompted) and event.parent is not None:
            waiting = self.open.get(event.parent, [])
            self.world.expect(not waiting, f"{self.name}: calls {waiting} were left unanswered in record {seq}")


# ---- workflows


def _workflow(world: World, name: str, execution: Any) -> tuple[WorkflowState, list[str]]:
    """The state, and what ran inside it."""
    state, children = WorkflowState(), dict[str, None]()
    for record in execution.records:
        event: Any = decode(record.kind, record.version, record.body)
        if isinstance(event, ChildStarted):
            children[event.child] = None
        state = workflows.advance(state, event)
        _same(world, name, execution, record.seq, state, workflow_states.freeze)
    return state, list(children)


def _same(world: World, name: str, execution: Any, seq: int, state: Any, freeze: Any) -> None:
    stored = execution.snapshots.get(seq)
    if stored is not None:
        world.expect(freeze(state) == stored.body, f"{name}: the snapshot at {seq} is not what its records fold to")
