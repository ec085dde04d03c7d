"""Progress for people and programs. An observer can neither slow down nor change a loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple


class Progress(NamedTuple):
    """Something happened. `kind` is an event's kind, or an ephemeral one: text.delta, tool.started, tool.finished, call.started."""

    execution_id: str
    seq: int  # of the record; 0 for what is never recorded
    kind: str
    data: Any  # the event, or a small dict
    state: Any  # the state after it (kernel.states.LoopState)
    at_us: int


class Observer(ABC):
    """Takes notes. `notify` returns at once and never raises into the loop."""

    wants_text: bool = False  # whether it shows a response while it is being written: only then is it streamed
    ignores: frozenset[str] = frozenset()  # kinds that mean nothing to it: it need not be told of them
    hears_children: bool = True  # whether it is told of executions inside a workflow as well

    @abstractmethod
    def notify(self, progress: Progress) -> None:
        """Called on the event loop's thread, in order."""

    def flush(self) -> None:
        """That was all for now: what is held back can be written."""

    def close(self) -> None:
        """No more will come."""
