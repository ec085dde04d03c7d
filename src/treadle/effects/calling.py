"""Calls a person's own function, whether it is synchronous or not."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from anyio import to_thread


async def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns. A synchronous one runs in a thread; when the caller is cancelled, that is left behind."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        return await function(*arguments)
    result = await to_thread.run_sync(lambda: function(*arguments), abandon_on_cancel=True)
    return await result if inspect.isawaitable(result) else result
