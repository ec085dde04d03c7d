"""The service put together: routes, problems, pages, and the guard around all of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
from fastapi import FastAPI

from . import pages, problems
from .routes import live, loops, machine, reading, shaping, steering, window
from .security import Access, Guard

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from .studio import Studio

ROUTERS = (live.router, reading.router, steering.router, shaping.router, window.router, machine.router, loops.router)
PROBLEM = {
    "description": "A problem (RFC 9457)",
    "content": {
        problems.MEDIA_TYPE: {
            "schema": {
                "type": "object",
                "required": ["type", "title", "status", "detail"],
                "properties": {
                    "type": {"type": "string"},
                    "title": {"type": "string"},
                    "status": {"type": "integer"},
                    "detail": {"type": "string"},
                },
            }
        }
    },
}


def api(studio: Studio | None = None) -> FastAPI:
    """The application without its guard. Without a studio it can only describe itself."""

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncGenerator[None]:
        if studio is None:
            yield
            return
        async with anyio.create_task_group() as group:
            await group.start(studio.serve)
            yield
            group.cancel_scope.cancel()

    app = FastAPI(
        title="Treadle studio",
        version=version("treadle"),
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=living,
        responses={"4XX": PROBLEM, "5XX": PROBLEM},
    )
    app.state.studio = studio
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    pages.install(app)
    return app


def guarded(studio: Studio, access: Access) -> ASGIApp:
    """What is served: nothing is reached without the right host, origin and token."""
    return Guard(api(studio), access)


def openapi() -> dict[str, Any]:
    """The description that the page's types are generated from."""
    return api().openapi()
