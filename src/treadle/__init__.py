"""Treadle runs an AI agent in a bounded act-evaluate loop that survives anything.

The public names are imported when they are first used, so that `import treadle` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treadle.app.api import Result, resume, resume_sync, run, run_sync
    from treadle.core.errors import TreadleError
    from treadle.core.usage import Usage
    from treadle.ports.callback import RoundContext, Verdict, accept, reject
    from treadle.ports.toolset import Toolset
    from treadle.spec.definitions import Agent, Command, Judge, Loop, Person
    from treadle.tools.function import tool

__version__ = "0.1.0"

_HOMES = {
    "Agent": "treadle.spec.definitions",
    "Command": "treadle.spec.definitions",
    "Judge": "treadle.spec.definitions",
    "Loop": "treadle.spec.definitions",
    "Person": "treadle.spec.definitions",
    "Result": "treadle.app.api",
    "RoundContext": "treadle.ports.callback",
    "Toolset": "treadle.ports.toolset",
    "TreadleError": "treadle.core.errors",
    "Usage": "treadle.core.usage",
    "Verdict": "treadle.ports.callback",
    "accept": "treadle.ports.callback",
    "reject": "treadle.ports.callback",
    "resume": "treadle.app.api",
    "resume_sync": "treadle.app.api",
    "run": "treadle.app.api",
    "run_sync": "treadle.app.api",
    "tool": "treadle.tools.function",
}

__all__ = [
    "Agent",
    "Command",
    "Judge",
    "Loop",
    "Person",
    "Result",
    "RoundContext",
    "Toolset",
    "TreadleError",
    "Usage",
    "Verdict",
    "__version__",
    "accept",
    "reject",
    "resume",
    "resume_sync",
    "run",
    "run_sync",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'treadle' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
