"""Some of a toolset's tools."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from treadle.core.errors import ToolError
from treadle.core.events import Probe
from treadle.core.messages import ToolCall
from treadle.ports.model import ToolDef
from treadle.ports.toolset import Found, ToolContext, ToolOutput, Toolset


class SelectedTools(Toolset):
    """Only the tools named in `only` (None: all), without those in `without`; the others cannot be called either."""

    def __init__(self, toolset: Toolset, *, only: Collection[str] | None = None, without: Collection[str] = ()) -> None:
        self._toolset, self._only, self._without = toolset, only, without
        self._seen: tuple[ToolDef, ...] = ()
        self._selected: tuple[ToolDef, ...] = ()

    def tools(self) -> tuple[ToolDef, ...]:
        seen = self._toolset.tools()
        if seen is not self._seen:
            self._seen = seen
            self._selected = tuple(tool for tool in seen if self._has(tool.name))
        return self._selected

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        self._check(call)
        return await self._toolset.run(call, context)

    def touches(self, call: ToolCall) -> tuple[str, ...]:
        return self._toolset.touches(call)

    async def prepare(self, call: ToolCall) -> tuple[Probe, ...]:
        self._check(call)
        return await self._toolset.prepare(call)

    async def probe(self, call: ToolCall, probes: tuple[Probe, ...]) -> Found:
        return await self._toolset.probe(call, probes)

    def identity(self) -> list[Any]:
        return [part for part in self._toolset.identity() if self._has(str(part[0]))]

    async def open(self) -> None:
        await self._toolset.open()

    async def close(self) -> None:
        await self._toolset.close()

    def _has(self, name: str) -> bool:
        return (self._only is None or name in self._only) and name not in self._without

    def _check(self, call: ToolCall) -> None:
        if not self._has(call.name):
            raise ToolError("permission", f"{call.name} may not be used here", hint="Use the tools that are offered.")
