"""A loop as a trace: which spans, inside which, with the attributes of the GenAI conventions; no content unless asked, no secret ever."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from support.driving import DONE, FEE, PLAN, Hanging, a_loop, in_runtime, look, run_until, scripted
from support.places import Place
from treadle import Agent, Loop, Task, Usage, Workflow, accept, reject, tool
from treadle.app.runtime import Reopening
from treadle.core.errors import ConfigurationError, ToolError
from treadle.core.events import Stopped
from treadle.core.redaction import Redactor
from treadle.kernel.states import LoopState
from treadle.ports.observer import Progress
from treadle.telemetry.open_spans import FirstIds, first_ids
from treadle.telemetry.otel import traces
from treadle.telemetry.spans import Spans
from treadle.testing import Fault, Turn

SECRET = "hunter2hunter2"
LOOK = Turn(
    calls=[("look", {}), ("peek", {"what": f"a {SECRET}"})],
    usage=Usage(input_tokens=100, output_tokens=10, cache_read_tokens=60),
)


@tool(kind="read")
def peek(what: str) -> str:
    """Peeks."""
    if what == "wrong":
        raise ToolError("not-found", "nothing there")
    return f"saw {what}"


class Traced:
    """Spans in memory."""

    def __init__(self, *, content: bool = False) -> None:
        self.exporter, ids = InMemorySpanExporter(), FirstIds()
        provider = TracerProvider(id_generator=ids, shutdown_on_exit=False)
        processor = SimpleSpanProcessor(self.exporter)
        provider.add_span_processor(processor)
        self.observer = Spans(provider, ids, Redactor([SECRET]).redact, processor=processor, content=content)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def named(self, beginning: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.startswith(beginning)]

    def one(self, beginning: str) -> ReadableSpan:
        (found,) = self.named(beginning)
        return found

    def tree(self, parent: int | None = None, indent: str = "") -> list[str]:
        """Names, indented below their parents, in order of their beginning."""
        below = [span for span in self.spans if (span.parent.span_id if span.parent else None) == parent]
        lines: list[str] = []
        for span in sorted(below, key=lambda span: span.start_time or 0):
            assert span.context
            lines += [f"{indent}{span.name}", *self.tree(span.context.span_id, f"{indent}  ")]
        return lines


def loop_of(*turns: Any, evaluate: Callable[..., Any] | None = None) -> Loop:
    act = Agent(model=scripted(*turns, name="openai:gpt-5-mini"), tools=(look, peek))
    return Loop(name="test", act=act, evaluate=evaluate or (lambda ctx, output: accept()))


def told(tmp_path: Any, loop: Any, traced: Traced, then: Any = None) -> str:
    names: list[str] = []

    async def test(made: Any) -> None:
        session = await made.start(loop, f"Mend it, not {SECRET}.")
        names.append(session.execution_id)
        await session.run()
        await session.close()
        if then is not None:
            await then(made, session.execution_id)

    in_runtime("memory:", tmp_path, test, observers=(traced.observer,))
    traced.observer.close()
    return names[0]


@pytest.mark.req("AG-19")
def test_a_whole_loop_is_one_trace(tmp_path: Any) -> None:
    traced, verdicts = Traced(), iter([reject("again"), accept()])
    loop = loop_of(PLAN, LOOK, DONE, DONE, evaluate=lambda ctx, output: next(verdicts))
    execution_id = told(tmp_path, loop, traced)
    assert traced.tree() == [
        "execution test",
        "  round 1",
        "    invoke_agent test.act",
        "      chat gpt-5-mini",
        "      chat gpt-5-mini",
        "      execute_tool look",
        "      execute_tool peek",
        "      chat gpt-5-mini",
        "    evaluate",
        "  round 2",
        "    invoke_agent test.act",
        "      chat gpt-5-mini",
        "    evaluate",
    ]
    assert len({span.context.trace_id for span in traced.spans if span.context}) == 1
    root = traced.one("execution").attributes or {}
    assert root["gen_ai.conversation.id"] == execution_id
    assert (root["treadle.status"], root["treadle.code"]) == ("done", "accepted")
    assert root["gen_ai.usage.input_tokens"] == 400
    verdict = [(span.attributes or {}).get("treadle.verdict") for span in traced.named("round")]
    assert verdict == ["rejected", "accepted"]
    for span in traced.spans:
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.end_time >= span.start_time
        assert span.status.status_code is not StatusCode.ERROR


@pytest.mark.req("AG-19")
def test_calls_carry_the_genai_attributes(tmp_path: Any) -> None:
    traced = Traced()
    told(tmp_path, loop_of(PLAN, LOOK, DONE), traced)
    chat = dict(traced.named("chat")[1].attributes or {})
    assert chat["gen_ai.operation.name"] == "chat"
    assert (chat["gen_ai.provider.name"], chat["gen_ai.request.model"]) == ("openai", "gpt-5-mini")
    assert chat["gen_ai.response.finish_reasons"] == ("tool_call",)
    assert (chat["gen_ai.usage.input_tokens"], chat["gen_ai.usage.output_tokens"]) == (100, 10)
    assert chat["gen_ai.usage.cache_read.input_tokens"] == 60
    peeked = dict(traced.one("execute_tool peek").attributes or {})
    assert (peeked["gen_ai.operation.name"], peeked["gen_ai.tool.name"]) == ("execute_tool", "peek")
    assert peeked["gen_ai.tool.call.id"]
    assert dict(traced.one("invoke_agent").attributes or {})["gen_ai.agent.name"] == "test.act"


@pytest.mark.req("AG-19", "SE-01")
@pytest.mark.parametrize("content", [False, True])
def test_content_is_written_only_when_asked_for_and_secrets_never(tmp_path: Any, content: bool) -> None:
    traced = Traced(content=content)
    told(tmp_path, loop_of(PLAN, LOOK, DONE), traced)
    everything = "".join(span.to_json() for span in traced.spans)
    assert SECRET not in everything
    assert ("Mend it" in everything) is content
    assert ("saw a" in everything) is content
    if content:
        asked = json.loads(str((traced.named("chat")[0].attributes or {})["gen_ai.input.messages"]))
        assert asked[0]["role"] == "user"
        assert "Mend it, not [redacted]." in asked[0]["parts"][0]["content"]


@pytest.mark.req("AG-19")
def test_what_fails_is_marked_with_its_kind(tmp_path: Any) -> None:
    traced = Traced()
    wrong = Turn(calls=[("peek", {"what": "wrong"})], usage=FEE)
    told(tmp_path, loop_of(PLAN, wrong, Fault(status=401)), traced)
    failed = {
        span.name: (span.attributes or {}).get("error.type")
        for span in traced.spans
        if span.status.status_code is StatusCode.ERROR
    }
    assert failed["execute_tool peek"] == "tool-error"
    assert failed["chat gpt-5-mini"] == "auth"
    assert failed["execution test"] == "provider"


@pytest.mark.req("AG-19")
def test_a_resume_begins_a_trace_that_links_to_the_first(tmp_path: Any) -> None:
    hanging = Hanging(PLAN)
    traced, again = Traced(), Traced()
    loop = a_loop(hanging)

    async def test(made: Any) -> None:
        session = await made.start(loop, "Do it.")
        await run_until(session, hanging.asked)
        await session.close()
        made.observers = (again.observer,)
        session = await made.resume(session.execution_id, a_loop(scripted(PLAN, DONE)), Reopening())
        await session.run()
        await session.close()
        names.append(session.execution_id)

    names: list[str] = []
    in_runtime("memory:", tmp_path, test, observers=(traced.observer,))
    first, second = traced.one("execution"), again.one("execution")
    assert first.context
    assert second.context
    assert (first.context.trace_id, first.context.span_id) == first_ids(names[0])
    assert second.context.trace_id != first.context.trace_id
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    assert [span.name for span in traced.spans if (span.attributes or {}).get("error.type") == "interrupted"] == [
        "chat model"
    ]


@pytest.mark.req("AG-19")
def test_waiting_for_a_person_is_a_span(tmp_path: Any) -> None:
    traced = Traced()
    question = Turn(calls=[("ask_person", {"question": "Which?"})], usage=FEE)
    told(tmp_path, loop_of(PLAN, question), traced)
    assert traced.one("wait question").end_time


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "zipkin"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "grpc"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, "no address"),
    ],
)
def test_variables_that_cannot_be_met_start_nothing(environ: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        traces(environ, lambda text: text)


def test_spans_reach_a_collector_where_the_standard_variables_say(tmp_path: Any) -> None:
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    got: list[tuple[str, str | None, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((self.path, self.headers["x-team"], body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            return

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = Thread(target=server.serve_forever)
    thread.start()
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}/",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-team=a%20b",
        "OTEL_SERVICE_NAME": "night-shift",
    }
    observer = traces(environ, lambda text: text)

    async def test(made: Any) -> None:
        session = await made.start(a_loop(scripted(PLAN, DONE)), "Do it.")
        await session.run()
        await session.close()

    try:
        in_runtime("memory:", tmp_path, test, observers=(observer,))
        observer.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert {(path, team) for path, team, _ in got} == {("/v1/traces", "a b")}
    sent = b"".join(body for _, _, body in got)
    assert b"night-shift" in sent
    assert b"invoke_agent test.act" in sent


def test_a_collector_that_is_away_is_told_in_one_line_and_delays_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    observer = traces({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, lambda text: text)
    end = Stopped(status="done", code="accepted", kind="accepted")
    observer.notify(Progress("e", 1, "stopped", end, LoopState(), 1))
    observer.close()
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.req("AG-19")
def test_a_loop_inside_a_workflow_is_inside_the_span_of_its_task(tmp_path: Any) -> None:
    traced = Traced()

    async def mend(ctx: Any) -> str:
        found = await ctx.run(loop_of(PLAN, DONE), "Mend it.", key="mend")
        return str(found.output)

    async def fail(ctx: Any) -> str:
        raise ValueError("no")

    workflow = Workflow("night", [Task("mend", mend), Task("tell", fail, after=["mend"])])
    assert Place("memory", tmp_path).run(workflow, observers=(traced.observer,)).status == "failed"
    traced.observer.close()
    assert traced.tree() == [
        "execution night",
        "  perform mend",
        "    execution test",
        "      round 1",
        "        invoke_agent test.act",
        "          chat gpt-5-mini",
        "          chat gpt-5-mini",
        "        evaluate",
        "  perform tell",
    ]
    assert traced.one("perform tell").status.status_code is StatusCode.ERROR
