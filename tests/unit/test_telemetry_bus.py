"""The bus: publishing waits for nobody, a slow reader loses the oldest and knows how many, and nobody is woken for nothing."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.driving import DONE, LOOK, PLAN, a_loop, in_runtime, scripted
from treadle.ports.observer import Progress
from treadle.telemetry.bus import Bus, Pump, Ring, Subscription


@pytest.mark.req("AG-19")
@given(size=st.integers(1, 8), steps=st.lists(st.integers(0, 12), max_size=12), lag=st.integers(1, 12))
def test_a_reader_gets_the_newest_in_order_and_the_count_of_what_it_lost(size: int, steps: list[int], lag: int) -> None:
    ring: Ring[int] = Ring(size)
    reader = ring.subscribe(lag=lag)
    published = 0
    got: list[int] = []
    for count in steps:
        for _ in range(count):
            ring.publish(published)
            published += 1
        lost = reader.dropped
        taken = reader.take()
        assert reader.dropped == lost, "it is told before it reads"
        assert taken == list(range(published - len(taken), published))
        assert len(taken) <= min(size, lag)
        got += taken
    assert len(got) + reader.dropped == published
    assert got == sorted(set(got))


@pytest.mark.req("AG-19")
def test_a_subscriber_that_never_reads_costs_the_others_nothing() -> None:
    ring: Ring[int] = Ring(4)
    stalled, quick = ring.subscribe(), ring.subscribe()
    seen: list[int] = []
    for number in range(100):
        ring.publish(number)
        seen += quick.take()
    assert seen == list(range(100))
    assert (quick.dropped, stalled.dropped) == (0, 96)
    assert stalled.take() == [96, 97, 98, 99]


@pytest.mark.req("AG-19")
def test_what_comes_before_a_subscription_and_after_the_end_is_not_heard() -> None:
    ring: Ring[int] = Ring(8)
    ring.publish(1)
    reader = ring.subscribe()
    ring.publish(2)
    ring.close()
    ring.publish(3)
    assert reader.take() == [2]
    assert not reader.wait()


def test_a_task_waits_for_events_from_a_thread_and_ends_with_the_ring() -> None:
    ring: Ring[int] = Ring(1_000)

    def publish(asleep: Any) -> None:
        anyio.from_thread.run(asleep.wait)
        for number in range(500):
            ring.publish(number)
        ring.close()

    async def main() -> list[int]:
        seen: list[int] = []
        asleep = anyio.Event()
        reader = ring.subscribe()

        async def read() -> None:
            asleep.set()
            async for batch in reader.batches():
                seen.extend(batch)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.to_thread.run_sync, publish, asleep)
                group.start_soon(read)
        return seen

    assert anyio.run(main) == list(range(500))


def test_a_reader_that_is_cancelled_while_it_waits_is_forgotten() -> None:
    async def main() -> None:
        ring: Ring[int] = Ring(4)
        reader = ring.subscribe()
        with anyio.move_on_after(0):
            async for _ in reader.batches():
                raise AssertionError("nothing was published")
        assert ring._asleep == []
        ring.publish(1)
        assert reader.take() == [1]

    anyio.run(main)


def test_a_sink_that_raises_is_counted_and_goes_on() -> None:
    seen: list[int] = []
    done = threading.Event()

    def sink(number: int) -> None:
        seen.append(number)
        if number == 2:
            done.set()
        raise RuntimeError("sink")

    ring: Ring[int] = Ring()
    pump = Pump(ring, sink)
    for number in range(3):
        ring.publish(number)
    assert done.wait(20)
    ring.close()
    pump.join()
    assert (seen, pump.errors, pump.dropped) == ([0, 1, 2], 3, 0)


@pytest.mark.req("AG-19")
def test_every_record_of_a_loop_passes_over_the_bus(tmp_path: Any) -> None:
    bus = Bus()
    reader: Subscription[Progress] = bus.subscribe()

    async def test(made: Any) -> None:
        session = await made.start(a_loop(scripted(PLAN, LOOK, DONE)), "Do it.")
        await session.run()
        records = await made.ledger.records(session.execution_id)
        told = reader.take()
        assert [one.seq for one in told if one.seq] == [record.seq for record in records]
        assert {one.execution_id for one in told} == {session.execution_id}
        assert "tool.started" in {one.kind for one in told}
        await session.close()

    in_runtime("memory:", tmp_path, test, observers=(bus,))


def test_models_stream_only_while_somebody_reads_text(tmp_path: Any) -> None:
    bus = Bus()
    reader = bus.subscribe()

    async def test(made: Any) -> None:
        for wanted in (False, True):
            session = await made.start(a_loop(scripted(PLAN, DONE)), "Do it.")
            if wanted:
                with bus.reading_text():
                    await session.run()
            else:
                await session.run()
            assert ("text.delta" in {one.kind for one in reader.take()}) is wanted
            await session.close()

    in_runtime("memory:", tmp_path, test, observers=(bus,))
