"""What users and we ourselves test with: scripted models and endpoints that keep a bill of their own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bill import Bill, Charge, read_bill
    from .clock import VirtualClock
    from .crash import KillAt, Reached, crash_points
    from .endpoint import ScriptedEndpoint
    from .model import ScriptedModel
    from .script import Fault, Turn
    from .server import Answer, LocalServer, Received

__all__ = [
    "Answer",
    "Bill",
    "Charge",
    "Fault",
    "KillAt",
    "LocalServer",
    "Reached",
    "Received",
    "ScriptedEndpoint",
    "ScriptedModel",
    "Turn",
    "VirtualClock",
    "crash_points",
    "read_bill",
]

_HOME = {
    "Answer": "server",
    "Bill": "bill",
    "Charge": "bill",
    "Fault": "script",
    "KillAt": "crash",
    "LocalServer": "server",
    "Reached": "crash",
    "Received": "server",
    "ScriptedEndpoint": "endpoint",
    "ScriptedModel": "model",
    "Turn": "script",
    "VirtualClock": "clock",
    "crash_points": "crash",
    "read_bill": "bill",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
