"""Arguments of a call that has been validated against its schema."""

from __future__ import annotations

from typing import Any

from treadle.core.messages import ToolCall


def _value(call: ToolCall, name: str) -> Any:
    return call.args.get(name) if isinstance(call.args, dict) else None


def text(call: ToolCall, name: str) -> str:
    """A required string."""
    return str(_value(call, name))


def optional_text(call: ToolCall, name: str) -> str | None:
    """A string, or None where it was not given."""
    value = _value(call, name)
    return None if value is None else str(value)


def optional_int(call: ToolCall, name: str) -> int | None:
    """A whole number; JSON has 3.0 for 3, too."""
    value = _value(call, name)
    return None if value is None else int(value)


def optional_float(call: ToolCall, name: str) -> float | None:
    """A number."""
    value = _value(call, name)
    return None if value is None else float(value)
