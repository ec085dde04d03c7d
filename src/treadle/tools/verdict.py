"""The tool by which an evaluating agent judges."""

from __future__ import annotations

from typing import Any

from treadle.core.errors import ToolError
from treadle.core.messages import ToolCall
from treadle.ports.model import ToolDef
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "accept": {"type": "boolean", "description": "Whether the work is done, and done well."},
        "feedback": {"type": "string", "description": "For the worker: what is wrong, where, and what would be right."},
        "lessons": {
            "type": "object",
            "description": "Where the worker was told lessons: their ids, each with what it did and what shows it.",
            "additionalProperties": {"type": "string", "pattern": "^(helpful|neutral|harmful)\\s*(:|$)"},
        },
    },
    "required": ["accept", "feedback"],
    "additionalProperties": False,
}
_TOOLS = (ToolDef("verdict", "Ends the evaluation with your verdict.", _SCHEMA, "verdict"),)


class VerdictTools(Toolset):
    """verdict(accept, feedback)."""

    def tools(self) -> tuple[ToolDef, ...]:
        return _TOOLS

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        raise ToolError("execution", f"{call.name} is acted on by the engine, not run as a tool")
