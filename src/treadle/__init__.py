"""Treadle runs an AI agent in a bounded act-evaluate loop that survives anything.

The public names are imported when they are first used, so that `import treadle` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treadle.app.api import Result, resume, resume_sync, run, run_sync
    from treadle.app.logs import log_tail
    from treadle.app.workflows import Decision, WorkflowResult, resume_workflow, run_workflow, speculate
    from treadle.core.errors import ChildFailed, LoopExhausted, NoneAccepted, TreadleError
    from treadle.core.usage import Usage
    from treadle.ports.callback import RoundContext, Verdict, accept, finished, reject
    from treadle.ports.prompt import Section
    from treadle.ports.speculation import Lost, Speculated
    from treadle.ports.task import LoopTaskContext, QuotaReached, TaskContext
    from treadle.ports.toolset import Toolset
    from treadle.spec.definitions import Agent, Child, Command, Judge, Loop, Person, Rung
    from treadle.spec.workflows import (
        ApprovalTask,
        Asks,
        Budget,
        LoopTask,
        OnQuota,
        PauseTask,
        Retry,
        RunTask,
        Task,
        Workflow,
    )
    from treadle.tools.function import tool
    from treadle.tools.mcp import MCPServer

__version__ = "0.1.0"

_HOMES = {
    "Agent": "treadle.spec.definitions",
    "Child": "treadle.spec.definitions",
    "Section": "treadle.ports.prompt",
    "ApprovalTask": "treadle.spec.workflows",
    "Asks": "treadle.spec.workflows",
    "Budget": "treadle.spec.workflows",
    "ChildFailed": "treadle.core.errors",
    "Command": "treadle.spec.definitions",
    "Decision": "treadle.app.workflows",
    "Judge": "treadle.spec.definitions",
    "Loop": "treadle.spec.definitions",
    "LoopTask": "treadle.spec.workflows",
    "LoopTaskContext": "treadle.ports.task",
    "LoopExhausted": "treadle.core.errors",
    "Lost": "treadle.ports.speculation",
    "MCPServer": "treadle.tools.mcp",
    "NoneAccepted": "treadle.core.errors",
    "OnQuota": "treadle.spec.workflows",
    "PauseTask": "treadle.spec.workflows",
    "Person": "treadle.spec.definitions",
    "QuotaReached": "treadle.ports.task",
    "Result": "treadle.app.api",
    "Retry": "treadle.spec.workflows",
    "RoundContext": "treadle.ports.callback",
    "RunTask": "treadle.spec.workflows",
    "Rung": "treadle.spec.definitions",
    "Speculated": "treadle.ports.speculation",
    "Task": "treadle.spec.workflows",
    "TaskContext": "treadle.ports.task",
    "Toolset": "treadle.ports.toolset",
    "TreadleError": "treadle.core.errors",
    "Usage": "treadle.core.usage",
    "Verdict": "treadle.ports.callback",
    "Workflow": "treadle.spec.workflows",
    "WorkflowResult": "treadle.app.workflows",
    "accept": "treadle.ports.callback",
    "finished": "treadle.ports.callback",
    "log_tail": "treadle.app.logs",
    "reject": "treadle.ports.callback",
    "resume": "treadle.app.api",
    "resume_sync": "treadle.app.api",
    "resume_workflow": "treadle.app.workflows",
    "run": "treadle.app.api",
    "run_sync": "treadle.app.api",
    "run_workflow": "treadle.app.workflows",
    "speculate": "treadle.app.workflows",
    "tool": "treadle.tools.function",
}

__all__ = [
    "Agent",
    "ApprovalTask",
    "Asks",
    "Budget",
    "Child",
    "ChildFailed",
    "Command",
    "Decision",
    "Judge",
    "Loop",
    "LoopExhausted",
    "LoopTask",
    "LoopTaskContext",
    "Lost",
    "MCPServer",
    "NoneAccepted",
    "OnQuota",
    "PauseTask",
    "Person",
    "QuotaReached",
    "Result",
    "Retry",
    "RoundContext",
    "RunTask",
    "Rung",
    "Section",
    "Speculated",
    "Task",
    "TaskContext",
    "Toolset",
    "TreadleError",
    "Usage",
    "Verdict",
    "Workflow",
    "WorkflowResult",
    "__version__",
    "accept",
    "finished",
    "log_tail",
    "reject",
    "resume",
    "resume_sync",
    "resume_workflow",
    "run",
    "run_sync",
    "run_workflow",
    "speculate",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'treadle' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
