"""`--engine`: who drives an execution. Here it is only made durable, then followed in the ledger while workers drive it."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import anyio

from treadle.core.errors import ConfigurationError

from .values import one_of

if TYPE_CHECKING:
    from treadle.app.listing import AnyState
    from treadle.app.observing import Sinks
    from treadle.app.runtime import Runtime
    from treadle.ports.ledger import Ledger
    from treadle.ports.observer import Observer
    from treadle.settings import Settings

    from .arguments import Parser
    from .drive import Driven, Manner
    from .place import Place

ENGINES = ("local", "workers")
LOOK_S = 0.4


def engine_option(made: Parser) -> Parser:
    """Which engine."""
    return made.option(
        "--engine",
        metavar="ENGINE",
        type=one_of("--engine", ENGINES),
        help="who runs it: local (this process, the default) or workers (treadle worker on the same store)",
    )


def engine_of(typed: str | None, settings: Settings) -> str:
    """The engine that is meant: a flag wins over the configuration. ConfigurationError."""
    return typed or one_of("engine", ENGINES)(settings.defaults.get("engine") or "local")


def submitted(where: Place, make: Callable[[Runtime], Awaitable[Driven]], manner: Manner, *, detach: bool) -> int:
    """Makes it durable and leaves it to the workers of the store; then shows it until it rests, unless `detach`. The exit code."""
    if where.store == "memory:":
        raise ConfigurationError(
            "--engine workers needs a store that others reach: --store postgresql://USER@HOST/DATABASE."
        )
    return anyio.run(partial(_submitted, where, make, manner, detach=detach))


async def _submitted(
    where: Place, make: Callable[[Runtime], Awaitable[Driven]], manner: Manner, *, detach: bool
) -> int:
    from treadle.app.listing import document_of
    from treadle.app.observing import open_sinks

    from .output import print_json
    from .place import running

    async with running(where, create=True) as runtime:
        session = await make(runtime)
        execution_id = session.execution_id
        await session.close()
        if detach:
            if manner.json:
                print_json(document_of(execution_id, session.state))
            else:
                sys.stdout.write(f"{execution_id}\n")
            return 0
        sinks = open_sinks(manner.sinks, where.settings, sys.stderr, quiet=manner.quiet)
        try:
            return await _shown(where, runtime.ledger, execution_id, manner, sinks)
        finally:
            sinks.close()


async def _shown(where: Place, ledger: Ledger, execution_id: str, manner: Manner, sinks: Sinks) -> int:
    from .drive import conclude
    from .output import warn
    from .signals import Stopping
    from .workflow_view import WorkflowView

    stopping = Stopping(lambda: None)
    rested: list[AnyState] = []
    async with anyio.create_task_group() as group:
        stopping.stop = group.cancel_scope.cancel
        await group.start(stopping.watch)
        rested.append(await _until_it_rests(ledger, execution_id, (WorkflowView(sinks.view), *sinks.others)))
        group.cancel_scope.cancel()
    sinks.view.close()
    if not rested:
        warn(f"{execution_id} goes on without you: treadle watch {execution_id} shows it.")
        return 130
    return await conclude(where, ledger, execution_id, rested[0], manner)


async def _until_it_rests(ledger: Ledger, execution_id: str, observers: tuple[Observer, ...]) -> AnyState:
    from treadle.app.claiming import standing
    from treadle.app.listing import document_of
    from treadle.app.watching import Watched

    watched = Watched(ledger, await ledger.row(execution_id))
    while True:
        await watched.refresh(await ledger.row(execution_id))
        for note in watched.notes:
            for observer in observers:
                observer.notify(note)
        assert watched.state is not None
        if standing(document_of(execution_id, watched.state)) != "goes on":
            return watched.state
        await anyio.sleep(LOOK_S)
