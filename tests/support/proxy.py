"""A TCP proxy that can hold everything back, as a cut cable does, or break every connection."""

from __future__ import annotations

import asyncio
import contextlib


class CuttingProxy:
    """Listens at `host` on a port of its own, and forwards to a port, or a socket file, of this machine."""

    def __init__(self, to: int | str, host: str = "127.0.0.1") -> None:
        self.to, self.host, self.port = to, host, 0
        self._open = asyncio.Event()
        self._open.set()
        self._server: asyncio.Server
        self._pumps: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self.host, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Nothing passes in either direction; nobody is told."""
        self._open.clear()

    def heal(self) -> None:
        self._open.set()

    def reset(self) -> None:
        """Every connection breaks."""
        for pump in self._pumps:
            pump.cancel()

    async def close(self) -> None:
        self._server.close()
        self.heal()
        self.reset()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pumps.add(task)
        there: asyncio.StreamWriter | None = None
        try:
            await self._open.wait()
            if isinstance(self.to, str):
                back, there = await asyncio.open_unix_connection(self.to)
            else:
                back, there = await asyncio.open_connection("127.0.0.1", self.to)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, there))
                group.create_task(self._pump(back, writer))
        except (OSError, asyncio.CancelledError, ExceptionGroup):
            pass  # either end has gone: so does the other
        finally:
            self._pumps.discard(task)
            for one in (writer, there):
                if one is not None:
                    one.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            await self._open.wait()
            writer.write(data)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()
        raise ConnectionResetError
