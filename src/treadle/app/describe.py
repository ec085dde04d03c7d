"""What matters of an event, on one line: for `treadle log` and for the studio."""

from __future__ import annotations

from typing import Any

import msgspec

from treadle.core import events as ev
from treadle.core.messages import ModelResponded, Prompted, ToolsFinished
from treadle.core.spoken import count, duration, money, one_line


def describe(event: Any) -> str:
    """What matters of an event, on one line."""
    match event:
        case Prompted():
            return f"{event.origin}: {one_line(event.text, 120)}"
        case ModelResponded():
            calls = ", ".join(call.name for call in event.calls)
            usage = event.usage
            spent = (
                f"{usage.input_tokens:,} in, {usage.output_tokens:,} out, {money(usage.cost_usd)}, {duration(event.us)}"
            )
            return f"{event.finish}: {calls or one_line(event.text, 80)} ({spent})"
        case ToolsFinished():
            said = one_line(event.results[0].content, 80) if event.results else ""
            return f"{', '.join(result.status for result in event.results)} ({duration(event.us)}): {said}"
        case ev.ModelIntended():
            return f"{event.call} to {event.model}, at most {money(event.reserve.cost_usd)}"
        case ev.Judged():
            verdict = "accepted" if event.accept else f"rejected: {one_line(event.feedback, 120)}"
            return f"{verdict} ({duration(event.us)})"
        case ev.ActFinished() | ev.ActFailed():
            return f"{count(len(event.changed), 'file')} changed: {one_line(', '.join(event.changed), 120)}"
        case ev.ModelFailed():
            again = ", and is tried again" if event.retry_at_us is not None else ""
            return f"{event.kind}: {one_line(event.message, 160)}{again}"
        case ev.ToolIntended():
            paths = ", ".join(probe.path for probe in event.probes)
            return f"{event.call} {one_line(paths, 120)}"
        case ev.ProcessStarted():
            return f"{event.call}, process group {event.pgid}"
        case _:
            return _fields(event)


def _fields(event: Any) -> str:
    """Short fields by name: the kinds that need no words of their own."""
    skipped = ("settings", "fingerprint", "definition", "input_json", "us", "at_us")
    pairs = [
        f"{name}={one_line(str(value), 100)}"
        for name, value in msgspec.structs.asdict(event).items()
        if name not in skipped and value not in (None, "", (), False)
    ]
    return one_line(" ".join(pairs), 240)
