"""Traces by OpenTelemetry: where they go, by its standard variables. What the spans are is in `spans`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from treadle.core.errors import ConfigurationError
from treadle.ports.observer import Observer

from .sinks import Aside

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONTENT_WANTED = ("true", "span_only", "span_and_event")
PROTOCOL = "http/protobuf"
SERVICE = "treadle"


def traces(environ: Mapping[str, str], redact: Callable[[str], str]) -> Observer:
    """An observer that exports spans as the `OTEL_*` variables say. ConfigurationError where the extra is missing or they cannot be met."""
    try:
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from .open_spans import FirstIds
        from .spans import Spans
    except ImportError as error:
        raise ConfigurationError(
            "--sink otel needs OpenTelemetry, which is not installed: pip install 'treadle[otel]'."
        ) from error
    complaints = _Complaints()
    exporter = _exporter(environ)
    # Resource.create takes OTEL_RESOURCE_ATTRIBUTES in; the sampler and the batches have variables of their own.
    resource = Resource.create({SERVICE_NAME: environ.get("OTEL_SERVICE_NAME") or SERVICE})
    ids = FirstIds()
    provider = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)
    processor = None
    if exporter is not None and environ.get("OTEL_SDK_DISABLED", "").lower() != "true":
        processor = BatchSpanProcessor(exporter)
        provider.add_span_processor(processor)

    def close() -> None:
        provider.shutdown()
        complaints.say()

    content = environ.get(CONTENT, "").lower() in CONTENT_WANTED
    return Aside(Spans(provider, ids, redact, processor=processor, content=content, on_close=close))


def _exporter(environ: Mapping[str, str]) -> SpanExporter | None:
    kind = environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    if kind == "none":
        return None
    if kind == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)
    if kind != "otlp":
        raise ConfigurationError(f"OTEL_TRACES_EXPORTER={kind} is not supported: otlp, console or none.")
    protocol = (
        environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or PROTOCOL
    )
    if protocol != PROTOCOL:
        raise ConfigurationError(f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol} is not supported: {PROTOCOL}.")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=_endpoint(environ), headers=_headers(environ))


def _endpoint(environ: Mapping[str, str]) -> str | None:
    if own := environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        address = own
    elif base := environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        address = f"{base.rstrip('/')}/v1/traces"
    else:
        return None
    if not address.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"OTEL_EXPORTER_OTLP_ENDPOINT is no address: {address}. Example: http://localhost:4318"
        )
    return address


def _headers(environ: Mapping[str, str]) -> dict[str, str] | None:
    """name=value, separated by commas, values percent-encoded."""
    from urllib.parse import unquote

    text = environ.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or environ.get("OTEL_EXPORTER_OTLP_HEADERS") or ""
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    return {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs} or None


class _Complaints(logging.Handler):
    """What the SDK complains of, told once at the end and not across the view; an exporter's trouble is no fault of the loop's."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._count, self._last = 0, ""
        log = logging.getLogger("opentelemetry")
        log.addHandler(self)
        log.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self._count += 1
        self._last = record.getMessage()

    def say(self) -> None:
        """One line where there was any."""
        logging.getLogger("opentelemetry").removeHandler(self)
        if self._count:
            from treadle.core.spoken import count, one_line

            sys.stderr.write(f"treadle: otel: {count(self._count, 'problem')}, the last: {one_line(self._last, 300)}\n")
