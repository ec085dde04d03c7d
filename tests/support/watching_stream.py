"""A viewer of the live stream, in this process."""

from __future__ import annotations

import json
import re
from typing import Any

import anyio

from treadle.server.feed import Feed
from treadle.server.stream import cursor, frames


async def read(feed: Feed, last: str | None, count: int) -> tuple[list[Any], str, bool]:
    """(events, the last id, whether there was a gap) of one connection."""
    seen, gap = cursor(feed, last)
    found: list[Any] = []
    gaps = False
    with anyio.fail_after(20):
        async for frame in frames(feed, seen, gap=gap):
            gaps |= frame.startswith(b"event: gap")
            if match := re.search(rb"^id: (\d+)", frame, re.MULTILINE):
                last = match[1].decode()
            if match := re.search(rb"^data: (\[.*\])$", frame, re.MULTILINE):
                found += json.loads(match[1])
            if len(found) >= count:
                break
    return found, last or "", gaps
