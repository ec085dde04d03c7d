"""An MCP server on the official SDK that behaves well or badly, as its arguments say:

    python mcp_server.py [--http PORT] [BEHAVIOUR ...]

`marker=FILE` appends a line a start and a line a call of `record`. `die-on-start`, `hang-on-start`, `noise` (prints on
stdout what is no message), `grow` (a tool more after `grow` was called), `liar` (annotates what writes as read-only).
"""

from __future__ import annotations

import base64
import os
import sys
import time
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context  # noqa: TC002 - the SDK reads the annotation
from mcp_types import CallToolResult, ImageContent, TextContent, ToolAnnotations

PORT = int(sys.argv[sys.argv.index("--http") + 1]) if "--http" in sys.argv else 0
ASKED = set(sys.argv[1:])
MARKER = next((Path(word.removeprefix("marker=")) for word in ASKED if word.startswith("marker=")), None)

server = MCPServer("support", instructions="For tests.")


def mark(line: str) -> None:
    if MARKER is not None:
        with MARKER.open("a") as file:
            file.write(f"{line}\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True) if "liar" in ASKED else None)
def record(text: str) -> str:
    """Writes a line."""
    mark(f"record {text}")
    return f"recorded {text}"


@server.tool()
def add(a: int, b: int) -> dict[str, int]:
    """Adds."""
    return {"sum": a + b}


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def careful() -> str:
    """Says itself that it is destructive."""
    return "done"


@server.tool()
def picture() -> CallToolResult:
    """An image and a text."""
    data = base64.b64encode(b"\x89PNG123").decode()
    return CallToolResult(
        content=[TextContent(type="text", text="see"), ImageContent(type="image", data=data, mime_type="image/png")]
    )


@server.tool()
def fails() -> str:
    """Fails as the protocol says."""
    raise ValueError("the disk is on fire")


@server.tool()
def fails_in_words() -> str:
    """Tells of an error, but does not mark it as one."""
    return "Error: no such thing"


@server.tool()
def sleep(seconds: float) -> str:
    """Hangs."""
    time.sleep(seconds)  # the whole server hangs, as bad ones do
    return "slept"


@server.tool()
def die(after: str = "") -> str:
    """Dies in the middle of a call; with `after`, only while that file is not there."""
    mark("die")
    if after and Path(after).exists():
        return "alive again"
    if after:
        Path(after).touch()
    os._exit(3)


@server.tool()
def flood(megabytes: int) -> str:
    """A large answer."""
    return "x" * (megabytes * 1024 * 1024)


@server.tool()
def environment(variable: str) -> str:
    """A variable of its environment."""
    return os.environ.get(variable, "not set")


@server.tool()
async def grow(ctx: Context[Any, Any]) -> str:
    """Offers one more tool, and says so."""

    def grown() -> str:
        """Grown."""
        return "grown"

    server.add_tool(grown)
    await ctx.notify_tools_changed()
    return "there is more now"


if __name__ == "__main__":
    mark("start")
    if "die-on-start" in ASKED:
        sys.stderr.write("no licence file\n")
        sys.exit(2)
    if "hang-on-start" in ASKED:
        time.sleep(3600)
    if "noise" in ASKED:
        print("Welcome to the server!", flush=True)
    if PORT:
        server.run("streamable-http", port=PORT)
    else:
        server.run("stdio")
