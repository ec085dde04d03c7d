"""The event stream, and what a page asks first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from treadle.core.errors import InputError
from treadle.server import schemas
from treadle.server.follower import Follower
from treadle.server.stream import EventStream, cursor, frames
from treadle.server.wire import LogEvent

from .parts import TheStudio

router = APIRouter(prefix="/api", tags=["studio"])


@router.get("/health")
async def health() -> schemas.HealthOut:
    """That it lives; needs no token."""
    return schemas.HealthOut(status="ok", version=version("treadle"))


@router.get("/studio")
async def studio(studio: TheStudio) -> schemas.StudioOut:
    """Where it works."""
    return schemas.StudioOut(
        version=version("treadle"),
        store=studio.ledger.url,
        workspace=str(studio.workspace),
        actor=studio.actor,
        example=studio.example,
    )


@router.get("/sinks")
async def sinks(studio: TheStudio) -> list[schemas.SinkOut]:
    """Where the service tells what happens, besides the ledger and this page."""
    found = studio.sinks.satellites() if studio.sinks else []
    return [schemas.SinkOut(name=one.name, where=one.where, attached=one.attached) for one in found]


@router.put("/sinks/{name}")
async def set_sink(studio: TheStudio, name: str, body: schemas.SinkIn) -> list[schemas.SinkOut]:
    """Attaches or detaches a sink for all loops of this process. Saying the same twice changes nothing, so it needs no key."""
    if studio.sinks is None:
        raise InputError("This service has no sinks.")
    (studio.sinks.attach if body.attached else studio.sinks.detach)(name)
    return await sinks(studio)


class _Streamed(Response):
    """Server-sent events as a response."""

    media_type = "text/event-stream"

    def __init__(self, stream: EventStream, status_code: int = 200) -> None:
        super().__init__(status_code=status_code)
        self._stream = stream

    async def __call__(self, scope: object, receive: object, send: object) -> None:
        await self._stream(scope, receive, send)  # type: ignore[arg-type]


@router.get(
    "/events",
    response_class=_Streamed,
    responses={200: {"model": list[LogEvent], "description": "server-sent events; each data is such a list"}},
)
async def events(
    studio: TheStudio,
    execution: Annotated[str, Query(max_length=200, description="only this one's")] = "",
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """What happens, in batches. A resumed stream (Last-Event-ID) repeats and loses nothing, or says `event: gap`."""
    feed = studio.follower.feed
    seen, gap = cursor(feed, last_event_id)
    chunks = frames(feed, seen, gap=gap, execution_id=execution)
    return _Streamed(EventStream(_watched(studio.follower, chunks)))


async def _watched(follower: Follower, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Models stream their text while somebody watches."""
    with follower.viewing():
        async for chunk in chunks:
            yield chunk
