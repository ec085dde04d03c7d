"""--notify: tells a command or an address that an execution waits, pauses or has ended (SV-07); it changes no outcome."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any

import anyio

from treadle.app.listing import document_of
from treadle.core import events as ev
from treadle.core.errors import ConfigurationError
from treadle.core.spoken import one_line
from treadle.core.workflow_events import QuotaPaused
from treadle.ports.observer import Observer, Progress
from treadle.runtime.document import to_json

from .output import warn
from .values import text

TIMEOUT_S = 10.0
MOST_WAITING = 16


class Notifier(Observer):
    """Sends documents to one target. As an observer it notices a pause that this process waits out itself."""

    hears_children = False

    def __init__(self, target: str, environ: Mapping[str, str]) -> None:
        self._target, self._environ = target, environ
        self._send, self._receive = anyio.create_memory_object_stream[dict[str, Any]](MOST_WAITING)

    def notify(self, progress: Progress) -> None:
        """Queues a document where it pauses and this process goes on."""
        data = progress.data
        if isinstance(data, QuotaPaused) or (isinstance(data, ev.Suspended) and data.kind == "quota"):
            try:
                self._send.send_nowait(document_of(progress.execution_id, progress.state))
            except anyio.WouldBlock:
                warn("a notification was left out: the ones before it have not got through yet")

    async def serve(self) -> None:
        """Sends what is noticed while the loop runs, until it is cancelled."""
        async for found in self._receive:
            await self.send(found)

    async def send(self, found: dict[str, Any]) -> None:
        """Sends one document; a failure is told on stderr."""
        body = to_json(found)
        try:
            with anyio.fail_after(TIMEOUT_S):
                if is_address(self._target):
                    await self._post(body)
                else:
                    await self._run(found, body)
        except TimeoutError:
            warn(f"--notify: no answer within {TIMEOUT_S:g} s")
        except OSError as error:
            warn(f"--notify: {error}")

    async def _post(self, body: bytes) -> None:
        import httpx

        try:
            async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
                answer = await client.post(self._target, content=body, headers={"content-type": "application/json"})
        except httpx.HTTPError as error:
            warn(f"--notify: {type(error).__name__}: {one_line(str(error))}")
            return
        if answer.is_error:
            warn(f"--notify: the address answered {answer.status_code}")

    async def _run(self, found: dict[str, Any], body: bytes) -> None:
        env = {
            **self._environ,
            "TREADLE_EXECUTION_ID": str(found["execution_id"]),
            "TREADLE_STATUS": str(found["status"]),
            "TREADLE_CODE": str(found["code"]),
        }
        with tempfile.TemporaryFile() as stdin:  # not a pipe: a command may well leave it unread
            stdin.write(body)
            stdin.seek(0)
            shell = ["/bin/sh", "-c", self._target]
            ended = await anyio.run_process(shell, stdin=stdin, stdout=subprocess.DEVNULL, env=env, check=False)
        if ended.returncode:
            warn(f"--notify: exit {ended.returncode}: {one_line(ended.stderr.decode(errors='replace'))}")

    def close(self) -> None:
        """No more will be noticed."""
        self._send.close()
        self._receive.close()


def is_address(target: str) -> bool:
    """Whether it is posted to, and not run."""
    return target.startswith(("http://", "https://"))


def notifier(target: Any, environ: Mapping[str, str]) -> Notifier | None:
    """None where there is no target. ConfigurationError for what cannot be one."""
    if target is None:
        return None
    if not text("notify", target).strip():
        raise ConfigurationError(
            "--notify is empty: name a command, or an address that begins with http:// or https://."
        )
    return Notifier(target, environ)
