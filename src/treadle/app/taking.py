"""How a parent takes up a child that somebody else still holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import anyio

from treadle.core.errors import OwnerAlive

if TYPE_CHECKING:
    from .runtime import Reopening

BUSY_S, BUSY_STEP_S = 10.0, 0.2  # how long whoever holds a child is let finish: a person who answers it, say

T = TypeVar("T")


async def taken(resume: Callable[[Reopening], Awaitable[T]], how: Reopening) -> T:
    """The child, ready to run.

    Who owns the parent decides over its children. Somebody who holds one for longer than an answer takes is the parent's owner
    of before, which was away and does not know yet that its time is over: it is fenced off.
    """
    with anyio.move_on_after(BUSY_S):
        while True:
            try:
                return await resume(how)
            except OwnerAlive:
                await anyio.sleep(BUSY_STEP_S)
    return await resume(replace(how, force=True))
