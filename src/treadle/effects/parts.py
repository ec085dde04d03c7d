"""What an actor consists of when it runs: models, tools and prompts, made by the composition root from a definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from treadle.core.messages import Message
from treadle.kernel.escalation import rung_of
from treadle.kernel.states import LoopState
from treadle.ports.callback import Actor, Check
from treadle.ports.children import Above, Children
from treadle.ports.model import Model
from treadle.ports.prompt import Section
from treadle.ports.scope import Isolated, Scope
from treadle.ports.toolset import Toolset

from .lessons import LessonParts
from .mounts import Mounts


@dataclass(frozen=True, slots=True)
class AgentParts:
    """One agent. `static` is the same bytes in every request of the loop; `dynamic` is asked before each (AG-14)."""

    model: Model
    toolset: Toolset
    static: str
    mounts: Mounts | None = None
    ceiling: tuple[str, ...] | None = None  # what it may be granted at most; None: everything
    dynamic: Callable[[LoopState], str] | None = None
    sections: tuple[Section, ...] = ()
    examples: tuple[Message, ...] = ()
    tool_choice: Literal["auto", "required"] = "auto"
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    ladder: tuple[Model, ...] = ()  # what follows `model`, from rung 1 (FR-21)

    def models(self) -> tuple[Model, ...]:
        """All its models, by rung."""
        return (self.model, *self.ladder)

    def model_of(self, state: LoopState) -> Model:
        """The model that the loop stands on; the last one where a changed definition has fewer."""
        rung = rung_of(state)
        return self.model if not rung else self.models()[min(rung, len(self.ladder))]


@dataclass(frozen=True, slots=True)
class LoopParts:
    """Everything that a loop's actions are performed with."""

    act: AgentParts | Actor
    evaluate: AgentParts | Check | None  # None: a person evaluates
    scope: Scope | None
    redact: Callable[[str], str]
    redact_known: Callable[[str], str] = str  # what is run as it stands loses known values alone
    isolated: Isolated | None = None  # where the workspace is a scope of its own
    map_cache: Path | None = None  # the folder in which maps keep what they have read
    children: Children | None = None  # that its agent may fork
    above: Above | None = None  # of a child: what holds for its calls now
    lessons: LessonParts = LessonParts()  # noqa: RUF009 - frozen, and empty
    output_limit: int = 12_000  # characters of a tool's output that go into the prompt
