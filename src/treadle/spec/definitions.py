"""A loop as an engineer writes it down: who acts, who evaluates, within which limits."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from treadle.core.errors import ConfigurationError, DefinitionError
from treadle.core.lesson_events import LessonMode
from treadle.core.messages import Message
from treadle.core.scope_events import OnAccept
from treadle.core.settings import Guards, with_guards
from treadle.core.usage import MOST_USD
from treadle.kernel.leases import parse as parse_capability
from treadle.ports.callback import Actor, Check, Iteration, RoundContext, Verdict
from treadle.ports.model import Model
from treadle.ports.prompt import Section
from treadle.ports.toolset import Toolset
from treadle.tools.mcp import MCPServer

if TYPE_CHECKING:
    from pydantic_ai.agent import AbstractAgent

LEAST_WINDOW = 2_000  # tokens: prompt, tools and an answer hardly fit into less
LEAST_RATIO = 0.1
MOST_GATES = 16
MOST_KINDS = 32
GATE_NAME = r"[\w.-]{1,40}"
LESSON_MODES = ("off", "recall", "on")

CheckFunction = Callable[[RoundContext, Any], Verdict | Awaitable[Verdict]]
ActFunction = Callable[[RoundContext, str | None], Any]


def _nothing() -> Mapping[str, Any]:
    return {}


def _no_guards() -> Mapping[str, int]:
    return {}


def _no_gates() -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A model of a ladder that is reached or priced otherwise than the agent's first (FR-21). What is None is as there."""

    model: str | Model
    base_url: str | None = None
    api_key: str | None = None
    price: str | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Child:
    """A loop that an agent may fork (FR-22): an execution of its own, which the agent waits for.

    `about` tells the agent what it is for; its task is a text. Without a workspace of its own it works in its parent's. It has no
    more leases than its parent, at most what is left of its parent's budget, and the parent's guards where it names no others.
    `answers`: who answers what it asks and judges what it leaves to a person: a person, or its parent's agent. Leave and
    plans are always a person's to give.
    """

    loop: Loop
    about: str
    answers: Literal["person", "agent"] = "person"

    def __post_init__(self) -> None:
        if not self.about.strip():
            raise DefinitionError("A child needs a line that says what it is for (about).")
        if self.answers not in ("person", "agent"):
            raise DefinitionError(f"answers is person or agent, not {self.answers!r}.")
        if self.loop.input_type not in (None, str):
            raise DefinitionError(f"The child {self.loop.name} must take a text: an agent words its task.")


def _no_children() -> Mapping[str, Child]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Agent:
    """An agent with tools.

    `model` is "provider:model", or a Model of your own. With a workspace it has the built-in file and command tools, unless
    `builtin_tools` is false; `tools` adds toolsets or plain functions, `mcp` the tools of MCP servers. Limits here are the
    actor's own policy: they count over all its rounds, and reaching one stops the loop (FR-09). `escalate_to` is the ladder
    above `model`: the next one takes over, to the end of the loop, after `escalate_after` rejections in a row (0: not for
    that), when a guard would stop it, or when its provider fails for good. A name of the same provider is reached at the same
    address, with the same key. With `children` it has the tool `fork`, and may hand tasks to those.
    """

    model: str | Model
    instructions: str = ""
    tools: Sequence[Toolset | Callable[..., Any]] = ()
    mcp: Sequence[MCPServer] = ()
    skills: Sequence[str | Path] | None = None  # folders of skills; None: .treadle/skills and .claude/skills, () none
    allow: Sequence[str] | None = None  # capabilities that it has; None: all. With one, all others are closed
    may_ask: Sequence[str] = ()  # ... and those that a person may grant besides
    rules: bool = True  # scoped rules: AGENTS.md files and .treadle/rules/*.md of the workspace
    builtin_tools: bool = True
    base_url: str | None = None
    api_key: str | None = None
    price: str | None = None  # USD per million tokens: input,output[,cache read[,cache write]]
    settings: Mapping[str, Any] = field(default_factory=_nothing)  # temperature, seed and the like
    max_output_tokens: int | None = None
    context_window: int | None = None  # tokens; for a model whose window is not known
    compact: Literal["off", "micro", "auto", "full"] = "full"  # how deep the history is compacted at most
    compact_at: float = 0.8  # of the window without the reserved answer: from here on it is compacted
    sections: Sequence[Section] = ()  # of the system prompt, besides Treadle's own and the instructions
    role: str = ""  # canonical role; transcripts and lessons are filed under it
    max_turns: int | None = None
    max_cost_usd: Decimal | None = None
    max_time_s: float | None = None
    max_turns_per_act: int = 60
    warn_at: tuple[int, ...] = (80, 90)  # per cent of the turns at which it is told to wrap up (AG-04)
    on_invalid: Literal["stop_batch", "run_valid"] = "stop_batch"
    history: Literal["continue", "fresh"] = "continue"
    examples: tuple[Message, ...] = ()
    static_prompt: str | None = None  # instead of Treadle's own
    tool_choice: Literal["auto", "required"] = "auto"
    map_budget: int | None = (
        None  # tokens of the map of the workspace in the first prompt; 0: none; None: where it pays
    )
    escalate_to: Sequence[str | Model | Rung] = ()
    escalate_after: int = 2
    children: Mapping[str, Child] = field(default_factory=_no_children)

    def __post_init__(self) -> None:
        if isinstance(self.model, str) and not self.model.strip():
            raise DefinitionError("An agent needs a model, as provider:model.")
        for capability in (*(self.allow or ()), *self.may_ask):
            parse_capability(capability)
        if self.may_ask and self.allow is None:
            raise DefinitionError("may_ask needs allow: an agent that may do everything has nothing to ask for.")
        names = [server.name for server in self.mcp]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise DefinitionError(f"Two MCP servers have the name {twice[0]}.")
        if isinstance(self.escalate_to, str):
            raise DefinitionError(f"escalate_to is a sequence of models; write escalate_to=({self.escalate_to!r},).")
        if any(isinstance(one, str) and not one.strip() for one in self.escalate_to):
            raise DefinitionError("escalate_to names an empty model.")
        _at_least("escalate_after", self.escalate_after, 0)
        _at_least("max_turns_per_act", self.max_turns_per_act, 1)
        _at_least("context_window", self.context_window, LEAST_WINDOW)
        if not LEAST_RATIO <= self.compact_at <= 1:
            raise DefinitionError(f"compact_at must be between {LEAST_RATIO} and 1, not {self.compact_at!r}.")
        _at_least("max_turns", self.max_turns, 1)
        if any(type(one) is not int or not 0 < one < 100 for one in self.warn_at):
            raise DefinitionError(f"warn_at lists whole per cents between 0 and 100, not {self.warn_at!r}.")
        _at_least("map_budget", self.map_budget, 0)
        check_children(self)


@dataclass(frozen=True, kw_only=True)
class Judge(Agent):
    """An evaluating agent: it may look, but not change; it ends with a verdict."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command that acts (any coding agent or script, AG-26) or checks (exit code 0 accepts)."""

    command: str | Sequence[str] = ()
    timeout_s: float | None = None
    agent: str = ""  # instead: a coding agent by name, with arguments of yours; its output is understood

    def __post_init__(self) -> None:
        if self.agent:
            return
        if not self.command or (isinstance(self.command, str) and not self.command.strip()):
            raise DefinitionError("The command is empty.")


GateForm = str | Command | Check | CheckFunction


@dataclass(frozen=True)
class Person:
    """A person evaluates: the loop waits, durably, for approve or reject."""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A bounded act-evaluate loop. Either of its two may be an agent of pydantic-ai, as it is.

    `act` works on the task; `evaluate` accepts or rejects with feedback, which opens the next round, up to `max_rounds`.
    `evaluate` as a string is a command. The limits are totals over act and evaluate. `guards` are thresholds by name ("repeat": 6;
    0 is off), for act and evaluate alike. `must_change`: whether the task must change something in the workspace; where it is
    None its words tell. With True, nothing is accepted without a change. `isolate`: act works in a git worktree of the
    workspace's repository, on a branch of its own that starts at HEAD; what is accepted is merged, or left as a branch, as
    `on_accept` says. `gates` are named checks that each round must pass before `evaluate` is asked; one that failed and passed
    later teaches a lesson, once the work is accepted. `lessons`: off, recall
    (earlier ones are told), or on (accepted work teaches new ones besides). `on_loop_recovery(rejected, accepted)` words what an
    accepted loop learnt from its last rejection: a text, several, or None; after a crash it may be asked again.
    """

    name: str
    act: Agent | Command | AbstractAgent[Any, Any] | Actor | ActFunction
    evaluate: str | Command | Agent | AbstractAgent[Any, Any] | Person | Check | CheckFunction
    workspace: str | Path | None = None
    max_rounds: int = 10
    max_turns: int | None = None
    max_cost_usd: Decimal | None = None
    max_time_s: float | None = None
    max_tokens: int | None = None
    protect: Sequence[str] = ()
    sandbox: bool = False
    guards: Mapping[str, int] = field(default_factory=_no_guards)
    must_change: bool | None = None
    plan: bool = False  # act only looks until a person has approved its plan (plan mode)
    isolate: bool = False
    on_accept: OnAccept = "merge"
    input_type: type[Any] | None = None  # str, or a pydantic model or dataclass; the task text is made by `prompt`
    prompt: Callable[[Any], str] | None = None
    version: str = "1"
    gates: Mapping[str, GateForm] = field(default_factory=_no_gates)
    lessons: LessonMode = "on"
    on_loop_recovery: Callable[[Iteration, Iteration], Any] | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise DefinitionError("A loop needs a name.")
        check_gates(self.gates)
        if self.lessons not in LESSON_MODES:
            raise DefinitionError(f"lessons is one of {', '.join(LESSON_MODES)}, not {self.lessons!r}.")
        _at_least("max_rounds", self.max_rounds, 1)
        for name in ("max_turns", "max_tokens"):
            _at_least(name, getattr(self, name), 1)
        if self.max_time_s is not None and not 0 < self.max_time_s < float("inf"):
            raise DefinitionError(f"max_time_s must be above 0, not {self.max_time_s}.")
        check_cost("max_cost_usd", self.max_cost_usd)
        check_guards(self.guards)
        if self.on_accept not in ("merge", "branch"):
            raise DefinitionError(f"on_accept is merge or branch, not {self.on_accept!r}.")
        if isinstance(self.evaluate, str) and not self.evaluate.strip():
            raise DefinitionError("The check command is empty.")
        if self.plan and not isinstance(self.act, Agent):
            raise DefinitionError("Plan mode (plan=True) needs an Agent that acts: nothing else can be held back.")


def _at_least(name: str, value: object, least: int) -> None:
    """Whole numbers only: True is none (FR-11)."""
    if value is None:
        return
    if type(value) is not int or value < least:
        raise DefinitionError(f"{name} must be a whole number of at least {least}, not {value!r}.")


def check_guards(guards: Mapping[str, int]) -> None:
    """DefinitionError for a guard that there is not, or a threshold that it cannot have."""
    try:
        with_guards(Guards(), guards)
    except ConfigurationError as error:
        raise DefinitionError(str(error)) from error


def check_children(agent: Agent) -> None:
    """DefinitionError for a child without a usable name, or one that no lease could hold."""
    if len(agent.children) > MOST_KINDS:
        raise DefinitionError(f"An agent has at most {MOST_KINDS} children to choose from, not {len(agent.children)}.")
    for name, child in agent.children.items():
        if not re.fullmatch(GATE_NAME, name):
            raise DefinitionError(
                f"{name!r} is no name of a child: up to 40 letters, digits, dots, dashes and underscores."
            )
        if agent.allow is not None and not isinstance(child.loop.act, Agent):
            raise DefinitionError(
                f"The child {name} is acted by a command or a function, which no lease holds, and its parent has leases (allow)."
            )


def check_gates(gates: Mapping[str, Any]) -> None:
    """DefinitionError for a gate without a name or a command, or for too many."""
    if len(gates) > MOST_GATES:
        raise DefinitionError(f"A loop has at most {MOST_GATES} gates, not {len(gates)}.")
    for name, gate in gates.items():
        if not re.fullmatch(GATE_NAME, name):
            raise DefinitionError(
                f"{name!r} is no name of a gate: up to 40 letters, digits, dots, dashes and underscores."
            )
        if isinstance(gate, str) and not gate.strip():
            raise DefinitionError(f"The gate {name} has an empty command.")


def check_cost(name: str, value: object) -> None:
    """DefinitionError unless it is None or a finite Decimal above 0."""
    if value is None:
        return
    if type(value) is not Decimal or not value.is_finite() or not 0 < value <= MOST_USD:
        raise DefinitionError(f"{name} must be a Decimal above 0 and at most {MOST_USD:,}, not {value!r}.")
