"""What a task group raised, as the one error that it was."""

from __future__ import annotations

from typing import cast


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error of a task group that had one."""
    first: BaseException = errors.exceptions[0]
    while isinstance(first, BaseExceptionGroup):
        first = cast("BaseExceptionGroup[BaseException]", first).exceptions[0]
    return first
