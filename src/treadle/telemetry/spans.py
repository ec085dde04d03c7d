"""Events to spans, by the GenAI semantic conventions: execution, round, act and evaluate, model call, tool call, compaction, wait (AG-19).

Spans begin and end at the times of their events, so it does not matter when they are made. Content is left out unless asked for,
and whatever is written is redacted first. This module needs the extra `otel` and is imported only where that is wanted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags

from treadle.core import events as ev
from treadle.core import workflow_events as wf
from treadle.core.endings import ending
from treadle.core.lesson_events import LessonsDistilled, LessonsVoted
from treadle.core.messages import ModelResponded, Prompted, ToolsFinished
from treadle.kernel.states import LoopState
from treadle.kernel.workflow_states import WorkflowState
from treadle.ports.observer import Observer, Progress

from .open_spans import WITHDRAWN, Execution, FirstIds, Leaf, Leaves, Open, first_ids

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

NAMES = 256
LONGEST = 8_000  # characters of an attribute with content
NOTED = (
    "guard.tripped",
    "escalated",
    "extended",
    "workspace.changed",
    "plan.written",
    "step.moved",
    "answered",
    "adopted",
    "reopened",
)
CONSTANT = frozenset(
    "gen_ai.operation.name gen_ai.provider.name gen_ai.conversation.id gen_ai.tool.type treadle.call treadle.request"
    " treadle.phase treadle.tool.kind".split()
)
AT_THE_END = ("lessons.voted", "lessons.distilled")


class Spans(Observer):
    """Makes spans of the progress of any number of executions."""

    ignores = frozenset(("text.delta", "tool.intended"))

    def __init__(
        self,
        provider: TracerProvider,
        ids: FirstIds,
        redact: Callable[[str], str],
        *,
        processor: SpanProcessor | None = None,
        content: bool = False,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._tracer, self._leaves = provider.get_tracer("treadle"), Leaves(provider, processor)
        self._ids, self._redact, self._content, self._on_close = ids, redact, content, on_close
        self._name = lru_cache(maxsize=NAMES)(redact)  # a few names, over and over
        self._open: dict[str, Execution] = {}
        self._parents: dict[str, Open] = {}  # child execution -> the task that it runs in
        self._last_us = 0

    def notify(self, progress: Progress) -> None:
        if progress.kind in self.ignores:
            return
        if progress.kind in AT_THE_END and progress.execution_id not in self._open:
            return  # after the last span of a loop that failed
        self._last_us = max(self._last_us, progress.at_us)
        found = self._open.get(progress.execution_id) or self._begin(progress)
        if isinstance(progress.state, WorkflowState):
            self._of_workflow(found, progress)
        else:
            self._of_loop(found, progress)

    def close(self) -> None:
        """Ends what is open, and exports it."""
        for found in self._open.values():
            found.end(self._last_us)
            found.root.end(self._last_us)
        self._open = {}
        self._on_close()

    # ---- the execution

    def _span(
        self, name: str, inside: Open, at_us: int, given: dict[str, Any], kind: SpanKind = SpanKind.INTERNAL
    ) -> Open:
        return Open(
            self._tracer.start_span(
                self._text(name),
                context=inside.context,
                kind=kind,
                start_time=at_us * 1000,
                attributes=self._safe(given),
            )
        )

    def _leaf(
        self, name: str, inside: Open, at_us: int, given: dict[str, Any], kind: SpanKind = SpanKind.INTERNAL
    ) -> Leaf:
        return Leaf(self._leaves, self._name(name), inside, self._safe(given), at_us, kind)

    def _begin(self, progress: Progress) -> Execution:
        name, state = progress.execution_id, progress.state
        first = progress.seq == 1
        parent = self._parents.pop(name, None)
        links = [] if first else [Link(_first(name), {"treadle.link": "first trace of the execution"})]
        if first and parent is None:
            self._ids.as_first(name)
        loop = isinstance(state, LoopState)
        given = {
            "gen_ai.conversation.id": name,
            "treadle.execution.id": name,
            "treadle.name": state.settings.loop_id if loop else state.settings.name,
            "treadle.resumed_after": progress.seq - 1 if not first and progress.seq else None,
            "gen_ai.operation.name": "invoke_workflow",
        }
        span = self._tracer.start_span(
            self._text(f"execution {given['treadle.name']}"),
            context=parent.context if parent else Context(),
            start_time=progress.at_us * 1000,
            attributes=self._safe(given),
            links=links,
        )
        found = self._open[name] = Execution(Open(span))
        return found

    def _finish(self, found: Execution, progress: Progress, status: Any, code: Any, outcome: str) -> None:
        state, row = progress.state, ending(status, code)
        failed = row.nonfailure is False
        found.end(progress.at_us)
        total = state.total
        for name, value in {
            "treadle.status": status,
            "treadle.code": code,
            "treadle.outcome": outcome,
            "treadle.cost_usd": float(total.usage.cost_usd),
            "treadle.in_doubt_usd": float(total.in_doubt.cost_usd),
            "gen_ai.usage.input_tokens": total.usage.input_tokens,
            "gen_ai.usage.output_tokens": total.usage.output_tokens,
        }.items():
            found.root.span.set_attribute(name, value)
        found.root.end(progress.at_us, code if failed else "")
        self._open.pop(progress.execution_id, None)

    # ---- loops

    def _of_loop(self, found: Execution, progress: Progress) -> None:
        data, at_us = progress.data, progress.at_us
        if progress.seq == 0:
            self._ephemeral(found, progress)
            return
        match data:
            case ev.LoopStarted():
                return
            case ev.Stopped():
                self._finish(found, progress, data.status, data.code, data.kind)
                return
            case LessonsVoted() | LessonsDistilled():  # after the last round
                found.inside().span.add_event(progress.kind, timestamp=at_us * 1000)
                return
            case ev.Interrupted():
                found.cut(at_us, WITHDRAWN)
                if data.reason in (
                    "signal",
                    "cancelled",
                    "step",
                ):  # it rests: whoever goes on begins a trace of its own
                    found.end(at_us)
                    found.root.span.set_attribute("treadle.status", "paused")
                    found.root.end(at_us)
                    self._open.pop(progress.execution_id, None)
                return
            case _:
                pass
        if self._waits(found, progress):
            return
        self._place(found, progress)
        self._work(found, progress)

    def _place(self, found: Execution, progress: Progress) -> None:
        """Round and phase. What ends one is still inside it."""
        state: LoopState = progress.state
        data, at_us = progress.data, progress.at_us
        if found.round is None:
            found.number = state.round
            found.round = self._span(f"round {state.round}", found.root, at_us, {"treadle.round": state.round})
        ends = isinstance(data, ev.Judged | ev.ActFinished | ev.ActFailed)
        if found.phase is None and not (ends or isinstance(data, ev.BaselineTaken)):
            found.phase, found.phase_name = self._phase(found.round, state, at_us), state.phase
        if not ends:
            return
        if found.phase is not None:
            found.phase.end(at_us, "act-failed" if isinstance(data, ev.ActFailed) else "")
            found.phase = None
        if isinstance(data, ev.Judged):
            found.round.span.set_attribute("treadle.verdict", "accepted" if data.accept else "rejected")
            found.round.end(at_us)
            found.round = None

    def _phase(self, inside: Open, state: LoopState, at_us: int) -> Open:
        kind = state.settings.act if state.phase == "act" else state.settings.evaluate
        if kind != "agent":
            return self._span(state.phase, inside, at_us, {"treadle.phase": state.phase})
        name = state.settings.role_key if state.phase == "act" else f"{state.settings.loop_id}.evaluate"
        given = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, "treadle.phase": state.phase}
        return self._span(f"invoke_agent {name}", inside, at_us, given)

    def _work(self, found: Execution, progress: Progress) -> None:
        data, at_us = progress.data, progress.at_us
        match data:
            case ev.ModelIntended():
                found.model = self._asked(found, data, progress)
            case ModelResponded():
                self._answered(found, data, at_us)
            case ev.ModelFailed() if found.model is not None:
                found.model.given["treadle.maybe_charged"] = data.maybe_charged
                found.model.end(at_us, data.kind)
                found.model = None
            case ToolsFinished():
                self._results(found, data, at_us)
            case Prompted():
                self._told(found, "user", [{"type": "text", "content": data.text}])
            case _:
                self._noted(found, progress)

    def _asked(self, found: Execution, event: ev.ModelIntended, progress: Progress) -> Leaf:
        provider, _, model = event.model.partition(":")
        given: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": PROVIDERS.get(provider, provider),
            "gen_ai.request.model": model or event.model,
            "gen_ai.request.max_tokens": event.reserve.output_tokens,
            "gen_ai.conversation.id": progress.execution_id,
            "treadle.call": event.call,
            "treadle.request": event.request,
        }
        if self._content:
            given["gen_ai.input.messages"] = self._json(found.told)
            found.told = []
        return self._leaf(f"chat {model or event.model}", found.inside(), progress.at_us, given, SpanKind.CLIENT)

    def _answered(self, found: Execution, event: ModelResponded, at_us: int) -> None:
        if found.model is None:
            return
        usage = event.usage
        given: dict[str, Any] = {
            "gen_ai.response.finish_reasons": (self._name(event.finish),),
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
            "treadle.cost_usd": float(usage.cost_usd),
            "treadle.active_ms": event.us // 1000,
        }
        if self._content:
            parts: list[dict[str, Any]] = [{"type": "text", "content": event.text}] if event.text else []
            parts += [
                {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.args} for call in event.calls
            ]
            given["gen_ai.output.messages"] = self._json(
                [{"role": "assistant", "parts": parts, "finish_reason": event.finish}]
            )
        found.model.given |= given
        found.model.end(at_us)
        found.model = None

    # ---- tools

    def _ephemeral(self, found: Execution, progress: Progress) -> None:
        data, at_us = progress.data, progress.at_us
        if progress.kind == "tool.started":
            key, name = str(data["key"]), str(data["name"])
            agent = progress.state.agent
            index = key.rpartition(".c")[2]
            call = agent.calls[int(index)] if index.isdigit() and int(index) < len(agent.calls) else None
            given: dict[str, Any] = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": name,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": call.id if call else None,
                "treadle.tool.kind": call.kind if call else None,
            }
            if self._content:
                given["gen_ai.tool.call.arguments"] = self._json(data["args"])
            span = self._leaf(f"execute_tool {name}", found.inside(), at_us, given)
            found.tools[key] = (call.id if call else key, span, 0)
        elif progress.kind == "tool.finished" and (open_one := found.tools.get(str(data["key"]))):
            found.tools[str(data["key"])] = (open_one[0], open_one[1], at_us)
        elif progress.kind == "waiting" and found.wait is None:
            found.wait = self._leaf(f"wait {data['kind']}", found.inside(), at_us, {"treadle.wait": data["kind"]})

    def _results(self, found: Execution, event: ToolsFinished, at_us: int) -> None:
        results = {result.id: result for result in event.results}
        for key, (call_id, span, ended) in list(found.tools.items()):
            result = results.get(call_id)
            if result is None:
                continue
            del found.tools[key]
            span.given["treadle.tool.status"] = result.status
            if self._content:
                span.given["gen_ai.tool.call.result"] = self._text(result.content)[:LONGEST]
            span.end(ended or at_us, "" if result.status == "ok" else f"tool-{result.status}")
        parts = [{"type": "tool_call_response", "id": one.id, "response": one.content} for one in event.results]
        self._told(found, "tool", parts)

    def _told(self, found: Execution, role: str, parts: list[dict[str, Any]]) -> None:
        if self._content:
            found.told.append({"role": role, "parts": parts})

    # ---- waits, compactions, and what is worth a mark

    def _waits(self, found: Execution, progress: Progress) -> bool:
        data, at_us = progress.data, progress.at_us
        if isinstance(data, ev.Suspended):
            if found.wait is None:
                given = {"treadle.wait": data.kind, "treadle.request.id": data.id}
                found.wait = self._leaf(f"wait {data.kind}", found.inside(), at_us, given)
            return True
        if isinstance(data, ev.WaitEnded | ev.Answered) and found.wait is not None:
            if isinstance(data, ev.Answered):
                found.wait.given["treadle.decision"] = data.decision
            found.wait.end(at_us)
            found.wait = None
            return True
        return False

    def _noted(self, found: Execution, progress: Progress) -> None:
        kind, data, at_us = progress.kind, progress.data, progress.at_us
        if kind == "compaction.intended":
            given = {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": data.model.partition(":")[2] or data.model,
            }
            given |= {"treadle.compaction.depth": data.depth, "treadle.compaction.before": data.before}
            found.model = self._leaf("compaction", found.inside(), at_us, given)
        elif kind in ("compacted", "compaction.failed"):
            error = str(data.reason) if kind == "compaction.failed" else ""
            if found.model is None:
                found.model = self._leaf("compaction", found.inside(), at_us, {"treadle.compaction.depth": data.depth})
            usage = getattr(data, "usage", None)
            if usage is not None:
                found.model.given["gen_ai.usage.input_tokens"] = usage.input_tokens
                found.model.given["gen_ai.usage.output_tokens"] = usage.output_tokens
            found.model.end(at_us, error)
            found.model = None
        elif kind in NOTED:
            fields = {"treadle.seq": progress.seq}
            for name in ("guard", "response", "count", "rung", "model", "step", "status", "by", "decision"):
                if (value := getattr(data, name, None)) not in (None, ""):
                    fields[f"treadle.{name}"] = value
            found.inside().span.add_event(kind, self._safe(fields), timestamp=at_us * 1000)

    # ---- workflows

    def _of_workflow(self, found: Execution, progress: Progress) -> None:
        data, at_us = progress.data, progress.at_us
        match data:
            case wf.PhaseStarted():
                self._end_task(found, data.task, at_us)
                given = {"treadle.task": data.task, "treadle.round": data.round, "treadle.phase": data.phase}
                found.tasks[data.task] = self._span(f"{data.phase} {data.task}", found.root, at_us, given)
            case wf.ChildStarted() if data.task in found.tasks:
                self._parents[data.child] = found.tasks[data.task]
            case wf.CandidateSaved() | wf.RoundJudged() | wf.TaskFinished() | wf.TaskSkipped() | wf.TaskSuspended():
                self._end_task(found, data.task, at_us)
            case wf.TaskFailed():
                self._end_task(found, data.task, at_us, data.code)
            case wf.WorkflowStopped():
                self._finish(found, progress, data.status, data.code, "")
            case wf.WorkflowInterrupted():
                for key in list(found.tasks):
                    self._end_task(found, key, at_us, WITHDRAWN)
            case _:
                pass

    def _end_task(self, found: Execution, key: str, at_us: int, error: str = "") -> None:
        if (task := found.tasks.pop(key, None)) is not None:
            task.end(at_us, error)

    # ---- what may be written

    def _text(self, text: str) -> str:
        return self._redact(text)

    def _safe(self, given: dict[str, Any]) -> dict[str, Any]:
        """Without what has no value, and without secrets; what can be none is not looked at."""
        return {
            name: value if not isinstance(value, str) or name in CONSTANT else self._redact(value)
            for name, value in given.items()
            if value is not None
        }

    def _json(self, value: Any) -> str:
        return self._redact(json.dumps(value, ensure_ascii=False, default=str))[:LONGEST]


PROVIDERS = {
    "google": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "grok": "x_ai",
    "azure": "azure.ai.openai",
}


def _first(execution_id: str) -> SpanContext:
    trace_id, span_id = first_ids(execution_id)
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
