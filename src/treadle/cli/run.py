"""`treadle run`: flags and settings become a loop, and the loop runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from treadle.app.definition import names_definition
from treadle.core.errors import ConfigurationError
from treadle.core.settings import MAP_FEWEST, MAP_MOST, MAP_TOKENS

from .arguments import Namespace, Parser
from .engine import engine_of, engine_option, submitted
from .equipment import LESSON_MODES, equipment, gates
from .person import user_name
from .values import cost, from_zero, one_of, ratio, seconds, sink_names, text, texts, tokens, whole

if TYPE_CHECKING:
    from treadle.app.runtime import Runtime, Session
    from treadle.spec.commandline import CommandLineLoop
    from treadle.spec.definitions import Loop
    from treadle.spec.workflows import Workflow

DEFAULT_ROUNDS = 10
NO_MODEL = (
    "No model. Name one (--model provider:model, for example --model anthropic:NAME, or TREADLE_MODEL),"
    " or let a command act (--agent-command CMD)."
)
DEPTHS = ("off", "micro", "auto", "full")
ACTORS = (
    "model",
    "agent_command",
    "agent",
    "check",
    "judge",
    "escalate_to",
)  # each makes a task of words even of what looks like module:attribute
LIMITS = (
    "after",
    "mcp",
    "mcp_config",
    "base_url",
    "price",
    "workspace",
    "protect",
    "sandbox",
    "isolate",
    "on_accept",
    "guard",
    "gate",
    "lessons",
    "must_change",
    "plan",
    "max_rounds",
    "max_turns",
    "map_budget",
    "window",
    "compact",
    "compact_at",
)


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name,
        run,
        "Work on TASK in rounds of acting and checking until the check accepts, or a limit is reached.\n\n"
        "TASK may name a Workflow or a Loop that Python defines, as module:attribute: then that runs, with --input,\n"
        "--max-time and --max-cost.\n"
        "Without --check and --judge a person accepts: asked at the terminal, or later by treadle approve and reject.\n"
        "Exit codes: 0 accepted, 1 failed, 2 nothing was started, 3 waits, 4 a limit was reached, 5 the store\n"
        "failed (nothing committed is lost), 130 interrupted.",
    )
    words = "what is to be done, in words; '-' reads it from stdin; or module:attribute"
    made.add_argument("task", metavar="TASK", nargs="?", default="", help=words)
    _task_options(made)
    _actor_options(made)
    equipment(made)
    _limit_options(made)
    _window_options(made)
    made.section("Where it runs, and who is told").store()
    engine_option(made)
    made.flag("--detach", help="run in the background, and print the execution's id")
    made.add_argument("--detached", help=argparse.SUPPRESS)
    return made.notify().sinks().json().quiet()


def _task_options(made: Parser) -> None:
    made.section("What is done, and what accepts it").workspace()
    made.option("--check", metavar="CMD", help="a command that accepts with exit code 0")
    made.option("--judge", metavar="MODEL", help="a model that judges, as provider:model")
    made.option(
        "--gate",
        metavar="NAME=CMD",
        action="append",
        help="a command that each round must pass before it is checked; may be repeated",
    )
    made.flag("--must-change", help="accept nothing without a change in the workspace")
    made.option("--loop", metavar="FILE", type=Path, help="a loop file (YAML); flags that are typed win over it")
    made.option("--input", metavar="JSON", help="with module:attribute: its input; '-' reads it from stdin")
    made.option("--after", metavar="EXEC", help="tell it how an earlier execution went: the end of that one's log")


def _actor_options(made: Parser) -> None:
    made.section("Who acts")
    made.option("--model", metavar="provider:model", help="the model that acts")
    made.option("--base-url", metavar="URL", help="an endpoint that speaks the provider's API")
    made.option("--price", metavar="IN,OUT[,..]", help="USD per million tokens, for a model without a known price")
    made.option(
        "--escalate-to",
        metavar="MODEL[=IN/OUT],..",
        action="append",
        help="models that follow --model when it fails, spins or is rejected; each may have a price",
    )
    made.option(
        "--escalate-after",
        metavar="N",
        type=from_zero("--escalate-after"),
        help="rejections in a row until the next model (default: 2; 0: not for that)",
    )
    made.option(
        "--agent",
        metavar="NAME [ARGS]",
        help="a coding agent that acts instead of a model: claude, codex, gemini, opencode or aider",
    )
    made.option("--agent-command", metavar="CMD", help="a command or script that acts instead of a model")


def _limit_options(made: Parser) -> None:
    made.section("When it stops")
    made.option("--max-rounds", metavar="N", type=whole("--max-rounds"), help=f"rounds (default: {DEFAULT_ROUNDS})")
    made.option("--max-turns", metavar="N", type=whole("--max-turns"), help="model calls of act, over all rounds")
    made.option("--max-cost", metavar="USD", type=cost("--max-cost"), help="US dollars, everything together")
    made.option("--max-time", metavar="DURATION", type=seconds("--max-time"), help="active time: 90s, 10m, 2h")
    made.guard()


def _window_options(made: Parser) -> None:
    made.section("What the model sees")
    made.option(
        "--map-budget",
        metavar="N",
        type=whole("--map-budget", least=0),
        help=f"tokens for a map of the workspace in the first prompt; 0: none (default: {MAP_TOKENS:,}, in a git"
        f" repository of {MAP_FEWEST} to {MAP_MOST:,} files)",
    )
    made.option(
        "--window", metavar="N", type=tokens("--window"), help="tokens that the model reads at once, where unknown: 32k"
    )
    made.option(
        "--compact",
        metavar="DEPTH",
        type=one_of("--compact", DEPTHS),
        help="how deep at most: off, micro, auto, full (default)",
    )
    made.option(
        "--compact-at", metavar="RATIO", type=ratio("--compact-at"), help="of the window at which to (default: 0.8)"
    )


def run(given: Namespace) -> int:
    """Starts it and drives it, here or in the background."""
    from .detach import Readiness, start_detached
    from .drive import Manner, drive
    from .notify import notifier
    from .place import place

    if not given.loop and names_definition(given.task) and not any(getattr(given, name) for name in ACTORS):
        return run_defined(given)
    if given.input is not None:
        raise ConfigurationError("--input goes with a definition, module:attribute; a task in words has none.")
    folder = (given.workspace or Path()).expanduser()
    where = place(given.store, folder)
    defaults = where.settings.defaults
    definition, task = _definition(given, defaults, folder)
    tell = notifier(given.notify if given.notify is not None else defaults.get("notify"), where.settings.environ)
    engine = engine_of(given.engine, given.address, where.settings)
    if given.detach and given.detached is None and engine.is_local:
        return start_detached(where, json=given.json)
    ready = Readiness.parse(given.detached)
    manner = Manner(
        json=given.json,
        quiet=given.quiet,
        actor=user_name(),
        notifier=tell,
        sinks=sink_names(given.sinks, where.settings),
        begun=ready.begun,
    )
    make = partial(begin, definition=definition, task=task, execution_id=ready.execution_id, after=given.after or "")
    if not engine.is_local:
        return submitted(where, make, manner, engine, detach=given.detach)
    return anyio.run(partial(drive, where, make, manner, create=True))


def _definition(given: Namespace, defaults: Mapping[str, Any], folder: Path) -> tuple[CommandLineLoop, str]:
    """(the loop, its task), from flags and, where one is named, a loop file."""
    typed = {name: value for name, value in vars(given).items() if value is not None}
    task = sys.stdin.read() if given.task == "-" else given.task
    if given.loop is not None:
        from .loopfile import define, read

        file = read(given.loop)
        task, definition = task or file.task, define(file, typed, defaults, folder)
    else:
        definition = None
    if not task:
        raise ConfigurationError("No task. Say what is to be done: treadle run TASK, or task: in the loop file.")
    return definition or defined(typed, defaults, folder), task


def run_defined(given: Namespace) -> int:
    """Runs what a module defines."""
    from treadle.app.definition import imported
    from treadle.spec.definitions import Loop

    from .detach import Readiness, start_detached
    from .drive import Driven, Manner, drive
    from .notify import notifier
    from .place import place, workflows

    if unwanted := [f"--{name.replace('_', '-')}" for name in LIMITS if getattr(given, name) not in (None, False, "")]:
        raise ConfigurationError(f"{unwanted[0]} is for a task in words; {given.task} says that itself.")
    where = place(given.store)
    what, value, name = _limited(imported(given.task), given), _input(given.input), given.task
    target = given.notify if given.notify is not None else where.settings.defaults.get("notify")
    tell = notifier(target, where.settings.environ)
    engine = engine_of(given.engine, given.address, where.settings)
    if given.detach and given.detached is None and engine.is_local:
        return start_detached(where, json=given.json)
    ready = Readiness.parse(given.detached)

    async def make(runtime: Runtime) -> Driven:
        if isinstance(what, Loop):
            return await runtime.start(what, value, execution_id=ready.execution_id, definition=name)
        return await workflows(runtime).start(what, value, execution_id=ready.execution_id, definition=name)

    manner = Manner(
        json=given.json,
        quiet=given.quiet,
        actor=user_name(),
        notifier=tell,
        sinks=sink_names(given.sinks, where.settings),
        begun=ready.begun,
    )
    if not engine.is_local:
        return submitted(where, make, manner, engine, detach=given.detach)
    return anyio.run(partial(drive, where, make, manner, create=True))


def _limited(what: Loop | Workflow, given: Namespace) -> Loop | Workflow:
    """With the limits that are typed: they win over the definition's."""
    from dataclasses import replace

    from treadle.spec.definitions import Loop

    typed = {"max_time_s": given.max_time, "max_cost_usd": given.max_cost}
    limits: dict[str, Any] = {name: value for name, value in typed.items() if value is not None}
    if isinstance(what, Loop):
        return replace(what, **limits)
    return replace(what, budget=replace(what.budget, **limits))


def _input(text: str | None) -> Any:
    import json

    if text is None:
        return None
    try:
        return json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise ConfigurationError(f"--input is no JSON: {error}. Example: --input '{{\"day\": 1}}'") from error


async def begin(
    runtime: Runtime, *, definition: CommandLineLoop, task: str, execution_id: str | None, after: str = ""
) -> Session:
    """Starts it, once the endpoint has been seen to be there. `after` is an earlier execution that the model is told of."""
    from treadle.app.isolating import remarks
    from treadle.app.logs import tail_for_prompt
    from treadle.core.redaction import Redactor, secrets_of
    from treadle.spec.commandline import encode

    from .output import warn
    from .preflight import reachable

    await reachable(definition.base_url, runtime.settings.environ)
    if after and task.strip():
        earlier = await tail_for_prompt(runtime.ledger, after, Redactor(secrets_of(runtime.settings.environ)).redact)
        task = f"{task}\n\n{earlier}"
    session = await runtime.start(definition.to_loop(), task, execution_id=execution_id, definition=encode(definition))
    for remark in await remarks(session.state):
        warn(remark)
    return session


ONLY_FOR_A_MODEL = {
    "mcp": "--mcp is for a model that acts; a command brings its own tools.",
    "mcp_config": "--mcp is for a model that acts; a command brings its own tools.",
    "model": "Both --agent-command and --model are given: one of them acts. Leave one out.",
    "map_budget": "--map-budget is for a model; a command that acts looks at the workspace itself.",
    "plan": "--plan holds a model back until its plan is approved; a command cannot be held back. Leave one out.",
    "allow": "--allow is kept at each call of a model; a command makes none and cannot be held to it. Leave one out.",
    "may_ask": "--may-ask is for a model; a command cannot ask. Leave one out.",
    "skills": "--skills is for a model; a command brings its own. Leave one out.",
    "sandbox": "--sandbox is for the commands that a model runs; start the command itself in one. Leave one out.",
}
"""Flags that mean nothing to a command that acts, and what is said of each."""


def defined(given: Mapping[str, Any], defaults: Mapping[str, Any], folder: Path) -> CommandLineLoop:
    """The loop that flags and settings define: flags win. ConfigurationError for what contradicts or is missing."""
    from treadle.spec.commandline import CommandLineLoop

    def chosen(name: str) -> Any:
        return given.get(name, defaults.get(name))

    check, judge, agent_command = given.get("check"), given.get("judge"), given.get("agent_command", "")
    if (agent := given.get("agent", "")) and agent_command:
        raise ConfigurationError("Both --agent and --agent-command are given: one of them acts. Leave one out.")
    agent_command = agent or agent_command
    if check is not None and judge is not None:
        raise ConfigurationError("Both --check and --judge are given: one of them decides. Leave one out.")
    if check is None and judge is None:
        check = defaults.get("check")
    for name, value in (("--check", check), ("--judge", judge), ("--agent-command", given.get("agent_command"))):
        if value is not None and not text(name, value).strip():
            raise ConfigurationError(f"{name} is empty.")
    if agent_command:
        for name, why in ONLY_FOR_A_MODEL.items():
            if given.get(name) not in (None, False, (), []):
                raise ConfigurationError(why)
    if not agent_command and not chosen("model"):
        raise ConfigurationError(NO_MODEL)
    return CommandLineLoop(
        workspace=str(folder.resolve()),
        model="" if agent_command else text("model", chosen("model")),
        base_url=_text("base_url", chosen("base_url")),
        price=_text("price", chosen("price")),
        agent_command="" if agent else agent_command,
        check=check or "",
        judge=judge or "",
        protect=texts("protect", chosen("protect") or []),
        sandbox=bool(given.get("sandbox")),
        mcp=tuple(given.get("mcp") or ()),
        allow=None if given.get("allow") is None else tuple(given["allow"]),
        may_ask=tuple(given.get("may_ask") or ()),
        agent=agent,
        skills=tuple(_file("--skills", folder) for folder in given.get("skills") or ()),
        mcp_config=_file("mcp_config", chosen("mcp_config")),
        escalate_to=_ladder(given.get("escalate_to"), defaults.get("escalate_to"), agent_command),
        escalate_after=given.get("escalate_after", 2),
        guards=given.get("guard") or {},
        gates=gates(given.get("gate")),
        lessons=_read(chosen("lessons"), one_of("lessons", LESSON_MODES)) or "on",
        must_change=True if given.get("must_change") else None,
        isolate=_isolate(given),
        on_accept=given.get("on_accept") or "merge",
        window=_read(chosen("window"), tokens("window")),
        compact=_read(chosen("compact"), one_of("compact", DEPTHS)) or "full",
        compact_at=_read(chosen("compact_at"), ratio("compact_at")) or 0.8,
        plan=bool(given.get("plan")),
        max_rounds=_read(chosen("max_rounds"), whole("max_rounds")) or DEFAULT_ROUNDS,
        max_turns=_read(chosen("max_turns"), whole("max_turns")),
        max_cost_usd=_read(chosen("max_cost"), cost("max_cost")),
        max_time_s=_read(chosen("max_time"), seconds("max_time")),
        map_budget=_read(chosen("map_budget"), whole("map_budget", least=0)),
    )


def _ladder(typed: Any, default: Any, agent_command: str) -> tuple[str, ...]:
    """The models above the first, in order."""
    given = default if typed is None else typed
    if given is None or (agent_command and typed is None):
        return ()
    if agent_command:
        raise ConfigurationError("--escalate-to goes with --model: a command has no ladder of models.")
    names = tuple(part.strip() for one in texts("escalate_to", given) for part in one.split(","))
    if not all(names):
        raise ConfigurationError("--escalate-to has an empty name. Example: --escalate-to openai:gpt-5,anthropic:NAME")
    return names


def _isolate(given: Mapping[str, Any]) -> bool:
    if given.get("on_accept") and not given.get("isolate"):
        raise ConfigurationError("--on-accept goes with --isolate: without it act works in the workspace itself.")
    return bool(given.get("isolate"))


def _text(name: str, value: Any) -> str | None:
    return None if value is None else text(name, value)


def _file(name: str, value: Any) -> str:
    return "" if value is None else str(Path(text(name, str(value))).expanduser().resolve())


def _read(value: Any, reader: Any) -> Any:
    return None if value is None else reader(value)
