"""The live stream: nothing twice, nothing lost, a gap said plainly, and nobody who stands still disturbs the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from support.driving import DONE, LOOK, PLAN, a_loop, scripted
from support.studio import START, Served, in_studio
from support.watching_stream import read
from treadle.app.runtime import Runtime
from treadle.app.stores import open_store
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.server.feed import Feed
from treadle.server.stream import EventStream, cursor, frames
from treadle.testing import Turn

ENDS = Turn(text="done", calls=(("finish", {"summary": "did it"}),))


@pytest.mark.req("SV-04", "CV-22")
def test_a_viewer_that_comes_back_goes_on_where_it_was() -> None:
    async def test() -> None:
        feed = Feed(start=START)
        for number in range(100):
            feed.publish("a", b"%d" % number)
        first, last, _ = await read(feed, str(START), 100)
        for number in range(100, 200):
            feed.publish("a", b"%d" % number)
        second, _, gap = await read(feed, last, 100)
        assert first + second == list(range(200))
        assert not gap

    anyio.run(test)


@pytest.mark.req("SV-04")
@pytest.mark.parametrize("last", [str(START), str(START + 99_999), "5"])
def test_a_viewer_from_another_time_is_told_of_the_gap(last: str) -> None:
    async def test() -> None:
        feed = Feed(start=START, capacity=16)
        for number in range(100):
            feed.publish("a", b"%d" % number)
        seen, gap = cursor(feed, last)
        assert (seen, gap) == (START + 100, True)
        assert cursor(feed, None) == (START + 100, False)
        assert cursor(feed, str(START + 90)) == (START + 90, False)

    anyio.run(test)


@pytest.mark.req("SV-04")
@pytest.mark.parametrize("last", ["nonsense", "-5", "1.5", "9" * 19, "\u0663"])
def test_what_is_no_number_of_an_event_is_refused_by_name(tmp_path: Path, last: str) -> None:
    async def test(it: Served) -> None:
        found = await it.client.get("/api/events", headers={"last-event-id": last.encode()})
        assert (found.status_code, found.json()["type"]) == (400, "urn:treadle:invalid-last-event-id")
        assert found.headers["content-type"] == "application/problem+json"

    in_studio(tmp_path, [], test)


@pytest.mark.req("CV-22", "AG-19")
def test_ten_thousand_events_reach_a_viewer_that_comes_and_goes_beside_twenty_that_stand_still() -> None:
    async def test() -> None:
        feed = Feed(start=START)
        dropped: list[int] = []

        async def frozen(number: int) -> None:
            async def send(message: Any) -> None:
                if message["type"] == "http.response.body":
                    await anyio.sleep_forever()

            async def receive() -> Any:
                await anyio.sleep_forever()

            stream = EventStream(frames(feed, START, gap=False), send_timeout_s=0.05)
            await stream({}, receive, send)
            dropped.append(number)

        async def happen() -> None:
            for number in range(10_000):
                feed.publish("a", b"%d" % number)
                if number % 100 == 99:
                    await anyio.lowlevel.checkpoint()

        found: list[Any] = []
        last, gaps = str(START), False
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(frozen, number)
            group.start_soon(happen)
            while len(found) < 10_000:
                some, last, gap = await read(feed, last, 1)
                found += some
                gaps |= gap
        assert found == list(range(10_000))
        assert not gaps
        assert len(dropped) == 20

    anyio.run(test)


@pytest.mark.req("CV-22")
def test_a_loop_of_this_service_is_on_the_stream_record_by_record(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name = await it.start(it.loop("verify: {check: 'true'}\n"))
        head = (await it.rest(name))["head"]
        found, _, gap = await read(it.studio.follower.feed, str(START), head)
        assert [one["seq"] for one in found if one["seq"]] == list(range(1, head + 1))
        assert {one["execution_id"] for one in found} == {name}
        assert found[-1]["state"]["status"] == "done"
        assert not gap

    in_studio(tmp_path, [ENDS], test)


@pytest.mark.req("CV-22", "CV-24")
def test_a_loop_of_another_owner_is_on_the_stream_from_the_ledger_alone(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        ledger = await open_store(it.studio.ledger.url, NO_CRASH_POINTS)
        runtime = Runtime(ledger, it.studio.runtime.settings)
        session = await runtime.start(a_loop(scripted(PLAN, LOOK, DONE)), "elsewhere")
        await session.run()
        await session.close()
        await ledger.close()
        head = session.state.seq
        found, _, _ = await read(it.studio.follower.feed, str(START), head)
        assert [one["seq"] for one in found] == list(range(1, head + 1))
        assert found[-1]["state"]["status"] == session.state.status

    in_studio(tmp_path, [], test)


@pytest.mark.req("SV-04", "CV-22")
def test_a_stream_of_one_execution_has_its_events_alone_and_a_viewer_that_falls_behind_is_told() -> None:
    async def test() -> None:
        feed = Feed(start=START, capacity=16)
        stream = frames(feed, START, gap=False, execution_id="a")
        await anext(stream)
        assert b"event: hello" in await anext(stream)
        feed.publish("b", b"1")
        feed.publish("a", b"2")
        assert await anext(stream) == b"id: %d\ndata: [2]\n\n" % (START + 2)
        for number in range(100):
            feed.publish("a", b"%d" % number)
        assert (await anext(stream)).startswith(b"event: gap\nid: %d\n" % (START + 102))

    anyio.run(test)
