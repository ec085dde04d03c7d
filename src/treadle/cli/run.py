"""`treadle run`: flags and settings become a loop, and the loop runs."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from treadle.core.errors import ConfigurationError

from .options import Json, Quiet, Store, Workspace
from .values import cost, seconds, text, texts, whole

if TYPE_CHECKING:
    from treadle.app.runtime import Runtime, Session
    from treadle.settings import Settings
    from treadle.spec.commandline import CommandLineLoop

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

DEFAULT_ROUNDS = 10


@app.command()
def run(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK", show_default=False, help="What is to be done, in words; '-' reads it from stdin."
        ),
    ],
    check: Annotated[str | None, typer.Option(metavar="CMD", help="A command that accepts with exit code 0.")] = None,
    judge: Annotated[str | None, typer.Option(metavar="MODEL", help="A model that judges, as provider:model.")] = None,
    agent_command: Annotated[
        str | None, typer.Option(metavar="CMD", help="A coding agent or script that acts instead of a model.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="provider:model", help="The model that acts.")] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="An endpoint that speaks the provider's API.")
    ] = None,
    price: Annotated[
        str | None,
        typer.Option(metavar="IN,OUT[,..]", help="USD per million tokens, for a model without a known price."),
    ] = None,
    workspace: Workspace = None,
    protect: Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Paths that it may not write.")] = None,
    sandbox: Annotated[bool, typer.Option("--sandbox", help="Run its commands in a sandbox (bubblewrap).")] = False,
    max_rounds: Annotated[
        int | None, typer.Option(parser=whole("--max-rounds"), metavar="N", help="Default: 10.")
    ] = None,
    max_turns: Annotated[
        int | None,
        typer.Option(parser=whole("--max-turns"), metavar="N", help="Model calls that act may make, over all rounds."),
    ] = None,
    max_cost: Annotated[
        str | None, typer.Option(parser=cost("--max-cost"), metavar="USD", help="US dollars, everything together.")
    ] = None,
    max_time: Annotated[
        str | None, typer.Option(parser=seconds("--max-time"), metavar="DURATION", help="Active time: 90s, 10m, 2h.")
    ] = None,
    store: Store = None,
    notify: Annotated[
        str | None, typer.Option(metavar="CMD|URL", help="Told as JSON when it waits, pauses or has ended.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Run in the background; print the execution's id.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    detached: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Work on TASK in rounds of acting and checking until the check accepts, or a limit is reached.

    Without --check and --judge a person accepts: asked at the terminal, or later by treadle approve and reject.
    Exit codes: 0 accepted, 1 failed, 2 nothing was started, 3 waits, 4 a limit was reached, 130 interrupted.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    from .place import place

    folder = (workspace or Path()).expanduser()
    where = place(store, folder)
    definition = defined(given, where.settings, folder)
    words = sys.stdin.read() if task == "-" else task
    target = given.get("notify", where.settings.defaults.get("notify"))
    if detach and detached is None:
        from .detach import start_detached

        raise typer.Exit(start_detached(where, json=json))
    from .detach import Readiness
    from .drive import Manner, drive
    from .notify import notifier
    from .person import user_name

    ready = Readiness.parse(detached)
    manner = Manner(
        json=json,
        quiet=quiet,
        actor=user_name(),
        notifier=notifier(None if target is None else text("notify", target), where.settings.environ),
        begun=ready.begun,
    )
    make = partial(begin, definition=definition, task=words, execution_id=ready.execution_id)
    raise typer.Exit(anyio.run(partial(drive, where, make, manner, create=True)))


async def begin(runtime: Runtime, *, definition: CommandLineLoop, task: str, execution_id: str | None) -> Session:
    """Starts it, once the endpoint has been seen to be there."""
    from treadle.spec.commandline import encode

    from .preflight import reachable

    await reachable(definition.base_url, runtime.settings.environ)
    return await runtime.start(definition.to_loop(), task, execution_id=execution_id, definition=encode(definition))


def defined(given: dict[str, Any], settings: Settings, folder: Path) -> CommandLineLoop:
    """The loop that flags and settings define: flags win. ConfigurationError for what contradicts or is missing."""
    from treadle.spec.commandline import CommandLineLoop

    defaults = settings.defaults

    def chosen(name: str) -> Any:
        return given.get(name, defaults.get(name))

    check, judge, agent_command = given.get("check"), given.get("judge"), given.get("agent_command", "")
    if check is not None and judge is not None:
        raise ConfigurationError("Both --check and --judge are given: one of them decides. Leave one out.")
    if check is None and judge is None:
        check = defaults.get("check")
    for name, value in (("--check", check), ("--judge", judge), ("--agent-command", given.get("agent_command"))):
        if value is not None and not text(name, value).strip():
            raise ConfigurationError(f"{name} is empty.")
    if agent_command and given.get("model"):
        raise ConfigurationError("Both --agent-command and --model are given: one of them acts. Leave one out.")
    if not agent_command and not chosen("model"):
        raise ConfigurationError(
            "No model. Name one (--model provider:model, for example --model anthropic:NAME, or TREADLE_MODEL),"
            " or let a command act (--agent-command CMD)."
        )
    return CommandLineLoop(
        workspace=str(folder.resolve()),
        model="" if agent_command else text("model", chosen("model")),
        base_url=_text("base_url", chosen("base_url")),
        price=_text("price", chosen("price")),
        agent_command=agent_command,
        check=check or "",
        judge=judge or "",
        protect=texts("protect", chosen("protect") or []),
        sandbox=bool(given.get("sandbox")),
        max_rounds=_read(chosen("max_rounds"), whole("max_rounds")) or DEFAULT_ROUNDS,
        max_turns=_read(chosen("max_turns"), whole("max_turns")),
        max_cost_usd=_read(chosen("max_cost"), cost("max_cost")),
        max_time_s=_read(chosen("max_time"), seconds("max_time")),
    )


def _text(name: str, value: Any) -> str | None:
    return None if value is None else text(name, value)


def _read(value: Any, reader: Any) -> Any:
    return None if value is None else reader(value)
