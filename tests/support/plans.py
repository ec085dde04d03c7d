"""Calls of the plan's tools, and of commands that verify steps."""

from __future__ import annotations

from typing import Any

from support.machine import call
from treadle.core.messages import ToolCall


def write_plan(*steps: Any, id: str = "") -> ToolCall:
    return call("write_plan", "plan", id, steps=list(steps))


def update(step: str, status: str, **more: Any) -> ToolCall:
    return call("update_step", "plan", f"update-{step}-{status}", step=step, status=status, **more)


def run(command: str, id: str = "") -> ToolCall:
    return call("run_command", "mutating", id or f"run-{command}", command=command)
