"""`treadle resume`: goes on where it can, and prints how it rests where it cannot."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio

from .arguments import Namespace, Parser
from .person import user_name

if TYPE_CHECKING:
    from treadle.app.runtime import Reopening, Runtime, Session
    from treadle.kernel.states import LoopState
    from treadle.spec.definitions import Loop

    from .drive import Manner
    from .place import Place


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name,
        resume,
        "Go on with an execution that was interrupted, killed, paused, answered or extended.\n\n"
        "One that has ended is printed as it is stored, with its exit code; nothing is called. A failed one needs\n"
        "--retry-incomplete, a stopped one treadle extend, one that waits an answer.",
    ).execution()
    made.flag("--retry-incomplete", help="try a failed execution again where it failed")
    made.flag("--adopt", help="go on although the definition has changed")
    made.option("--price", metavar="IN,OUT[,..]", help="USD per million tokens, where no price was known")
    made.flag("--force", help="take it from an owner that seems to live; that one is fenced off")
    return made.notify().store().json().quiet()


def resume(given: Namespace) -> int:
    """Goes on, or says how it rests."""
    from treadle.app.runtime import Reopening

    from .drive import Manner
    from .notify import notifier
    from .place import place

    where = place(given.store)
    target = given.notify if given.notify is not None else where.settings.defaults.get("notify")
    actor = user_name()
    manner = Manner(json=given.json, quiet=given.quiet, actor=actor, notifier=notifier(target, where.settings.environ))
    how = Reopening(
        retry_incomplete=given.retry_incomplete,
        adopt=given.adopt,
        price=given.price is not None,
        force=given.force,
        actor=actor,
    )
    return anyio.run(partial(go_on, where, given.execution, how, given.price, manner))


async def go_on(where: Place, execution: str, how: Reopening, price: str | None, manner: Manner) -> int:
    """Where nothing can be done the stored document is printed, and nothing is called (FR-26)."""
    from treadle.app.runtime import resting
    from treadle.runtime.document import document

    from .drive import drive, report
    from .place import found, opened

    async with opened(where) as ledger:
        row, state = await found(ledger, execution)
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
    except Exception as error:
        raise ConfigurationError(
            f"The definition {name} cannot be imported: {type(error).__name__}: {error}."
            " Run this where it can be (the current folder counts)."
        ) from error
    if not isinstance(found, Loop):
        raise ConfigurationError(f"{name} is no Loop.")
    return found
