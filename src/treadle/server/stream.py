"""Server-sent events from the feed: JSON arrays in batches, resumed by Last-Event-ID, with a gap said plainly (SV-04)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import anyio

from .feed import Feed
from .problems import Problem

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

BATCH_S = 0.008  # half of it is what an event waits at a high rate; a quiet stream sends each at once
BATCH_EVENTS = 2_000
HEARTBEAT_S = 10.0
MOST_DIGITS = 18
SEND_TIMEOUT_S = 5.0  # a viewer that takes nothing for so long is dropped; it comes back by Last-Event-ID


def cursor(feed: Feed, last_event_id: str | None) -> tuple[int, bool]:
    """(where the viewer goes on, whether it has missed something). A new viewer begins now.

    Problem 400 for what cannot be the number of an event; one of another time is a gap.
    """
    if not last_event_id:
        return feed.last, False
    if not last_event_id.isascii() or not last_event_id.isdigit() or len(last_event_id) > MOST_DIGITS:
        said = f"Last-Event-ID {last_event_id!r:.60} is no number of an event. Send the id of the last one that was seen, or none."
        raise Problem(400, "invalid-last-event-id", said)
    seen = int(last_event_id)
    return (feed.last, True) if feed.has_gap(seen) else (seen, False)


async def frames(feed: Feed, seen: int, *, gap: bool, execution_id: str = "") -> AsyncIterator[bytes]:
    """The text of the stream. `execution_id`: only its events; ids go on for all, so that a resume skips nothing."""
    yield b"retry: 1000\n\n"
    yield _gap(seen) if gap else b"event: hello\nid: %d\ndata: {}\n\n" % seen
    while True:
        with anyio.move_on_after(HEARTBEAT_S) as quiet:
            await feed.wait(seen)
        if feed.closed:
            return
        if quiet.cancelled_caught:
            yield b": still here\n\n"
            continue
        if feed.has_gap(seen):
            seen = feed.last
            yield _gap(seen)
            continue
        found = feed.after(seen, limit=BATCH_EVENTS)
        seen += len(found)
        bodies = [one.body for one in found if execution_id in ("", one.execution_id)]
        if bodies:
            yield b"id: %d\ndata: [%b]\n\n" % (seen, b",".join(bodies))
        if len(found) < BATCH_EVENTS:
            await anyio.sleep(BATCH_S)


def _gap(seen: int) -> bytes:
    return b'event: gap\nid: %d\ndata: {"last": %d}\n\n' % (seen, seen)


class EventStream:
    """The response as an ASGI application: each send has a deadline, so a frozen viewer holds nothing for long."""

    def __init__(self, chunks: AsyncIterator[bytes], *, send_timeout_s: float = SEND_TIMEOUT_S) -> None:
        self._chunks, self._timeout_s = chunks, send_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Until the viewer has gone or stands still."""
        async with anyio.create_task_group() as group:

            async def gone() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(gone)
            with anyio.move_on_after(self._timeout_s) as head:
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if not head.cancelled_caught:
                await self._send_all(send)
            group.cancel_scope.cancel()

    async def _send_all(self, send: Send) -> None:
        async for chunk in self._chunks:
            with anyio.move_on_after(self._timeout_s) as sending:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if sending.cancelled_caught:
                return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
