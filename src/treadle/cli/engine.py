"""`--engine`: who drives an execution. Here it is only made durable, then followed in the ledger while workers drive it."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
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

ENGINES = ("local", "workers", "temporal")
LOOK_S = 0.4
UNTAKEN_S = 4.0  # workers look more often than that


def engine_option(made: Parser) -> Parser:
    """Which engine, and where it is."""
    made.option(
        "--engine",
        metavar="ENGINE",
        type=one_of("--engine", ENGINES),
        help="who runs it: local (this process, the default), workers (treadle worker on the same store) or temporal",
    )
    return address_option(made)


def address_option(made: Parser) -> Parser:
    """Where Temporal is."""
    return made.option(
        "--address",
        metavar="HOST:PORT",
        help="where Temporal is: HOST:PORT[/NAMESPACE[/QUEUE]] (default: as Temporal's own tools)",
    )


@dataclass(frozen=True, slots=True)
class Engine:
    """Who drives it. `address` is empty where Temporal's own configuration says where it is."""

    name: str
    address: str = ""

    @property
    def is_local(self) -> bool:
        """This very process does."""
        return self.name == "local"

    async def ring(self, runtime: Runtime, execution_id: str) -> None:
        """Tells it that the ledger has news of an execution. ConfigurationError where it cannot be told."""
        if self.name == "temporal":
            from treadle.app.engines import temporal

            await temporal().ring(runtime, self.address, execution_id)


def engine_of(typed: str | None, address: str | None, settings: Settings) -> Engine:
    """The engine that is meant: a flag wins over the configuration. ConfigurationError."""
    name = typed or one_of("engine", ENGINES)(settings.defaults.get("engine") or "local")
    if address and name != "temporal":
        raise ConfigurationError("--address is where Temporal is: it goes with --engine temporal.")
    return Engine(name, address or str(settings.defaults.get("address") or ""))


async def rung(runtime: Runtime, execution_id: str) -> None:
    """After somebody has said something to it: where the configuration names Temporal, that is told. A failure is only said."""
    from treadle.core.errors import TreadleError

    from .output import warn

    try:
        await engine_of(None, None, runtime.settings).ring(runtime, execution_id)
    except TreadleError as error:
        warn(f"{error} What you said is in the store; a worker looks there, too.")


def submitted(
    where: Place, make: Callable[[Runtime], Awaitable[Driven]], manner: Manner, engine: Engine, *, detach: bool
) -> int:
    """Makes it durable and leaves it to the engine; then shows it until it rests, unless `detach`. The exit code."""
    if where.store == "memory:":
        raise ConfigurationError(
            f"--engine {engine.name} needs a store that others reach: --store postgresql://USER@HOST/DATABASE."
        )
    return anyio.run(partial(_submitted, where, make, manner, engine, detach=detach))


async def _submitted(
    where: Place, make: Callable[[Runtime], Awaitable[Driven]], manner: Manner, engine: Engine, *, detach: bool
) -> int:
    from treadle.app.listing import document_of
    from treadle.app.observing import open_sinks

    from .output import print_json
    from .place import running

    async with running(where, create=True) as runtime:
        session = await make(runtime)
        execution_id = session.execution_id
        await session.close()
        await engine.ring(runtime, execution_id)
        if detach:
            if manner.json:
                print_json(document_of(execution_id, session.state))
            else:
                sys.stdout.write(f"{execution_id}\n")
            return 0
        sinks = open_sinks(manner.sinks, where.settings, sys.stderr, quiet=manner.quiet)
        try:
            return await _shown(where, runtime.ledger, execution_id, manner, sinks, engine)
        finally:
            sinks.close()


async def _shown(where: Place, ledger: Ledger, execution_id: str, manner: Manner, sinks: Sinks, engine: Engine) -> int:
    from .drive import conclude
    from .output import warn
    from .signals import Stopping
    from .workflow_view import WorkflowView

    stopping = Stopping(lambda: None)
    rested: list[AnyState] = []
    async with anyio.create_task_group() as group:
        stopping.stop = group.cancel_scope.cancel
        await group.start(stopping.watch)
        if where.store and not manner.quiet and engine.name == "workers":
            group.start_soon(_nobody_takes_it, where, ledger, execution_id)
        rested.append(await _until_it_rests(ledger, execution_id, (WorkflowView(sinks.view), *sinks.others)))
        group.cancel_scope.cancel()
    sinks.view.close()
    if not rested:
        warn(f"{execution_id} goes on without you: treadle watch {execution_id}{where.flag} shows it.")
        return 130
    return await conclude(where, ledger, execution_id, rested[0], manner)


async def _nobody_takes_it(where: Place, ledger: Ledger, execution_id: str) -> None:
    """Says once how a worker is started, where none has taken it in a while."""
    from .output import warn

    before = await ledger.row(execution_id)
    await anyio.sleep(UNTAKEN_S)
    row = await ledger.row(execution_id)
    if not row.owner_alive and row.head == before.head:
        warn(f"no worker has taken {execution_id} yet. To start one: treadle worker{where.flag}")


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
