"""Edges of kernel rules that no longer run shows by itself: values in, values out."""

from __future__ import annotations

import pytest

from treadle.core import workflow_events as ev
from treadle.core.errors import InputError
from treadle.kernel.states import LoopState
from treadle.kernel.steering import Extend, to_event
from treadle.kernel.texts import trimmed
from treadle.kernel.workflow import advance
from treadle.kernel.workflow_states import WorkflowState

TEXT = "".join(f"{n:04}" for n in range(500))


@pytest.mark.req("AG-16")
def test_a_short_piece_of_a_trimmed_output_is_its_beginning_and_a_long_one_both_ends() -> None:
    short, long = trimmed(TEXT, "c", 399), trimmed(TEXT, "c", 400)
    assert short.startswith(TEXT[:399])
    assert short.endswith("gives them ...]")
    assert long.startswith(TEXT[:200] + "\n")
    assert long.endswith("\n" + TEXT[-200:])


@pytest.mark.req("SV-01")
def test_an_extension_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="Say what to extend"):
        to_event(LoopState(), Extend(actor="kim"), 1)


@pytest.mark.req("TC-26")
def test_what_had_begun_when_a_workflow_was_interrupted_is_a_replay_and_what_had_not_is_none() -> None:
    tasks = tuple(ev.TaskSettings(key=key, kind="task") for key in ("begun", "ready"))
    settings = ev.WorkflowSettings(name="w", version="1", tasks=tasks, budget=ev.BudgetSettings(), concurrency=1)
    state = WorkflowState()
    for event in (
        ev.WorkflowStarted(settings=settings, input_json="null", fingerprint={}, at_us=1),
        ev.PhaseStarted(task="begun", round=1, phase="perform", attempt=1),
        ev.WorkflowInterrupted(epoch=1, reason="signal"),
    ):
        state = advance(state, event)
    assert {key: task.replay for key, task in state.active.items()}.get("begun") is True
    assert not any(task.replay for key, task in state.active.items() if key == "ready")
