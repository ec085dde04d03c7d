"""`treadle resume`: goes on where it can, and prints how it rests where it cannot."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from .options import Execution, Json, Quiet, Store

if TYPE_CHECKING:
    from treadle.app.runtime import Reopening, Runtime, Session
    from treadle.kernel.states import LoopState
    from treadle.spec.definitions import Loop

    from .drive import Manner
    from .place import Place

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def resume(
    execution: Execution,
    retry_incomplete: Annotated[
        bool, typer.Option("--retry-incomplete", help="Try a failed execution again where it failed.")
    ] = False,
    adopt: Annotated[bool, typer.Option("--adopt", help="Go on although the definition has changed.")] = False,
    price: Annotated[
        str | None, typer.Option(metavar="IN,OUT[,..]", help="USD per million tokens, where no price was known.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Take it from an owner that seems to live. It is fenced off.")
    ] = False,
    notify: Annotated[
        str | None, typer.Option(metavar="CMD|URL", help="Told as JSON when it waits, pauses or has ended.")
    ] = None,
    store: Store = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with an execution that was interrupted, killed, paused, answered or extended.

    One that has ended is printed as it is stored, with its exit code; nothing is called. A failed one needs
    --retry-incomplete, a stopped one treadle extend, one that waits an answer.
    """
    from treadle.app.runtime import Reopening

    from .drive import Manner
    from .notify import notifier
    from .person import user_name
    from .place import place

    where = place(store)
    target = notify if notify is not None else where.settings.defaults.get("notify")
    actor = user_name()
    manner = Manner(
        json=json, quiet=quiet, actor=actor, notifier=notifier(target and str(target), where.settings.environ)
    )
    how = Reopening(retry_incomplete=retry_incomplete, adopt=adopt, price=price is not None, force=force, actor=actor)
    raise typer.Exit(anyio.run(partial(go_on, where, execution, how, price, manner)))


async def go_on(where: Place, execution: str, how: Reopening, price: str | None, manner: Manner) -> int:
    """Where nothing can be done the stored document is printed, and nothing is called (FR-26)."""
    from treadle.app.runtime import resting
    from treadle.runtime.document import document

    from .drive import drive, report
    from .place import found, opened

    async with opened(where) as runtime:
        row, state = await found(runtime, execution)
    if resting(state, how):
        return report(where, row.execution_id, state, manner, document(row.execution_id, state))
    return await drive(
        where, partial(_reopen, execution_id=row.execution_id, state=state, how=how, price=price), manner
    )


async def _reopen(
    runtime: Runtime, *, execution_id: str, state: LoopState, how: Reopening, price: str | None
) -> Session:
    from .preflight import reachable

    loop, definition, base_url = defined(state.definition, price)
    await reachable(base_url, runtime.settings.environ)
    return await runtime.resume(execution_id, loop, how, definition=definition)


def defined(definition: str, price: str | None) -> tuple[Loop, str, str | None]:
    """(the loop, its definition where that changed, its endpoint), from stored flags or imported as module:attribute."""
    from treadle.core.errors import ConfigurationError
    from treadle.core.values import replace
    from treadle.spec.commandline import decode, encode

    if not definition:
        raise ConfigurationError("It was started from Python and names no definition: resume it from there.")
    if not definition.startswith("{"):
        return imported(definition), "", None
    flags = decode(definition)
    if price is None:
        return flags.to_loop(), "", flags.base_url
    flags = replace(flags, price=price)
    return flags.to_loop(), encode(flags), flags.base_url


def imported(name: str) -> Loop:
    """The loop that a module defines. ConfigurationError where it is not there."""
    import sys
    from importlib import import_module
    from pathlib import Path

    from treadle.core.errors import ConfigurationError
    from treadle.spec.definitions import Loop

    module_name, _, attribute = name.partition(":")
    sys.path.append(str(Path.cwd()))
    try:
        found: object = import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"The definition {name} cannot be imported: {error}. Run this where it can be (the current folder counts)."
        ) from error
    if not isinstance(found, Loop):
        raise ConfigurationError(f"{name} is no Loop.")
    return found
