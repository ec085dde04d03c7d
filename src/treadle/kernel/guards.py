"""Guards against spinning (AG-11): what counts as progress, when one trips, and what follows.

Counting is folding; tripping is a decision, recorded as `GuardTripped`. A guard first tells the model, once; at twice its
threshold it stops the agent, unless the ladder has another model. Only measured progress clears its count:

    no-call      a tool call             repeat, read-only, stagnation   a change of the workspace, or a person's answer
    oscillation  a turn out of step      same-tree   a round that leaves another tree      oversized   a response
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import msgspec

from treadle.core.events import GuardTripped
from treadle.core.messages import ToolCall, ToolResult
from treadle.core.settings import GuardName
from treadle.core.values import replace

from .actions import Action, MeasureWorkspace, Record
from .guard_state import EMPTY, FAILURES, PAIRS, PERIODS, TREES, Batch, Failure, GuardCounters
from .marks import call_mark, joined
from .states import AgentState, LoopState

_TOOLS = ("read", "idempotent", "mutating")
_SAID = 400  # characters of an earlier failure that are told again


class Guard(NamedTuple):
    """One guard: what it has seen, in words with the count, and what it tells the model."""

    name: GuardName
    field: str
    seen: str
    directive: str
    looks: bool = False  # whether a change that nobody declared would be progress: then the workspace is measured first


GUARDS: tuple[Guard, ...] = (
    Guard(
        "no-call",
        "no_call",
        "{} turns in a row without a tool call",
        "Words change nothing here: call a tool now, or call {end} to end.",
    ),
    Guard(
        "repeat",
        "repeat",
        "the same call gave the same result {} times",
        "It will not give another one. Use what you know: change something, look elsewhere, or call {end}.",
        looks=True,
    ),
    Guard(
        "oscillation",
        "oscillation",
        "the same few turns {} times over, with the same results",
        "Going round does not help. Say in one sentence what you are trying to find out, then do something that you have "
        "not done yet, or call {end}.",
        looks=True,
    ),
    Guard(
        "read-only",
        "read_only",
        "{} turns of reading since the last change",
        "This task needs a change. Make the smallest one that you are sure of now, and check it; or call {end} and say "
        "what stands in the way.",
        looks=True,
    ),
    Guard(
        "stagnation",
        "stagnation",
        "{} turns with commands or edits, and the workspace is as it was",
        "What you do has no effect. Look at the output of the last calls, then try another way; or call {end} and say "
        "what stands in the way.",
        looks=True,
    ),
    Guard(
        "same-tree",
        "same_tree",
        "{} rounds left the workspace as a round before had left it",
        "The result was rejected and nothing is different. Read the feedback again and change something that it names.",
    ),
)
BY_NAME = {guard.name: guard for guard in GUARDS}
OVERSIZED = "the provider refused {} requests in a row as too long"


# ---- what is decided


def due(state: LoopState) -> Action | None:
    """What the guards want done before the next request; None while all is well."""
    counters, limits = state.agent.guards, state.settings.guards
    for guard in GUARDS:
        count, limit = getattr(counters, guard.field), getattr(limits, guard.field)
        if count < limit or not limit:
            continue
        warned = guard.name in counters.warned
        if warned and count < 2 * limit:
            continue
        if guard.looks and not counters.measured and state.baseline and state.phase == "act":
            return MeasureWorkspace(tree=state.baseline)
        return Record(
            event=GuardTripped(
                guard=guard.name,
                response="stop" if warned else "directive",
                count=count,
                evidence=guard.seen.format(count),
            )
        )
    return None


def oversized(state: LoopState) -> Action | None:
    """After a request that was refused as too long: one hard compaction at the threshold, then the end. None: try again."""
    counters, limit = state.agent.guards, state.settings.guards.oversized
    if limit and (counters.oversized < limit or (counters.compaction and counters.oversized == limit)):
        return None
    return Record(
        event=GuardTripped(
            guard="oversized",
            response="stop" if counters.compaction or not limit else "compact",
            count=counters.oversized,
            evidence=OVERSIZED.format(counters.oversized),
        )
    )


def wants_compaction(state: LoopState) -> bool:
    """Whether the breaker of oversized requests asks for one hard compaction before the next request."""
    return state.agent.guards.compaction == "asked"


def compacted(counters: GuardCounters) -> GuardCounters:
    """The hard compaction has been tried, whatever came of it: it is not tried again for this prompt."""
    return replace(counters, compaction="tried") if counters.compaction else counters


def stopping(state: LoopState) -> tuple[str, str] | None:
    """(the guard that stops the agent, what it has seen); None where none does."""
    counters = state.agent.guards
    if (name := counters.tripped) is None:
        return None
    seen = BY_NAME[name].seen if name in BY_NAME else OVERSIZED
    told = ", although it was told" if name in counters.warned else ""
    return name, seen.format(getattr(counters, name.replace("-", "_"))) + told


def failed_before(state: LoopState, call: ToolCall) -> Failure | None:
    """What this very call was told when it failed for a reason that has not passed; None where it may run."""
    failures = state.agent.guards.failures
    if not failures:
        return None
    mark = call_mark(call)
    return next((failure for failure in failures if failure.mark == mark), None)


# ---- what is counted


def quiet_turn(agent: AgentState, *, called: bool) -> GuardCounters:
    """A response arrived: with a call the count of turns without one is over, and the prompt was not too long."""
    counters = agent.guards
    if called or (agent.state == "planning" and agent.turn == 0):
        if not (counters.no_call or counters.oversized or counters.compaction):
            return counters
        no_call, warned = (0, _without(counters, "no-call")) if called else (counters.no_call, counters.warned)
        return replace(counters, no_call=no_call, oversized=0, compaction="", warned=warned)
    return replace(counters, no_call=counters.no_call + 1, oversized=0, compaction="")


def too_long(counters: GuardCounters) -> GuardCounters:
    """A request was refused as too long."""
    return replace(counters, oversized=counters.oversized + 1)


def results_in(
    state: LoopState, calls: tuple[ToolCall, ...], results: tuple[ToolResult, ...], *, last: bool, every_failed: bool
) -> GuardCounters:
    """Results of the batch in hand; with its last ones the turn is counted."""
    counters = state.agent.guards
    batch, failures, blind = counters.batch, counters.failures, not counters.measured
    for call, result in zip(calls, results, strict=True):
        ran = result.status != "not-run" and call.kind in ("mutating", "idempotent", "fork")
        if ran or call.kind == "ask":
            failures = ()  # the world may be another one now
            blind = blind or not result.changed
        if result.status == "error" and result.mark and not result.transient and call.kind in _TOOLS:
            failed = Failure(mark=call_mark(call), kind=result.error, said=result.content[:_SAID])
            failures = (*failures[1 - FAILURES :], failed)
        batch = _with(batch, call, result, acted=ran and bool(result.mark))
    counters = replace(counters, failures=failures, measured=not blind, batch=batch if not last else EMPTY)
    if not last:
        return counters
    if every_failed:
        counters = replace(counters, recovery=counters.recovery + 1, classes=_merged(counters.classes, batch.classes))
    elif counters.recovery:
        counters = replace(counters, recovery=0, classes=())
    return _turn(state, counters, batch)


def _merged(known: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return (*known, *(one for one in more if one not in known))


def _with(batch: Batch, call: ToolCall, result: ToolResult, *, acted: bool) -> Batch:
    return Batch(
        marks=(*batch.marks, result.mark) if result.mark else batch.marks,
        changed=batch.changed or bool(result.changed),
        acted=batch.acted or acted,
        answered=batch.answered or (call.kind == "ask" and result.status == "ok"),
        classes=(*batch.classes, result.error) if result.error and result.error not in batch.classes else batch.classes,
    )


def _turn(state: LoopState, counters: GuardCounters, batch: Batch) -> GuardCounters:
    # Where nobody can look, what is new and may have changed something has the benefit of the doubt.
    moved = (batch.changed or (batch.acted and not state.baseline)) and _new(counters, batch)
    if moved or batch.answered:
        counters = cleared(counters)
    if not batch.marks:
        return counters  # polling alone
    pairs, most = _counted(counters.pairs, batch.marks, 0 if moved else 1)
    mark = joined(batch.marks)
    turns, cycles = _stepped(counters, mark)
    passes = max(((run // period + 1) if run >= period else 0 for run, period in zip(cycles, PERIODS, strict=True)))
    must = state.settings.must_change and state.phase == "act"
    warned = counters.warned
    if not passes and "oscillation" in warned:
        warned = _without(counters, "oscillation")
    idle = must and not batch.changed
    return replace(
        counters,
        pairs=pairs,
        repeat=most,
        turns=turns,
        cycles=cycles,
        oscillation=passes,
        read_only=counters.read_only + (idle and not batch.acted),
        stagnation=counters.stagnation + (idle and batch.acted),
        warned=warned,
    )


def _new(counters: GuardCounters, batch: Batch) -> bool:
    known = {mark for mark, _ in counters.pairs}
    return any(mark not in known for mark in batch.marks)


def _counted(
    pairs: tuple[tuple[str, int], ...], marks: tuple[str, ...], step: int
) -> tuple[tuple[tuple[str, int], ...], int]:
    """The pairs with these counted, each once a batch, and the highest count among them."""
    known, most = dict(pairs), 0
    for mark in dict.fromkeys(marks[-PAIRS:]):
        count = known.pop(mark, 0) + step
        known[mark] = count  # the latest last
        most = max(most, count)
    return tuple(known.items())[-PAIRS:], most


def _stepped(counters: GuardCounters, mark: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The latest turns with this one, and how long each period has held. The same turn twice is `repeat`'s business."""
    turns = counters.turns
    if turns and turns[-1] == mark:
        return (mark,), (0, 0, 0)
    cycles = tuple(
        run + 1 if len(turns) >= period and turns[-period] == mark else 0
        for run, period in zip(counters.cycles, PERIODS, strict=True)
    )
    return (*turns[1 - PERIODS[-1] :], mark), cycles


def measured(state: LoopState, tree: str) -> GuardCounters:
    """The workspace was looked at: a tree that has not been there before is progress."""
    counters = replace(state.agent.guards, measured=True)
    if not tree or tree in counters.trees or tree == state.baseline:
        return counters
    return replace(
        cleared(counters),
        trees=(*counters.trees[1 - TREES :], tree),
        turns=(),
        cycles=(0, 0, 0),
        warned=_without(counters, "oscillation"),
    )


def round_left(counters: GuardCounters, receipt_json: str) -> GuardCounters:
    """A round is over: whether it left the workspace as one before it did."""
    receipt: Any = msgspec.json.decode(receipt_json)
    head = str(cast("dict[str, Any]", receipt).get("head", "")) if isinstance(receipt, dict) else ""
    if not head:
        return counters
    if head in counters.heads:
        return replace(counters, same_tree=counters.same_tree + 1)
    return replace(
        counters, same_tree=0, heads=(*counters.heads[1 - TREES :], head), warned=_without(counters, "same-tree")
    )


def tripped(counters: GuardCounters, event: GuardTripped) -> GuardCounters:
    """What follows from a trip."""
    match event.response:
        case "stop":
            return replace(counters, tripped=event.guard)
        case "compact":
            return replace(counters, compaction="asked")
        case _:
            return replace(counters, warned=(*counters.warned, event.guard))


def cleared(counters: GuardCounters) -> GuardCounters:
    """After progress: nothing is held against the agent but turns without a call, going round, and rounds without a change."""
    return replace(
        counters,
        repeat=0,
        oscillation=0,
        read_only=0,
        stagnation=0,
        pairs=(),
        warned=tuple(name for name in counters.warned if name in ("no-call", "oscillation", "same-tree")),
    )


def elsewhere(counters: GuardCounters) -> GuardCounters:
    """Somebody else may have changed something: what could only fail may be tried again."""
    return replace(counters, failures=()) if counters.failures else counters


def forgotten(counters: GuardCounters) -> GuardCounters:
    """For a new agent that remembers nothing of the last act: it may well look again at what that one has seen."""
    kept = anew(counters)
    return replace(kept, same_tree=counters.same_tree, warned=tuple(n for n in counters.warned if n == "same-tree"))


def anew(counters: GuardCounters) -> GuardCounters:
    """For another try by a person's word or another model: only what is known of the workspace stays."""
    return GuardCounters(trees=counters.trees, heads=counters.heads, measured=counters.measured)


def _without(counters: GuardCounters, name: GuardName) -> tuple[GuardName, ...]:
    return tuple(one for one in counters.warned if one != name) if counters.warned else ()


def directive(event: GuardTripped, phase: str) -> str:
    """What the model is told."""
    end = "finish(summary)" if phase == "act" else "verdict(accept, feedback)"
    return f"{event.evidence[0].upper()}{event.evidence[1:]}. {BY_NAME[event.guard].directive.format(end=end)}"
