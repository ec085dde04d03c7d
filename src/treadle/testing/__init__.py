"""What users and we ourselves test with: scripted models and endpoints that keep a bill of their own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bill import Bill, Charge, read_bill
    from .endpoint import ScriptedEndpoint
    from .model import ScriptedModel
    from .script import Fault, Turn
    from .server import Answer, LocalServer, Received

__all__ = [
    "Answer",
    "Bill",
    "Charge",
    "Fault",
    "LocalServer",
    "Received",
    "ScriptedEndpoint",
    "ScriptedModel",
    "Turn",
    "read_bill",
]

_HOME = {
    "Answer": "server",
    "Bill": "bill",
    "Charge": "bill",
    "Fault": "script",
    "LocalServer": "server",
    "Received": "server",
    "ScriptedEndpoint": "endpoint",
    "ScriptedModel": "model",
    "Turn": "script",
    "read_bill": "bill",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
