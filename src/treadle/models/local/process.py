"""The local model's server as a child process: started, waited for, and gone when its parent is."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import IO, TYPE_CHECKING

import anyio
from anyio.streams.text import TextReceiveStream

from treadle.core.errors import ConfigurationError

from .weights import model_file

if TYPE_CHECKING:
    from anyio.abc import Process

START_SECONDS = 120.0  # loading takes about two; a busy machine may need far more
STOP_SECONDS = 5.0


@asynccontextmanager
async def local_server(*, threads: int = 1) -> AsyncGenerator[str]:
    """Yields the base URL of a server of its own, which ends with this context or with this process, even a killed one.

    ConfigurationError where its packages are missing or it does not start.
    """
    model_file()
    with tempfile.TemporaryFile() as errors:
        command = [sys.executable, "-m", "treadle.models.local.server", "--end-with-stdin", "--threads", str(threads)]
        process = await anyio.open_process(command, stderr=errors, start_new_session=True)
        try:
            yield await _base_url(process, errors)
        finally:
            await _stop(process)


async def _base_url(process: Process, errors: IO[bytes]) -> str:
    assert process.stdout is not None
    line = ""
    with anyio.move_on_after(START_SECONDS):
        async for text in TextReceiveStream(process.stdout):
            line += text
            if "\n" in line:
                return line.strip()
    errors.seek(0)
    said = errors.read().decode(errors="replace").strip().splitlines()
    raise ConfigurationError(f"The local model did not start: {said[-1] if said else 'it said nothing'}")


async def _stop(process: Process) -> None:
    """Asks it to end by closing its standard input, and sees that it does."""
    with anyio.CancelScope(shield=True):
        if process.stdin is not None:
            await process.stdin.aclose()
        with anyio.move_on_after(STOP_SECONDS):
            await process.wait()
        if process.returncode is None:
            process.kill()
        await process.aclose()
