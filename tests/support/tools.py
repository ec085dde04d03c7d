"""Calls of tools as the engine makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from treadle.core.errors import ToolError
from treadle.core.messages import ToolCall
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset


async def nothing_stored(call_id: str) -> str:
    raise ToolError("not-found", f"no call {call_id!r}")


def context(*, started: Callable[[int, str], None] = lambda *_: None, output: Any = nothing_stored) -> ToolContext:
    return ToolContext(key="execution:1.act.1.1:0", started=started, output=output)


def call(toolset: Toolset, name: str, **args: Any) -> ToolCall:
    kinds = {tool.name: tool.kind for tool in toolset.tools()}
    return ToolCall(id="c1", name=name, args=args, kind=kinds.get(name, "read"))


def use(toolset: Toolset, name: str, **args: Any) -> ToolOutput:
    """What a call gives; as the engine does, a changing one is prepared first."""

    async def main() -> ToolOutput:
        made = call(toolset, name, **args)
        if made.kind == "mutating":
            await toolset.prepare(made)
        return await toolset.run(made, context())

    return anyio.run(main)


def refusal(toolset: Toolset, name: str, **args: Any) -> ToolError:
    """The error that a call ends with."""
    try:
        output = use(toolset, name, **args)
    except ToolError as error:
        return error
    raise AssertionError(f"{name} was not refused, but gave {output}")
