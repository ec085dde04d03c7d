"""The rules of gates: named checks of every round's work, before its evaluator. One that fails rejects the round by itself;
one that failed and passes later is a recovery, kept for a lesson (FR-20)."""

from __future__ import annotations

from treadle.core.events import CallbackStarted, Judged
from treadle.core.lesson_events import GatesChecked
from treadle.core.values import replace

from .accounts import settle_charges, spend
from .actions import Action, Record, RunGates
from .lesson_state import GateFailure, GateRecovery
from .states import LoopState

LONGEST_EVIDENCE = 2_000  # characters of a failed gate's output in feedback; the end, where results are
KEPT_EVIDENCE, KEPT_PATHS = 600, 20  # ... and of a recovery, which is in every frame


def due(state: LoopState) -> Action | None:
    """Running the gates on this round's work, or the rejection that they ask for."""
    if not state.settings.gates:
        return None
    if state.memory.gated != state.iteration:
        if state.callback:
            return RunGates(key=state.callback)
        return Record(event=CallbackStarted(key=f"r{state.round}.gates.{state.attempt}"))
    failed = [one for one in state.memory.failing if one.iteration == state.iteration]
    if not failed:
        return None
    names = ", ".join(one.gate for one in failed)
    said = "\n\n".join(f"Gate {one.gate} failed: {one.evidence}" for one in failed)
    return Record(event=Judged(accept=False, feedback=said, us=0, evidence=f"gates that failed: {names}"))


def checked(state: LoopState, e: GatesChecked) -> LoopState:
    """A gate that failed and passes now is a recovery; a later one of the same gate replaces it.

    Attempts go on counting: a loop that is tried again runs its gates anew, and its evaluator's keys must not come again.
    """
    memory = state.memory
    failing = {one.gate: one for one in memory.failing}
    recoveries = {one.gate: one for one in memory.recoveries}
    for result in e.results:
        if not result.passed:
            evidence = result.evidence[-LONGEST_EVIDENCE:]
            failing[result.gate] = GateFailure(gate=result.gate, iteration=state.iteration, evidence=evidence)
        elif (failure := failing.pop(result.gate, None)) is not None:
            recoveries[result.gate] = GateRecovery(
                gate=result.gate,
                failed_iteration=failure.iteration,
                passed_iteration=state.iteration,
                evidence=failure.evidence[-KEPT_EVIDENCE:],
                changed=state.last_changed[:KEPT_PATHS],
            )
    memory = replace(
        memory, gated=state.iteration, failing=tuple(failing.values()), recoveries=tuple(recoveries.values())
    )
    state = settle_charges(spend(state, us=e.us))
    return replace(state, memory=memory, callback="", processes=())


FOLD = {GatesChecked: checked}
