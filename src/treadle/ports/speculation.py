"""Several candidates side by side, of which one is taken: what they are and what comes of them (TC-28)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple

from .callback import Verdict

MOST_CANDIDATES = 8
Select = Literal["first", "best"]
Candidate = Callable[[Any], Awaitable[Any]]
"""An async function of its TaskContext. `ctx.workspace` is a folder of its own where the speculation has a workspace."""
Validate = Callable[[Any, Any], Awaitable[Verdict | float]]
"""An async function of the candidate's context and its output: accept(), reject(feedback), or a score, which accepts. Higher is better."""


class Lost(NamedTuple):
    """A candidate that was not taken. `number` from 1; `why` is empty where it was ended before it was judged."""

    number: int
    why: str


class Speculated(NamedTuple):
    """The candidate that was taken. `number` from 1; `paths`: what it changed, which is in the workspace now."""

    number: int
    output: Any
    score: float | None
    paths: tuple[str, ...]
    lost: tuple[Lost, ...]
    execution_id: str
