"""A new execution that goes on from a record of another one (FR-22, LG-01)."""

from __future__ import annotations

from .scope_events import Isolation
from .values import Value


class Forked(Value, frozen=True, kw_only=True):
    """The records before this one are copies: what they counted counts here, too (FR-08)."""

    execution_id: str  # the new one
    source: str
    at: int  # the last record that was copied
    actor: str
    workspace: str = ""  # where the files are as they were then; empty: nothing was put back
    scope: Isolation | None = None
