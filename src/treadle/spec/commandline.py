"""A loop as the command line's flags define it: stored with the execution, so that resume can build it again. Keys are never in it."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from pathlib import Path
from typing import Literal

import msgspec

from treadle.core.errors import ConfigurationError, LedgerDamaged
from treadle.core.lesson_events import LessonMode
from treadle.core.scope_events import OnAccept
from treadle.core.values import Value, replace
from treadle.ports.callback import finished
from treadle.tools.mcp import MCPServer, read_servers, server_from_text

from .definitions import Agent, Child, Command, Judge, Loop, Person, Rung

CHILD_ROUNDS = 3
INSTRUCTIONS = "Work on the task until the check passes. The check: {check}"


class CommandLineChild(Value, frozen=True, kw_only=True):
    """A child in a loop file. A model, an endpoint and a price that it does not name are its parent's."""

    about: str
    instructions: str = ""
    model: str = ""
    base_url: str | None = None
    price: str | None = None
    check: str = ""
    judge: str = ""
    answers: Literal["person", "agent"] = "person"
    allow: tuple[str, ...] | None = None
    isolate: bool = False
    max_rounds: int = CHILD_ROUNDS
    max_turns: int | None = None
    max_cost_usd: Decimal | None = None
    max_time_s: float | None = None

    def to_child(self, name: str, parent: CommandLineLoop) -> Child:
        """Its definition; its workspace is its parent's."""
        own = replace(
            parent,
            name=name,
            model=self.model or parent.model,
            base_url=self.base_url or (None if self.model else parent.base_url),
            price=self.price or (None if self.model else parent.price),
            check=self.check,
            judge=self.judge,
            instructions=self.instructions,
            allow=self.allow,
            may_ask=(),
            isolate=self.isolate,
            on_accept="merge",
            max_rounds=self.max_rounds,
            max_turns=self.max_turns,
            max_cost_usd=self.max_cost_usd,
            max_time_s=self.max_time_s,
            max_tokens=None,
            plan=False,
            must_change=None,
            gates={},
            escalate_to=() if self.model else parent.escalate_to,
            children={},
        ).to_loop()
        judged = own if self.check or self.judge else dataclasses.replace(own, evaluate=finished)
        return Child(loop=dataclasses.replace(judged, workspace=None), about=self.about, answers=self.answers)


class CommandLineLoop(Value, frozen=True, kw_only=True, tag="command-line"):
    """The flags of `treadle run` that define the loop."""

    workspace: str
    model: str = ""
    base_url: str | None = None
    price: str | None = None
    agent_command: str = ""  # --agent-command: a coding agent that acts instead of a model
    check: str = ""
    check_timeout_s: float | None = None
    judge: str = ""
    protect: tuple[str, ...] = ()
    sandbox: bool = False
    mcp: tuple[str, ...] = ()  # NAME=COMMAND or NAME=URL
    allow: tuple[str, ...] | None = None  # capabilities; None: all
    may_ask: tuple[str, ...] = ()
    agent: str = ""  # --agent: a coding agent by name, with its arguments
    skills: tuple[str, ...] = ()  # folders; none: those of the workspace
    mcp_config: str = ""  # a file of servers; what it says of keys stays there
    escalate_to: tuple[str, ...] = ()  # provider:model, or provider:model=IN/OUT
    escalate_after: int = 2
    guards: dict[str, int] = {}  # noqa: RUF012 - msgspec copies it
    must_change: bool | None = None
    isolate: bool = False
    on_accept: OnAccept = "merge"
    window: int | None = None
    compact: Literal["off", "micro", "auto", "full"] = "full"
    compact_at: float = 0.8
    plan: bool = False
    max_rounds: int = 10
    max_turns: int | None = None
    max_cost_usd: Decimal | None = None
    max_time_s: float | None = None
    name: str = "run"
    instructions: str = ""
    max_turns_per_act: int = 60
    max_tokens: int | None = None
    warn_at: tuple[int, ...] = (80, 90)
    on_invalid: Literal["stop_batch", "run_valid"] = "stop_batch"
    map_budget: int | None = None
    gates: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    lessons: LessonMode = "on"
    children: dict[str, CommandLineChild] = {}  # noqa: RUF012 - msgspec copies it

    def to_loop(self) -> Loop:
        """The definition."""
        return Loop(
            name=self.name,
            act=self._act(),
            evaluate=self._evaluate(),
            workspace=self.workspace,
            max_rounds=self.max_rounds,
            max_cost_usd=self.max_cost_usd,
            max_time_s=self.max_time_s,
            max_tokens=self.max_tokens,
            protect=self.protect,
            sandbox=self.sandbox,
            guards=self.guards,
            must_change=self.must_change,
            plan=self.plan,
            isolate=self.isolate,
            on_accept=self.on_accept,
            gates=self.gates,
            lessons=self.lessons,
        )

    def _act(self) -> Agent | Command:
        if self.agent:
            return Command(agent=self.agent)
        if self.agent_command:
            return Command(command=self.agent_command)
        return Agent(
            model=self.model,
            base_url=self.base_url,
            price=self.price,
            max_turns=self.max_turns,
            max_turns_per_act=self.max_turns_per_act,
            warn_at=self.warn_at,
            on_invalid=self.on_invalid,
            instructions="\n\n".join(
                text
                for text in (self.instructions, INSTRUCTIONS.format(check=self.check) if self.check else "")
                if text
            ),
            mcp=self._servers(),
            map_budget=self.map_budget,
            escalate_to=tuple(rung(text) for text in self.escalate_to),
            escalate_after=self.escalate_after,
            context_window=self.window,
            compact=self.compact,
            compact_at=self.compact_at,
            skills=self.skills or None,
            allow=self.allow,
            may_ask=self.may_ask,
            children={name: child.to_child(name, self) for name, child in self.children.items()},
        )

    def _servers(self) -> tuple[MCPServer, ...]:
        file = read_servers(Path(self.mcp_config)) if self.mcp_config else ()
        return (*file, *map(server_from_text, self.mcp))

    def _evaluate(self) -> Command | Judge | Person:
        if self.check:
            return Command(command=self.check, timeout_s=self.check_timeout_s)
        if self.judge:
            return Judge(
                model=self.judge,
                base_url=self.base_url,
                price=self.price,
                context_window=self.window,
                compact=self.compact,
                compact_at=self.compact_at,
            )
        return Person()


def rung(text: str) -> str | Rung:
    """A model of the ladder as it is typed, with a price of its own behind `=` where it has one."""
    model, equals, price = text.strip().partition("=")
    return Rung(model=model.strip(), price=price.replace("/", ",")) if equals else model


def encode(definition: CommandLineLoop) -> str:
    """As stored. ConfigurationError for a name of a folder or a file that is not UTF-8."""
    try:
        return msgspec.json.encode(definition).decode()
    except UnicodeEncodeError as error:
        shown = str(error.object).encode(errors="backslashreplace").decode()
        raise ConfigurationError(
            f"{shown[:300]!r} is not UTF-8, and what a loop is given is stored as text."
        ) from error


def decode(text: str) -> CommandLineLoop:
    """LedgerDamaged where it is none."""
    try:
        return msgspec.json.decode(text, type=CommandLineLoop)
    except msgspec.DecodeError as error:
        raise LedgerDamaged(f"The stored definition of this execution cannot be read: {error}") from error
