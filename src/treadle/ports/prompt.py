"""Sections that a user adds to the system prompt of an agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Render = Callable[[Any], str]  # of the loop's state


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the system prompt.

    static     the same bytes in every request of a loop
    catalogue  changes seldom (skills); a change starts a new, logged cache key
    dynamic    made anew for each request, and sent after what is cached
    """

    name: str
    text: str | Render
    kind: Literal["static", "catalogue", "dynamic"] = "static"
