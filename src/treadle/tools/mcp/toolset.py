"""The tools of one MCP server as a toolset (AG-24)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from treadle.core.errors import ToolError
from treadle.core.messages import ToolCall
from treadle.ports.model import ToolDef
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset

from .connection import Connection, Disconnected
from .results import answer, failure
from .servers import MCPServer


class MCPTools(Toolset):
    """A server's tools, as `server__tool`. Connects on `open`, which several loops may share; the last `close` ends it.

    A connection that has died is made anew once for a call. What had been sent by then is sent again only where the call
    changes nothing; of any other the outcome is unknown, and the model is told so.
    """

    def __init__(self, server: MCPServer, environ: Mapping[str, str], workspace: str) -> None:
        self.server = server
        self._connection = Connection(server, environ, workspace)
        self._users = 0

    def tools(self) -> tuple[ToolDef, ...]:
        return self._connection.offer.tools

    def identity(self) -> list[Any]:
        return [self.server.identity()]

    def touches(self, call: ToolCall) -> tuple[str, ...]:
        name, host = self.server.name, urlsplit(self.server.url).hostname
        tool = f"mcp.{name} {call.name.removeprefix(f'{name}__')}"
        outside = (f"external.mutation {call.name}",) if call.kind == "mutating" else ()
        return (tool, *outside, *((f"network.request {host}",) if host else ()))

    async def open(self) -> None:
        if self._users == 0:
            await self._connection.open()
        self._users += 1

    async def close(self) -> None:
        self._users = max(0, self._users - 1)
        if self._users == 0:
            await self._connection.close()

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        try:
            return await self._run(call)
        except Disconnected as error:
            if error.sent and call.kind not in ("read", "idempotent"):
                raise ToolError(
                    "execution",
                    f"outcome unknown: {error}",
                    hint="It may have happened or not: look before you repeat it.",
                ) from error
        await self._connection.revive()
        try:
            return await self._run(call)
        except Disconnected as error:
            raise ToolError(
                "execution", f"twice in a row: {error}", hint="Do without this server's tools for now."
            ) from error

    async def _run(self, call: ToolCall) -> ToolOutput:
        original = self._connection.offer.originals.get(call.name)
        if original is None:
            raise ToolError(
                "not-found",
                f"the MCP server {self.server.name} no longer has the tool {call.name}",
                hint="Use the tools that are offered now.",
            )
        from mcp import MCPError
        from pydantic import ValidationError

        name = self.server.name
        try:
            result = await self._connection.call(original, cast("dict[str, Any]", call.args))
        except MCPError as error:
            raise failure(name, error) from error
        except (
            ValidationError,
            RuntimeError,
        ) as error:  # an answer that is not what the protocol or its own schema says
            text = f"the MCP server {name} answered what it must not: {str(error)[:500]}"
            raise ToolError("execution", text, hint="Do not rely on this tool's results.") from error
        return ToolOutput(answer(name, result))
