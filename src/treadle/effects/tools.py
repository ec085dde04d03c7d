"""Tool calls: the intent of a mutating one, running them, looking after a crash whether one happened, and what the model is told."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from treadle.core.errors import ToolError
from treadle.core.events import ProcessStarted, ToolIntended, ToolProbed
from treadle.core.messages import ToolCall, ToolResult, ToolsFinished
from treadle.kernel.actions import IntendTool, ProbeTool, RunTools
from treadle.ports.clock import Clock, CrashPoints
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset
from treadle.tools.clip import clip

from .host import Host


class ToolEffect:
    """Runs the tools of one agent. Outputs are redacted before anything else sees them (SE-01)."""

    def __init__(
        self, toolset: Toolset, redact: Callable[[str], str], output_limit: int, clock: Clock, points: CrashPoints
    ) -> None:
        self.toolset, self.redact, self.output_limit = toolset, redact, output_limit
        self.clock, self.points = clock, points

    async def intend(self, action: IntendTool, host: Host) -> ToolIntended | ToolsFinished:
        """What the call is about to change; a call that cannot succeed is answered at once and never starts."""
        try:
            probes = await self.toolset.prepare(action.call)
        except ToolError as error:
            return ToolsFinished(parent=_leaf(host), results=(self._failed(action.call, error),), us=0)
        return ToolIntended(call=action.key, probes=probes)

    async def probe(self, action: ProbeTool) -> ToolProbed:
        """Whether a call in doubt happened."""
        return ToolProbed(call=action.key, found=await self.toolset.probe(action.call, action.probes))

    async def run(self, action: RunTools, host: Host) -> ToolsFinished:
        """Runs the calls side by side; results come back in call order (AG-22)."""
        start = self.clock.monotonic_us()
        self.points.reach("before-tool")
        if len(action.calls) == 1:
            results = (await self._one(action.keys[0], action.calls[0], host),)
        else:
            results = await self._all(action, host)
        self.points.reach("after-tool")
        return ToolsFinished(parent=_leaf(host), results=results, us=self.clock.monotonic_us() - start)

    async def _all(self, action: RunTools, host: Host) -> tuple[ToolResult, ...]:
        done: dict[int, ToolResult] = {}

        async def run(index: int) -> None:
            done[index] = await self._one(action.keys[index], action.calls[index], host)

        async with anyio.create_task_group() as group:
            for index in range(len(action.calls)):
                group.start_soon(run, index)
        return tuple(done[index] for index in range(len(action.calls)))

    async def _one(self, key: str, call: ToolCall, host: Host) -> ToolResult:
        def started(pgid: int, birth: str) -> None:
            host.emit(ProcessStarted(call=key, pgid=pgid, birth=birth))
            host.flush_soon()

        async def output(call_id: str) -> str:
            return await whole_output(host, call_id)

        host.tell("tool.started", {"key": key, "name": call.name, "args": call.args})
        context = ToolContext(key=f"{host.execution_id}:{key}", started=started, output=output)
        try:
            result = await self.toolset.run(call, context)
        except ToolError as error:
            if error.transient and call.kind in ("read", "idempotent"):
                try:  # once, and only what may be repeated (AG-09)
                    return self._ok(call, await self.toolset.run(call, context), host)
                except ToolError as again:
                    return self._failed(call, again)
            return self._failed(call, error)
        finally:
            host.tell("tool.finished", {"key": key, "name": call.name})
        return self._ok(call, result, host)

    def _ok(self, call: ToolCall, output: ToolOutput, host: Host) -> ToolResult:
        content = self.redact(output.content)
        if len(content) <= self.output_limit:
            return ToolResult(id=call.id, content=content, changed=output.changed)
        blob = host.put_blob(content.encode(errors="surrogatepass"))
        return ToolResult(
            id=call.id, content=clip(content, self.output_limit, call.id), changed=output.changed, blob=blob
        )

    def _failed(self, call: ToolCall, error: ToolError) -> ToolResult:
        hint = f"\nHint: {error.hint}" if error.hint else ""
        text = self.redact(f"{error.kind} error: {error}{hint}")
        if len(text) > self.output_limit:
            text = clip(text, self.output_limit, call.id)
        return ToolResult(id=call.id, content=text, status="error")


def _leaf(host: Host) -> int:
    leaf = host.state.agent.leaf
    if leaf is None:
        raise AssertionError("a tool call without a response")
    return leaf


async def whole_output(host: Host, call_id: str) -> str:
    """The stored output of the latest call with this id on the branch. ToolError("not-found")."""
    view = await host.view(host.state.phase)
    for message in reversed(view.messages):
        if isinstance(message, ToolsFinished):
            for result in message.results:
                if result.id == call_id:
                    if not result.blob:
                        return result.content
                    return (await host.blob(result.blob)).decode(errors="replace")
    raise ToolError("not-found", f"no call {call_id!r} in this conversation", hint="Use the id of an earlier call.")
