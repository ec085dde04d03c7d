"""Case 50: a reconnecting client lost or repeated events. The stream has a cursor: whoever comes back gets the rest."""

import json
import re

import anyio
import pytest

from treadle.server.feed import Feed
from treadle.server.stream import cursor, frames

START = 1_000


async def some(feed: Feed, last: str | None, count: int) -> tuple[list[int], str]:
    """The next events of one connection, and the id that it breaks off at."""
    found: list[int] = []
    seen, gap = cursor(feed, last)
    assert not gap
    async for frame in frames(feed, seen, gap=gap):
        if match := re.search(rb"^id: (\d+)", frame, re.MULTILINE):
            last = match[1].decode()
        if match := re.search(rb"^data: (\[.*\])$", frame, re.MULTILINE):
            found += json.loads(match[1])
        if len(found) >= count:
            break
    return found, last or ""


@pytest.mark.parametrize("each", [1, 7, 50])
def test_over_many_reconnections_each_event_comes_once_and_in_order(each: int) -> None:
    async def test() -> None:
        feed = Feed(start=START)
        seen: list[int] = []
        last = str(START)
        with anyio.fail_after(20):
            for number in range(0, 100, each):
                for event in range(number, min(number + each, 100)):
                    feed.publish("a", b"%d" % event)
                found, last = await some(feed, last, 1)
                seen += found
        assert seen == list(range(100))

    anyio.run(test)
