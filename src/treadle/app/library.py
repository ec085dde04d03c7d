"""Agents of the model library that stand in a definition as they are, where an agent of ours could."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

from treadle.core.usage import Usage
from treadle.ports.clock import Clock

if TYPE_CHECKING:
    from pydantic_ai.agent import AbstractAgent

    from treadle.models.agents import LibraryAgent


def library_agent(value: object, clock: Clock) -> LibraryAgent | None:
    """An agent of pydantic-ai, ready to act or to judge; None for anything else. DefinitionError, ConfigurationError."""
    if (library := sys.modules.get("pydantic_ai.agent")) is None or not isinstance(value, library.AbstractAgent):
        return None  # what has not been imported has no instances, and importing it takes half a second
    from treadle.models.agents import LibraryAgent

    return LibraryAgent(cast("AbstractAgent[Any, Any]", value), now_us=clock.wall_us)


def unpriced_agent(*parts: object) -> str:
    """The name of such an agent's model that has no known price; empty where all have one."""
    for part in parts:
        agent: LibraryAgent | None = getattr(part, "library", None)
        if agent is not None and agent.price(Usage(input_tokens=1, output_tokens=1, requests=1)) is None:
            return agent.name
    return ""
