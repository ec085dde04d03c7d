"""Tool calls: the intent of a mutating one, running them, looking after a crash whether one happened, and what the model is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import anyio

from treadle.core.errors import LedgerError, ToolError
from treadle.core.events import Event, ProcessStarted, ToolIntended, ToolProbed
from treadle.core.messages import Message, ToolCall, ToolResult, ToolsFinished
from treadle.core.tokens import CHARACTERS
from treadle.kernel.actions import IntendTool, ProbeTool, RunTools
from treadle.kernel.marks import mark_of
from treadle.kernel.tool_errors import classified, hint_for
from treadle.ports.children import Above
from treadle.ports.clock import Clock, CrashPoints
from treadle.ports.model import Model, ToolDef
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset
from treadle.tools.clip import clip

from .host import Host
from .leasing import LeaseGate

LEAST_OUTPUT = 400  # characters of an output that are shown, however small the window is
CALL_SHARE, BATCH_SHARE = 8, 3  # of the window: an eighth for one output, a third for a batch


class Room(NamedTuple):
    """Characters of outputs that go into the prompt: of each call, and of a whole batch."""

    call: int
    batch: int

    def of_each(self, calls: int) -> int:
        """For each call of a batch of so many."""
        return max(LEAST_OUTPUT, min(self.call, self.batch // max(calls, 1)))


def output_room(models: Sequence[Model], limit: int) -> Room:
    """What fits: outputs are clipped before they can overflow the window, a large batch as well as one huge output (case 41)."""
    window = min(max(one.context_window - one.max_output_tokens, one.context_window // 4) for one in models)
    return Room(min(limit, max(LEAST_OUTPUT, window // CALL_SHARE * CHARACTERS)), window // BATCH_SHARE * CHARACTERS)


class ToolEffect:
    """Runs the tools of one agent. Outputs are redacted before anything else sees them (SE-01)."""

    def __init__(
        self,
        toolset: Toolset,
        redact: Callable[[str], str],
        room: Room,
        clock: Clock,
        points: CrashPoints,
        ceiling: tuple[str, ...] | None = None,
        above: Above | None = None,
    ) -> None:
        self.toolset, self.redact, self.room = toolset, redact, room
        self.output_limit = room.call
        self.clock, self.points = clock, points
        self._tools: tuple[ToolDef, ...] = ()
        self._polling: frozenset[str] = frozenset()
        self.gate = LeaseGate(toolset, ceiling, clock, above)

    async def perform(self, action: IntendTool | RunTools | ProbeTool, host: Host) -> Event:
        """The one outcome of it."""
        match action:
            case IntendTool():
                return await self.intend(action, host)
            case RunTools():
                return await self.run(action, host)
            case ProbeTool():
                return await self.probe(action)

    async def intend(self, action: IntendTool, host: Host) -> ToolIntended | ToolsFinished:
        """What the call is about to change; a call that cannot succeed is answered at once and never starts."""
        try:
            self.gate.check(host.state, action.call)
            probes = await self.toolset.prepare(action.call)
        except ToolError as error:
            return ToolsFinished(parent=_leaf(host), results=(self._failed(action.call, error),), us=0)
        return ToolIntended(call=action.key, probes=probes)

    async def probe(self, action: ProbeTool) -> ToolProbed:
        """Whether a call in doubt happened, and what it may have touched (FR-14)."""
        found = await self.toolset.probe(action.call, action.probes) if action.probes else "unknown"
        return ToolProbed(call=action.key, found=found, touches=self.toolset.touches(action.call))

    async def run(self, action: RunTools, host: Host) -> ToolsFinished:
        """Runs the calls side by side; results come back in call order (AG-22)."""
        start = self.clock.monotonic_us()
        self.output_limit = self.room.of_each(len(action.calls))
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
            result = await self._run(call, context, host)
            if isinstance(result, ToolError) and result.transient and call.kind in ("read", "idempotent"):
                await host.confirm()
                result = await self._run(call, context, host)  # once, and only what may be repeated (AG-09)
        finally:
            host.tell("tool.finished", {"key": key, "name": call.name})
        return self._failed(call, result) if isinstance(result, ToolError) else self._ok(call, result, host)

    async def _run(self, call: ToolCall, context: ToolContext, host: Host) -> ToolOutput | ToolError:
        """What the call gave, or why it failed. A fault of the tool's own code passes."""
        try:
            self.gate.check(host.state, call)
            return await self.toolset.run(call, context)
        except LedgerError:
            raise
        except Exception as error:  # a tool may raise anything: what stands for no failure of a call passes
            if (known := classified(error)) is None:
                raise
            return known

    def _ok(self, call: ToolCall, output: ToolOutput, host: Host) -> ToolResult:
        content = self.redact(output.content)
        mark, effects = self._mark(call, content), self._effects(call, output)
        if len(content) <= self.output_limit:
            shown, blob = content, ""
        else:
            blob = host.put_blob(content.encode(errors="surrogatepass"))
            shown = clip(content, self.output_limit, call.id)
        return ToolResult(
            id=call.id,
            content=shown,
            changed=output.changed,
            blob=blob,
            mark=mark,
            effects=effects,
            passed=output.passed,
        )

    def _mark(self, call: ToolCall, content: str) -> str:
        """Nothing for a tool that is made for asking again (AG-11)."""
        tools = self.toolset.tools()
        if tools is not self._tools:
            self._tools, self._polling = tools, frozenset(tool.name for tool in tools if tool.polling)
        return "" if call.name in self._polling else mark_of(call, content)

    def _failed(self, call: ToolCall, error: ToolError) -> ToolResult:
        hint = hint_for(error, repeatable=call.kind in ("read", "idempotent"))
        text = self.redact(f"{error.kind} error: {error}\nHint: {hint}")
        mark = self._mark(call, text)
        if len(text) > self.output_limit:
            text = clip(text, self.output_limit, call.id)
        return ToolResult(
            id=call.id,
            content=text,
            status="error",
            error=error.kind,
            transient=error.transient,
            mark=mark,
            effects=self._effects(call),
        )

    def _effects(self, call: ToolCall, output: ToolOutput | None = None) -> tuple[str, ...]:
        """What the call was to touch, and what it was seen to have touched; each once."""
        declared = self.toolset.touches(call)
        if output is None or not (output.changed or output.effects):
            return declared
        written = tuple(f"fs.write {path}" for path in output.changed)
        return tuple(dict.fromkeys((*declared, *output.effects, *written)))


def _leaf(host: Host) -> int:
    leaf = host.state.agent.leaf
    if leaf is None:
        raise AssertionError("a tool call without a response")
    return leaf


async def whole_output(host: Host, call_id: str) -> str:
    """The stored output of a call of this conversation, folded ones included: the latest with this id, or exactly that of
    `ID@RECORD`, as a stub names it. ToolError("not-found")."""
    id, _, number = call_id.rpartition("@")
    wanted = int(number) if id and number.isdecimal() else None
    if wanted is None:
        view = await host.view(host.state.phase)
        if not view.known_from and (result := _latest(zip(view.seqs, view.messages, strict=True), call_id, None)):
            return await _whole(host, result)
    past = await host.past()
    result = _latest(past, id if wanted is not None else call_id, wanted) or _latest(past, call_id, None)
    if result is None:
        raise ToolError("not-found", f"no call {call_id!r} in this conversation", hint="Use the id of an earlier call.")
    return await _whole(host, result)


def _latest(messages: Iterable[tuple[int, Message]], call_id: str, seq: int | None) -> ToolResult | None:
    found: ToolResult | None = None
    for number, message in messages:
        if isinstance(message, ToolsFinished) and seq in (None, number):
            found = next((result for result in message.results if result.id == call_id), found)
    return found


async def _whole(host: Host, result: ToolResult) -> str:
    return (await host.blob(result.blob)).decode(errors="replace") if result.blob else result.content
