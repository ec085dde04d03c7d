"""The studio's service in this process, on a store and a scripted endpoint of its own, asked over ASGI."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import httpx

from treadle.app.observing import Bus
from treadle.app.runtime import Runtime
from treadle.app.stores import open_store
from treadle.cli.loopfile import define
from treadle.ports.clock import NO_CRASH_POINTS, Clock
from treadle.server.asgi import guarded
from treadle.server.feed import Feed
from treadle.server.follower import Follower
from treadle.server.security import Access
from treadle.server.sinks import Switchboard
from treadle.server.studio import Studio
from treadle.settings import load_settings
from treadle.testing import ScriptedEndpoint
from treadle.testing.script import Script

START = 1_000_000
ENDED = ("done", "failed", "stopped", "rejected", "cancelled", "paused", "waiting-input")


class Served:
    """A client with the token, and what stands behind it."""

    def __init__(self, studio: Studio, access: Access, endpoint: ScriptedEndpoint, client: httpx.AsyncClient) -> None:
        self.studio, self.access, self.endpoint, self.client = studio, access, endpoint, client

    async def get(self, path: str, **more: Any) -> Any:
        """The JSON of an address that is there."""
        found = await self.client.get(path, **more)
        assert found.status_code == 200, found.text
        return found.json()

    async def post(self, path: str, body: dict[str, Any], *, key: str | None = None) -> httpx.Response:
        """A write, with a new key where none is given."""
        return await self.client.post(path, json=body, headers={"Idempotency-Key": key or uuid4().hex})

    async def start(self, text: str, task: str = "do it", *, key: str | None = None) -> str:
        """A loop file is started; its execution's id."""
        found = await self.post("/api/executions", {"text": text, "task": task}, key=key)
        assert found.status_code == 201, found.text
        return found.json()["execution_id"]

    async def rest(self, execution_id: str) -> dict[str, Any]:
        """Waits until it rests; what is known of it then."""
        with anyio.fail_after(60):
            while True:
                found = await self.get(f"/api/executions/{execution_id}")
                if found["live"]["status"] in ENDED and not found["here"]:
                    return found
                await anyio.sleep(0.01)

    def loop(self, more: str = "") -> str:
        """A loop file on the scripted endpoint."""
        return (
            "treadle: 1\nname: test\n"
            f"foundation: {{model: 'openai:scripted', base_url: '{self.endpoint.url}', price: '1,4'}}\n{more}"
        )


@asynccontextmanager
async def served(
    tmp_path: Path, script: Script, *, clock: Clock | None = None, port: int = 8765, store: str = ""
) -> AsyncGenerator[Served]:
    """The service, alive. `port`: where somebody serves it besides; `store`: another one than its own file."""
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    environ = {
        "TREADLE_STATE": str(tmp_path / "state"),
        "TREADLE_CONFIG": str(tmp_path / "none.toml"),
        "PATH": "/usr/bin:/bin",
    }
    settings = load_settings(workspace, environ)
    bus = Bus()
    with ScriptedEndpoint(script) as endpoint:
        ledger = await open_store(store or f"sqlite:///{tmp_path / 't.db'}", NO_CRASH_POINTS)
        board = Switchboard(settings)
        runtime = Runtime(ledger, settings, clock=clock, observers=(bus, board))
        follower = Follower(ledger, bus, Feed(start=START))
        studio = Studio(
            runtime,
            follower,
            workspace=workspace,
            actor="ada",
            define=lambda file: define(file, {}, settings.defaults, workspace),
            notes=print,
            sinks=board,
        )
        access = Access("127.0.0.1", port, "a-token")
        transport = httpx.ASGITransport(guarded(studio, access), raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {access.token}"}
        try:
            async with (
                httpx.AsyncClient(transport=transport, base_url=access.origin, headers=headers) as client,
                anyio.create_task_group() as group,
            ):
                await group.start(studio.serve)
                yield Served(studio, access, endpoint, client)
                group.cancel_scope.cancel()
        finally:
            board.close()
            await ledger.close()


def in_studio(tmp_path: Path, script: Script, test: Callable[[Served], Awaitable[None]]) -> None:
    """Runs an async test against the service."""

    async def run() -> None:
        async with served(tmp_path, script) as it:
            await test(it)

    anyio.run(partial(run))
