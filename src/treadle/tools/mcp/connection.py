"""One server's connection: a task of its own from open to close, today's tools, and a new connection where the old one has died."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, cast

import anyio

from treadle.core.errors import ConfigurationError, ToolError
from treadle.core.redaction import secrets_of

from .definitions import MOST_TOOLS, Offer, offered
from .pipes import Link, piped
from .servers import MCPServer, expanded

if TYPE_CHECKING:
    from mcp.client import Client, IncomingMessage
    from mcp.client._transport import TransportStreams
    from mcp_types import CallToolResult, Tool

_MOST_PAGES = 100
_REST_S = 0.5  # between two looks at a list that keeps changing


class Disconnected(Exception):
    """The connection ended before the answer came. `sent`: the request may have reached the server."""

    def __init__(self, message: str, *, sent: bool) -> None:
        self.sent = sent
        super().__init__(message)


class Connection:
    """Connects on `open`. `offer` is what the server offers now; it changes when the server says so."""

    def __init__(self, server: MCPServer, environ: Mapping[str, str], workspace: str) -> None:
        self.server = server
        self._environ, self._workspace = environ, workspace
        self.offer = Offer((), {}, ())
        self._client: Client | None = None
        self._link = Link()
        self._task: asyncio.Task[None] | None = None
        self._closing = anyio.Event()
        self._changed = anyio.Event()
        self._reopening = anyio.Lock()

    async def open(self) -> None:
        """ConfigurationError where the server cannot be started, does not answer in time, or answers nonsense."""
        _check_installed(self.server.name)
        self._closing, self._changed, self._link = anyio.Event(), anyio.Event(), Link()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(ready), name=f"mcp {self.server.name}")
        try:
            with anyio.fail_after(self.server.connect_timeout_s):
                await asyncio.shield(ready)
        except TimeoutError:
            await self.close()
            raise self._unusable(f"did not answer within {self.server.connect_timeout_s:g} s") from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Ends the connection, and the server where it is a process of ours."""
        task, self._task, self._client = self._task, None, None
        if task is None:
            return
        self._closing.set()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task], timeout=5.0)
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    @property
    def alive(self) -> bool:
        """Whether a call can be made without connecting anew, as far as one can know."""
        return self._client is not None and not self._link.ended and self._task is not None and not self._task.done()

    async def revive(self) -> None:
        """Connects anew, once. ToolError where that fails."""
        async with self._reopening:
            if self.alive:
                return
            await self.close()
            try:
                await self.open()
            except ConfigurationError as error:
                text = f"the connection has ended and cannot be made anew: {error}"
                raise ToolError("execution", text, hint="Do without this server's tools for now.") from error

    async def call(self, tool: str, args: dict[str, Any]) -> CallToolResult:
        """One request. Disconnected; ToolError("timeout"); MCPError, RuntimeError and pydantic.ValidationError as the SDK raises them."""
        client = self._client
        if client is None or not self.alive:
            raise Disconnected(self._state("is not connected"), sent=False)
        seconds = self.server.call_timeout_s
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        try:
            with anyio.fail_after(seconds):
                return await client.call_tool(tool, args)
        except TimeoutError:
            self._link.ended = bool(self.server.command)  # it may hang for ever: the next call finds a new one
            hint = "The call may have happened all the same: look before you repeat it."
            text = f"{self.server.name} did not answer within {seconds:g} s"
            raise ToolError("timeout", text, hint=hint, transient=False) from None
        except MCPError as error:
            if error.code == CONNECTION_CLOSED or self._link.ended or error.message == "Session terminated":
                self._link.ended = True
                raise Disconnected(self._state("ended the connection"), sent=True) from error
            raise
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self._link.ended = True
            raise Disconnected(self._state("ended the connection"), sent=True) from error

    # ---- the life of it

    async def _live(self, ready: asyncio.Future[None]) -> None:
        """From handshake to close, in one task, as the SDK's scopes require."""
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._client_of(await self._transport(stack)))
                self.offer = offered(self.server, await _listed(client))
                self._client = client
                for line in self.offer.left_out:
                    logging.getLogger(__name__).warning(
                        "A tool of the MCP server %s is left out: %s", self.server.name, line
                    )
                ready.set_result(None)
                async with anyio.create_task_group() as group:
                    group.start_soon(self._subscribe, client)
                    group.start_soon(self._refresh, client)
                    await self._closing.wait()
                    group.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - whatever the SDK, the transport or the server does: it is told to whoever asks
            if not ready.done():
                ready.set_exception(self._unusable(_words(error)))
        finally:
            self._client = None
            self._link.ended = True
            if not ready.done():
                ready.set_exception(self._unusable("was given up"))
            ready.exception()  # seen, whoever waits for it

    def _client_of(self, transport: AbstractAsyncContextManager[TransportStreams]) -> Client:
        from importlib.metadata import version

        from mcp.client import Client
        from mcp_types import Implementation

        return Client(
            transport,
            mode="auto",
            cache=None,
            read_timeout_seconds=self.server.connect_timeout_s,
            message_handler=self._on_message,
            client_info=Implementation(name="treadle", version=version("treadle")),
        )

    async def _transport(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[TransportStreams]:
        def value(text: str) -> str:
            return expanded(self.server.name, text, self._environ)

        if self.server.command:
            secret = set(secrets_of(self._environ))  # a server is given a secret only by name
            inherited = {name: text for name, text in self._environ.items() if text not in secret}
            env = inherited | {name: value(text) for name, text in self.server.env.items()}
            argv = tuple(value(word) for word in self.server.command)
            return piped(argv, self.server.cwd or self._workspace, env, self._link)
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {name: value(text) for name, text in self.server.headers.items()}
        patience = httpx2.Timeout(self.server.connect_timeout_s, read=self.server.call_timeout_s + 5)
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=patience))
        return streamable_http_client(value(self.server.url), http_client=http)

    async def _on_message(self, message: IncomingMessage) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._changed.set()

    async def _subscribe(self, client: Client) -> None:
        """Protocol versions since 2026-07-28 tell of changes only to those who have asked."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._changed.set()
        except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            return  # an older protocol tells unasked; a lost subscription costs freshness, no more

    async def _refresh(self, client: Client) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            try:
                with anyio.fail_after(self.server.connect_timeout_s):
                    self.offer = offered(self.server, await _listed(client))
            except Exception as error:  # noqa: BLE001 - the old list stands; a dead connection shows at the next call
                logging.getLogger(__name__).warning("The MCP server %s: %s", self.server.name, _words(error))
            await anyio.sleep(_REST_S)

    def _unusable(self, what: str) -> ConfigurationError:
        return ConfigurationError(f"{self._state(what)} Check its command or URL (--mcp, --mcp-config).")

    def _state(self, what: str) -> str:
        fault = f": {self._link.fault}" if self._link.fault else ""
        words = f" It last said: {self._link.last_words}" if self._link.last_words else ""
        return f"The MCP server {self.server.name} {what}{fault}.{words}"


async def _listed(client: Client) -> list[Tool]:
    """All pages. ValueError for a list that does not end."""
    if client.server_capabilities.tools is None:
        return []
    found: list[Tool] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor or len(found) > 2 * MOST_TOOLS:
            return found
        if cursor in seen:
            break
        seen.add(cursor)
    raise ValueError("its list of tools does not end")


def _words(error: BaseException) -> str:
    """What happened, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, OSError) and error.filename:
        return f"cannot be started: {error.filename}: {error.strerror}"
    if isinstance(error, ConfigurationError):
        return f"is not fully configured: {error}"
    text = str(error).strip().split("\n")[0][:300]
    return f"cannot be used: {text or type(error).__name__}"


def _check_installed(name: str) -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise ConfigurationError(f"The MCP server {name} needs the extra mcp: pip install 'treadle[mcp]'")
    logger = logging.getLogger("mcp")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # the SDK tells of every odd message; without this that goes to stderr
