"""Tools that an agent may call. Cross-cutting behaviour wraps a toolset in another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from treadle.core.events import Probe
from treadle.core.messages import ToolCall

from .model import ToolDef

Found = Literal["done", "not-started", "unknown"]


class ToolOutput(NamedTuple):
    """What a call gave. `content` is whole: clipping, storing and redacting come after."""

    content: str
    changed: tuple[str, ...] = ()  # workspace-relative paths
    effects: tuple[str, ...] = ()  # what it touched besides, as `kind target`
    passed: bool = True  # false: it ran and shows nothing good: an exit code other than 0, nothing found


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running call may use.

    `key` is stable over a repetition of the same call and unique otherwise: give it to services that deduplicate.
    `started(pgid, birth)` records a process group; `output(call_id)` gives the whole stored output of an earlier call.
    """

    key: str
    started: Callable[[int, str], None]
    output: Callable[[str], Awaitable[str]]


class Toolset(ABC):
    """A set of tools. `run` raises ToolError with a class and a hint; any other exception is a fault of the tool's own code."""

    @abstractmethod
    def tools(self) -> tuple[ToolDef, ...]:
        """Today's tools, sorted by name. The same from turn to turn, or the provider's cache is lost (AG-14)."""

    @abstractmethod
    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Runs a call that has been validated."""

    def touches(self, call: ToolCall) -> tuple[str, ...]:
        """What a call is about to touch, as `kind target`: checked against leases, and recorded whether it succeeds or not (FR-12, FR-14).

        `fs.read`, `fs.write` and `fs.delete` with a workspace-relative path, `process.spawn` with a command,
        `network.request` with a host, `external.mutation` with a name; any other kind is kept as it is.
        """
        return (f"external.mutation {call.name}",) if call.kind == "mutating" else ()

    async def prepare(self, call: ToolCall) -> tuple[Probe, ...]:
        """Before a mutating call: what will be in which file before and after, where that is known. ToolError: it need not run."""
        return ()

    async def probe(self, call: ToolCall, probes: tuple[Probe, ...]) -> Found:
        """After a crash: whether the call happened."""
        return "unknown"

    def identity(self) -> list[Any]:
        """What a definition's fingerprint knows it by (FR-25): its tools, unless those change with the world."""
        return [[tool.name, tool.description, tool.schema, tool.kind] for tool in self.tools()]

    async def open(self) -> None:
        """Before its first use by a loop: connects to whatever it needs. ConfigurationError where that is not there."""

    async def close(self) -> None:
        """Stops what it started; called once for each `open`."""
