"""The tool by which an agent asks for leave. The engine acts on it: it waits, durably, for a person."""

from __future__ import annotations

from typing import Any

from treadle.core.errors import ToolError
from treadle.core.messages import ToolCall
from treadle.kernel.leases import REQUEST
from treadle.ports.model import ToolDef
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "capability": {
            "type": "string",
            "minLength": 1,
            "description": "Such as fs.write:docs/** or process.spawn:pytest*.",
        },
        "reason": {"type": "string", "minLength": 1, "description": "For the person who decides: why you need it."},
        "scope": {
            "type": "string",
            "enum": ["turn", "step", "loop"],
            "description": "How long; loop unless said otherwise.",
        },
    },
    "required": ["capability", "reason"],
    "additionalProperties": False,
}
_TOOLS = (ToolDef(REQUEST, "Asks the person for a permission that a call was refused for lack of.", _SCHEMA, "ask"),)


class PermissionTools(Toolset):
    """request_permission(capability, reason, scope?)."""

    def tools(self) -> tuple[ToolDef, ...]:
        return _TOOLS

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        raise ToolError("execution", f"{call.name} is acted on by the engine, not run as a tool")
