"""Tokens and turns a second: exact over a sliding window, by the clock that is injected."""

from __future__ import annotations

from typing import Any

import pytest

from support.driving import DONE, LOOK, PLAN, a_loop, in_runtime, scripted
from treadle.core.events import Stopped
from treadle.core.messages import ModelResponded
from treadle.core.usage import Usage
from treadle.ports.observer import Progress
from treadle.telemetry.throughput import Throughput, Window
from treadle.testing.clock import VirtualClock


def responded(execution_id: str, given: int, got: int) -> Progress:
    usage = Usage(input_tokens=given, output_tokens=got, requests=1)
    event = ModelResponded(parent=1, call="c", text="", calls=(), usage=usage, finish="stop", us=1)
    return Progress(execution_id, 1, "model.responded", event, None, 0)


@pytest.mark.req("AG-19")
def test_rates_are_those_of_the_window_for_each_loop_and_for_the_fleet() -> None:
    clock = VirtualClock(start_us=0)
    throughput = Throughput(clock, window_s=10)
    for _ in range(20):
        throughput.notify(responded("a", 100, 10))
        throughput.notify(responded("b", 300, 30))
        clock.advance(1)
    fleet, loops = throughput.fleet(), throughput.loops()
    # At the second 20.0 the window holds seconds 11 to 19: nine full ones.
    assert (fleet.input_tokens, fleet.output_tokens, fleet.turns) == (8_000, 800, 40)
    assert (fleet.input_tokens_s, fleet.output_tokens_s, fleet.turns_s) == (400, 40, 2)
    assert (loops["a"].input_tokens_s, loops["a"].turns_s) == (100, 1)
    assert loops["b"].tokens_s == 330
    clock.advance(10)
    assert throughput.fleet().tokens_s == 0, "the window has emptied"
    assert throughput.fleet().input_tokens == 8_000


@pytest.mark.req("AG-19")
def test_a_beginning_is_measured_over_the_time_that_there_has_been() -> None:
    window = Window(1_000_000)
    window.add(2_500_000, 100, 50, 1)
    assert window.snapshot(3_000_000).input_tokens_s == 50
    assert window.snapshot(1_000_001).window_s == 1, "never over less than a second"


def test_an_execution_that_has_stopped_is_forgotten_once_its_window_is_empty() -> None:
    clock = VirtualClock()
    throughput = Throughput(clock, window_s=10)
    throughput.notify(responded("a", 1, 1))
    end = Stopped(status="done", code="accepted", kind="accepted")
    throughput.notify(Progress("a", 2, "stopped", end, None, 0))
    assert "a" in throughput.loops()
    clock.advance(11)
    assert throughput.loops() == {}
    assert throughput.fleet().turns == 1


@pytest.mark.req("AG-19")
def test_a_loop_is_counted_as_its_ledger_counts_it(tmp_path: Any) -> None:
    throughput = Throughput(VirtualClock())

    async def test(made: Any) -> None:
        session = await made.start(a_loop(scripted(PLAN, LOOK, DONE)), "Do it.")
        await session.run()
        total = session.state.total
        found = throughput.loops()[session.execution_id]
        assert (found.turns, found.input_tokens) == (total.turns, total.usage.input_tokens)
        assert found.output_tokens == total.usage.output_tokens
        await session.close()

    in_runtime("memory:", tmp_path, test, observers=(throughput,))
