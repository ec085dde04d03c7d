"""The tools by which an agent forks a child and answers it. The engine acts on them: a child is an execution of its own (FR-22)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treadle.core.errors import ToolError
from treadle.core.messages import ToolCall
from treadle.kernel.children import ANSWER, FORK
from treadle.ports.model import ToolDef
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {**_TEXT, "description": "Your answer; of a result that it shows you: why."},
        "decision": {
            "type": "string",
            "enum": ["answer", "approve", "reject"],
            "description": "approve or reject where it shows you a result; answer otherwise.",
        },
    },
    "required": ["answer"],
    "additionalProperties": False,
}


class ForkTools(Toolset):
    """fork(child, task), and answer_child(answer, decision?) where a child's questions are the agent's to answer.

    `about` says of each child what it is for; `identities`, what the fingerprint of a definition knows it by.
    """

    def __init__(self, about: Mapping[str, str], *, answers: bool, identities: Mapping[str, Any]) -> None:
        self._identities = identities
        listed = "\n".join(f"- {name}: {text}" for name, text in sorted(about.items()))
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                "child": {"type": "string", "enum": sorted(about)},
                "task": {
                    **_TEXT,
                    "description": "All that it has to know: it sees nothing of this conversation.",
                },
            },
            "required": ["child", "task"],
            "additionalProperties": False,
        }
        fork = ToolDef(
            FORK,
            "Hands a task to a child, waits until it has ended, and returns what came of it. It works in the same folder, "
            f"with your permissions at most, out of what is left of your budget. Children:\n{listed}",
            schema,
            "fork",
        )
        answer = ToolDef(ANSWER, "Answers the child that waits for you, which then goes on.", _ANSWER_SCHEMA, "fork")
        self._tools = (answer, fork) if answers else (fork,)

    def tools(self) -> tuple[ToolDef, ...]:
        return self._tools

    def touches(self, call: ToolCall) -> tuple[str, ...]:
        return ()

    def identity(self) -> list[Any]:
        known: list[Any] = super().identity()
        return [*known, ["children", dict(self._identities)]]

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        raise ToolError("execution", f"{call.name} is acted on by the engine, not run as a tool")
