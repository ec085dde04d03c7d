"""A server's tools as a model sees them: named `server__tool`, within what providers allow, and of the kind that the user says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from treadle.core.messages import CallKind
from treadle.ports.model import ToolDef

from .servers import MCPServer

if TYPE_CHECKING:
    from mcp_types import Tool

LONGEST_NAME = 64  # what the strictest provider takes
MOST_TOOLS = 512  # of one server
_LONGEST_DESCRIPTION = 4_000
_LARGEST_SCHEMA = 64 * 1024
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


class Offer(NamedTuple):
    """The tools of a server, the name that it knows each by, and what was left out and why."""

    tools: tuple[ToolDef, ...]
    originals: dict[str, str]
    left_out: tuple[str, ...]


def offered(server: MCPServer, found: Sequence[Tool]) -> Offer:
    """What the model may have of what the server lists. Deterministic: the same list gives the same names."""
    tools: list[ToolDef] = []
    originals: dict[str, str] = {}
    left_out: list[str] = []
    for tool in sorted(found, key=lambda tool: tool.name):
        if (server.include is not None and tool.name not in server.include) or tool.name in server.exclude:
            continue
        if reason := _unusable(tool, len(tools)):
            left_out.append(f"{tool.name[:80]}: {reason}")
            continue
        name = _name(server.name, tool.name)
        if name in originals:
            left_out.append(f"{tool.name[:80]}: there is one of that name already")
            continue
        originals[name] = tool.name
        tools.append(ToolDef(name, _description(server.name, tool), _schema(tool.input_schema), kind(server, tool)))
    return Offer(tuple(sorted(tools, key=lambda tool: tool.name)), originals, tuple(left_out))


def kind(server: MCPServer, tool: Tool) -> CallKind:
    """Mutating unless the user says read-only; an annotation is a hint of somebody untrusted, and can only make it stricter."""
    if not ({tool.name, "*"} & set(server.read_only)):
        return "mutating"
    hints = tool.annotations
    if hints is not None and (hints.read_only_hint is False or hints.destructive_hint is True):
        return "mutating"
    return "read"


def _unusable(tool: Tool, number: int) -> str:
    if number >= MOST_TOOLS:
        return f"a server may have {MOST_TOOLS} tools"
    if not tool.name.strip():
        return "it has no name"
    try:
        size = len(msgspec.json.encode(tool.input_schema))
    except (TypeError, ValueError, RecursionError):
        return "its schema is no JSON"
    return f"its schema has more than {_LARGEST_SCHEMA:,} bytes" if size > _LARGEST_SCHEMA else ""


def _name(server: str, tool: str) -> str:
    """`server__tool`; a digest in place of the end of one that is too long or holds what providers refuse."""
    name = f"{server}__{_FOREIGN.sub('_', tool)}"
    if len(name) <= LONGEST_NAME and not _FOREIGN.search(tool):
        return name
    return f"{name[: LONGEST_NAME - 9]}_{sha256(tool.encode(errors='surrogatepass')).hexdigest()[:8]}"


def _description(server: str, tool: Tool) -> str:
    text = (tool.description or tool.title or tool.name).strip()
    if len(text) > _LONGEST_DESCRIPTION:
        text = f"{text[:_LONGEST_DESCRIPTION]} [...]"
    return f"{text}\n(From the MCP server {server}.)"


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Always an object: some servers leave the type or the properties out."""
    return {"type": "object", "properties": {}, **schema}
