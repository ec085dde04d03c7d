"""Spans under way: what is open of an execution, and the ids of its first trace. Needs the extra `otel`."""

from __future__ import annotations

import threading
from hashlib import blake2b
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode

WITHDRAWN = "interrupted"
WELL, FAILED = Status(), Status(StatusCode.ERROR)


class FirstIds(RandomIdGenerator):
    """Random ids, except for the root of an execution's first trace: those follow from its id, so that any later process can link to it."""

    def __init__(self) -> None:
        self._next = threading.local()

    def as_first(self, execution_id: str) -> None:
        """The next span is the root of that trace."""
        self._next.ids = first_ids(execution_id)

    def generate_trace_id(self) -> int:
        ids = getattr(self._next, "ids", None)
        return ids[0] if ids else super().generate_trace_id()

    def generate_span_id(self) -> int:
        ids = getattr(self._next, "ids", None)
        self._next.ids = None
        return ids[1] if ids else super().generate_span_id()


def first_ids(execution_id: str) -> tuple[int, int]:
    """(trace id, span id) of the root of the first trace of an execution."""
    digest = blake2b(execution_id.encode(), digest_size=24, person=b"treadle trace").digest()
    return int.from_bytes(digest[:16], "big") or 1, int.from_bytes(digest[16:], "big") or 1


class Open:
    """A span under way, and what it is inside."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.context_of_span = span.get_span_context()
        self.context: Context = trace.set_span_in_context(span, Context())

    def end(self, at_us: int, error: str = "") -> None:
        """Ends it, as failed where there is an error."""
        if error:
            self.span.set_attribute("error.type", error)
            self.span.set_status(Status(StatusCode.ERROR))
        self.span.end(end_time=at_us * 1000)


class Leaves:
    """Makes the spans that nothing goes into, when they end and with all their attributes at once: there are some in each turn, and
    the SDK's own way, which begins each, locks it and looks at every value, takes several times as long."""

    def __init__(self, provider: TracerProvider, processor: SpanProcessor | None) -> None:
        limits = SpanLimits()
        self.longest = limits.max_span_attribute_length
        self._resource, self._processor, self._new_id = (
            provider.resource,
            processor,
            RandomIdGenerator().generate_span_id,
        )
        self._scope = InstrumentationScope("treadle")

    def end(self, leaf: Leaf, at_us: int, error: str) -> None:
        """Hands it to the exporter, unless its trace is not sampled."""
        parent = leaf.inside.context_of_span
        if self._processor is None or not parent.trace_flags.sampled:
            return
        given = leaf.given
        if error:
            given["error.type"] = error
        if self.longest is not None:
            given = {name: one[: self.longest] if isinstance(one, str) else one for name, one in given.items()}
        self._processor.on_end(
            ReadableSpan(
                leaf.name,
                SpanContext(parent.trace_id, self._new_id(), is_remote=False, trace_flags=parent.trace_flags),
                parent=parent,
                resource=self._resource,
                attributes=given,
                kind=leaf.kind,
                status=FAILED if error else WELL,
                start_time=leaf.at_us * 1000,
                end_time=at_us * 1000,
                instrumentation_scope=self._scope,
            )
        )


class Leaf:
    """A span that nothing goes into."""

    def __init__(
        self, leaves: Leaves, name: str, inside: Open, given: dict[str, Any], at_us: int, kind: SpanKind
    ) -> None:
        self._leaves, self.name, self.inside, self.given, self.at_us, self.kind = (
            leaves,
            name,
            inside,
            given,
            at_us,
            kind,
        )

    def end(self, at_us: int, error: str = "") -> None:
        """Makes it, as failed where there is an error."""
        self._leaves.end(self, at_us, error)


class Execution:
    """The open spans of one execution."""

    def __init__(self, root: Open) -> None:
        self.root = root
        self.round: Open | None = None
        self.number = 0
        self.phase: Open | None = None
        self.phase_name = ""
        self.model: Leaf | None = None
        self.wait: Leaf | None = None
        self.tools: dict[str, tuple[str, Leaf, int]] = {}  # key -> (id of the call, span, when it ended; 0: it has not)
        self.tasks: dict[str, Open] = {}
        self.told: list[dict[str, Any]] = []  # messages since the last request, where content is wanted

    def inside(self) -> Open:
        """The innermost span that others go into."""
        return self.phase or self.round or self.root

    def cut(self, at_us: int, why: str) -> None:
        """Ends what is in flight."""
        for part in (self.model, self.wait, *(span for _, span, ended in self.tools.values() if not ended)):
            if part is not None:
                part.end(at_us, why)
        for _, span, ended in self.tools.values():
            if ended:
                span.end(ended)
        self.model = self.wait = None
        self.tools = {}

    def end(self, at_us: int, why: str = "") -> None:
        """Ends all of it but the root."""
        self.cut(at_us, why or WITHDRAWN)
        for part in (*self.tasks.values(), self.phase, self.round):
            if part is not None:
                part.end(at_us)
        self.phase = self.round = None
        self.tasks = {}
