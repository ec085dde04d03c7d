"""The tools by which a model writes its plan and says how far it is. The engine carries them out; they change nothing else."""

from __future__ import annotations

from typing import Any

from treadle.core.errors import ToolError
from treadle.core.messages import ToolCall
from treadle.core.plans import MOST_STEPS
from treadle.ports.model import ToolDef
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset

from .definitions import define

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_CHECK: dict[str, Any] = {
    "description": "The call that verifies the step: a command as run_command will run it, the name of a tool, or a tool "
    "with arguments. The step is done when such a call succeeds (a command: exit code 0).",
    "anyOf": [
        _TEXT,
        {
            "type": "object",
            "properties": {"tool": _TEXT, "args": {"type": "object"}},
            "required": ["tool"],
            "additionalProperties": False,
        },
    ],
}
_STEP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": _TEXT,
        "check": _CHECK,
        "after": {"type": "array", "items": _TEXT, "description": "Ids of steps that must be done before."},
        "id": {"type": "string", "minLength": 1, "description": "Without one, the step's number, from 1."},
    },
    "required": ["title"],
    "additionalProperties": False,
}
PLAN_TOOLS = (
    define(
        "update_step",
        "plan",
        "Begins a step (in-progress), gives it up (failed, with a reason), or says that one without a check is done. A step "
        "with a check is done by that check's success alone.",
        {"step": _TEXT, "status": {"type": "string", "enum": ["in-progress", "done", "failed"]}},
        {"reason": {"type": "string"}},
    ),
    define(
        "write_plan",
        "plan",
        "Writes the plan, whole, in place of the one there is: the steps in order. Steps that stay as they were keep their "
        "progress. In plan mode this puts it before a person.",
        {"steps": {"type": "array", "items": _STEP, "minItems": 1, "maxItems": MOST_STEPS}},
        {},
    ),
)


class PlanTools(Toolset):
    """write_plan, update_step."""

    def tools(self) -> tuple[ToolDef, ...]:
        return PLAN_TOOLS

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        raise ToolError("execution", f"{call.name} is acted on by the engine, not run as a tool")
