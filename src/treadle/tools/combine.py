"""Several toolsets as one."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from treadle.core.errors import DefinitionError, ToolError
from treadle.core.events import Probe
from treadle.core.messages import ToolCall
from treadle.ports.model import ToolDef
from treadle.ports.toolset import Found, ToolContext, ToolOutput, Toolset


class CombinedTools(Toolset):
    """Each call goes to the toolset that has the tool. DefinitionError where two have one of the same name."""

    def __init__(self, *toolsets: Toolset) -> None:
        self._toolsets = toolsets
        self._parts: tuple[tuple[ToolDef, ...], ...] = ()
        self._all: tuple[ToolDef, ...] = ()
        self._owners: dict[str, Toolset] = {}
        self.tools()

    def tools(self) -> tuple[ToolDef, ...]:
        parts = tuple(toolset.tools() for toolset in self._toolsets)
        if parts != self._parts:
            owners: dict[str, Toolset] = {}
            for toolset, part in zip(self._toolsets, parts, strict=True):
                if twice := [tool.name for tool in part if tool.name in owners]:
                    raise DefinitionError(f"More than one toolset has a tool named {', '.join(twice)}.")
                owners.update((tool.name, toolset) for tool in part)
            self._owners = owners
            self._all = tuple(sorted((tool for part in parts for tool in part), key=lambda tool: tool.name))
            self._parts = parts
        return self._all

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        return await self._owner(call).run(call, context)

    def touches(self, call: ToolCall) -> tuple[str, ...]:
        return self._owner(call).touches(call)

    async def prepare(self, call: ToolCall) -> tuple[Probe, ...]:
        return await self._owner(call).prepare(call)

    async def probe(self, call: ToolCall, probes: tuple[Probe, ...]) -> Found:
        return await self._owner(call).probe(call, probes)

    def identity(self) -> list[Any]:
        return sorted(
            (part for toolset in self._toolsets for part in toolset.identity()), key=lambda part: str(part[0])
        )

    async def open(self) -> None:
        async with AsyncExitStack() as stack:  # all or none
            for toolset in self._toolsets:
                await toolset.open()
                stack.push_async_callback(toolset.close)
            self.tools()  # two toolsets may have a tool of one name, which shows only now
            stack.pop_all()

    async def close(self) -> None:
        async with AsyncExitStack() as stack:  # each, whatever becomes of the others
            for toolset in self._toolsets:
                stack.push_async_callback(toolset.close)

    def _owner(self, call: ToolCall) -> Toolset:
        if call.name not in self._owners:
            self.tools()
        owner = self._owners.get(call.name)
        if owner is None:
            raise ToolError("not-found", f"there is no tool {call.name}", hint="It may have been withdrawn meanwhile.")
        return owner
