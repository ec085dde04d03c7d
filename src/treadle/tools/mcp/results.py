"""What a server answers, as text for the model: every kind of content, structured content, and errors by their class."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from treadle.core.errors import ToolError, ToolErrorKind
from treadle.kernel.tool_errors import of_text

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError
    from mcp_types import CallToolResult, ContentBlock

_LONGEST = 4 * 1024 * 1024  # characters kept of one answer; the middle of a longer one is left out
_LONGEST_ERROR = 4_000


def answer(server: str, result: CallToolResult) -> str:
    """The content in its order, then what is structured where no text says the same. ToolError where the tool says that it failed.

    Text that tells of an error without being marked as one stays what it is: data.
    """
    parts = [_block(block) for block in result.content]
    if result.structured_content is not None and not _said(parts, result.structured_content):
        parts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    text = _clipped("\n".join(parts), _LONGEST)
    if result.is_error:
        kind, transient = of_text(text)
        raise ToolError(
            kind,
            _clipped(text or f"the MCP server {server} says that the call failed, and not why", _LONGEST_ERROR),
            hint="This is the server's own error. Look at what it says before you call it again.",
            transient=transient,
        )
    return text or "[no output]"


def _block(block: ContentBlock) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return _binary(block.type, block.mime_type, block.data)
        case "resource_link":
            return f"[resource {block.uri}: {block.name}]"
        case _:
            resource = block.resource
            text = getattr(resource, "text", None)
            if isinstance(text, str):
                return f"[resource {resource.uri}]\n{text}"
            return _binary(f"resource {resource.uri}", resource.mime_type or "", str(getattr(resource, "blob", "")))


def _binary(what: str, mime_type: str, data: str) -> str:
    """What cannot be shown as text is named, so that nobody takes it for nothing."""
    size = len(data) * 3 // 4 - data[-2:].count("=")
    digest = sha256(data.encode()).hexdigest()[:16]
    return f"[{what} {mime_type}, {size:,} bytes, {digest}: not text, so not shown]"


def _said(parts: list[str], structured: Any) -> bool:
    """Servers repeat structured content as text for clients that know only text."""
    for part in parts:
        try:
            if json.loads(part) == structured:
                return True
        except (ValueError, RecursionError):
            continue
    if not isinstance(structured, dict):
        return False
    values = list(cast("dict[str, Any]", structured).values())  # such as {"result": …} around what the text says
    return len(values) == 1 and str(values[0]) in parts


def _clipped(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters of the answer left out ...]\n{text[-half:]}"


def failure(server: str, error: MCPError) -> ToolError:
    """A protocol error as a tool error of its class."""
    kinds: dict[int, ToolErrorKind] = {-32602: "argument", -32601: "not-found", -32001: "timeout"}
    kind = kinds.get(error.code, "execution")
    hints = {
        "argument": "Correct the arguments.",
        "not-found": "Use the tools that are offered now.",
        "timeout": "The call may have happened all the same: look before you repeat it.",
        "execution": "This is the server's own error. Look at what it says before you call it again.",
    }
    return ToolError(kind, f"{server}: {_clipped(error.message, _LONGEST_ERROR)}", hint=hints[kind], transient=False)
