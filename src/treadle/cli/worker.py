"""`treadle worker` and `treadle recover`: go on with what nobody owns any more, for ever or once."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import anyio

from .arguments import Namespace, Parser
from .engine import Engine, engine_of, engine_option
from .values import sink_names, whole

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from treadle.app.runtime import Runtime
    from treadle.ports.ledger import ExecutionRow

    from .drive import Driven
    from .notify import Notifier
    from .place import Place

LOOK_S = 0.5  # a lease that has lapsed is seen within this
LOOK_SHARE = 10  # a look at a large store takes no more than such a part of the time
FIRST_RETRY_S, LAST_RETRY_S = 2.0, 60.0


def parser(name: str) -> Parser:
    """Their arguments."""
    if name == "worker":
        text = (
            "Go on with executions that nobody owns: killed ones, answered ones, those whose quota is back. Keeps looking.\n\n"
            "What a person stopped, what failed and what waits is left alone. On SIGTERM it hands everything back, so that\n"
            "the next worker goes on: made for systemd."
        )
    else:
        text = "Go on with executions that nobody owns, until each rests; then end. See treadle worker."
    made = Parser(name, partial(work, once=name == "recover"), text)
    made.option(
        "--concurrency", metavar="N", type=whole("--concurrency"), default=16, help="executions at a time (default: 16)"
    )
    if name == "worker":
        engine_option(made)
    return made.notify().sinks().store()


def work(given: Namespace, *, once: bool) -> int:
    """Runs until it is told to stop, or until nothing is left."""
    from .notify import notifier
    from .place import place

    where = place(given.store)
    target = given.notify if given.notify is not None else where.settings.defaults.get("notify")
    told = notifier(target, where.settings.environ)
    names = tuple(name for name in sink_names(given.sinks, where.settings) if name != "stderr") or ("none",)
    engine = Engine("workers") if once else engine_of(given.engine, given.address, where.settings)
    return anyio.run(partial(_work, where, given.concurrency, told, names, engine, once=once))


async def _work(
    where: Place, concurrency: int, told: Notifier | None, names: tuple[str, ...], engine: Engine, *, once: bool
) -> int:
    from treadle.app.leftovers import clear_leftovers
    from treadle.app.observing import open_sinks
    from treadle.core.endings import SIGNAL_EXITS

    from .place import running
    from .signals import Stopping

    stopping = Stopping(lambda: None)
    sinks = open_sinks(names, where.settings, sys.stderr)
    observers = sinks.others if told is None else (told, *sinks.others)
    try:
        async with running(where, create=not once, observers=observers) as runtime, anyio.create_task_group() as group:
            if cleared := await clear_leftovers(runtime.ledger, where.settings):
                _say(f"took away what {cleared} ended speculations had left")
            stopping.stop = group.cancel_scope.cancel
            await group.start(stopping.watch)
            if told is not None:
                group.start_soon(told.serve)
            if engine.name == "temporal":
                from treadle.app.engines import temporal

                runtime.quota_wait_s = 0.0  # Temporal wakes it
                ended = anyio.Event()
                stopping.stop = ended.set
                await temporal().serve(runtime, engine.address, concurrency=concurrency, say=_say, stop=ended)
            else:
                await Worker(runtime, group, anyio.Semaphore(concurrency)).serve(once=once)
            group.cancel_scope.cancel()
    finally:
        sinks.close()
    if told is not None:
        told.close()
    return SIGNAL_EXITS[stopping.name] if stopping.name and once else 0


class Worker:
    """Looks for executions without an owner and drives each to its rest."""

    def __init__(self, runtime: Runtime, group: TaskGroup, room: anyio.Semaphore) -> None:
        from treadle.app.claiming import Abandoned

        self.runtime, self.group, self.room = runtime, group, room
        self._abandoned = Abandoned(runtime.ledger, _say)
        self._busy: set[str] = set()
        self._retry_s: dict[str, float] = {}

    async def serve(self, *, once: bool) -> None:
        """Looks twice a second; once: until nothing is left."""
        while True:
            began = time.monotonic()
            for row in await self._found(once=once):
                if row.execution_id not in self._busy:
                    self._busy.add(row.execution_id)
                    self.group.start_soon(self._one, row)
            if once and not self._busy:
                return
            await anyio.sleep(0.1 if once else max(LOOK_S, LOOK_SHARE * (time.monotonic() - began)))

    async def _found(self, *, once: bool) -> list[ExecutionRow]:
        """What is abandoned. A worker outlives a store that is away for a while."""
        from treadle.core.errors import LedgerUnavailable

        try:
            return await self._abandoned.find()
        except LedgerUnavailable as error:
            if once:
                raise
            _say(f"the store cannot be reached, again in {FIRST_RETRY_S:g} s: {error}")
            await anyio.sleep(FIRST_RETRY_S)
            return []

    async def _one(self, row: ExecutionRow) -> None:
        from treadle.core.errors import InputError, LedgerError, OwnerAlive, StaleEpoch

        execution_id = row.execution_id
        try:
            async with self.room:
                session = await self._taken(execution_id)
                self._retry_s.pop(
                    execution_id, None
                )  # it was there: what fails from now on has not failed again and again
                try:
                    document = await session.run()
                finally:
                    await session.close()
                _say(f"{execution_id}: {document['status']}, {document['code']}")
        except OwnerAlive:
            pass  # another worker was quicker
        except StaleEpoch:
            _say(f"{execution_id}: another worker has taken it over")
        except InputError as error:
            self._abandoned.leave(row)
            _say(f"{execution_id}: left alone: {error}")
        except LedgerError as error:  # recovery is tried again until it is done (case 22)
            wait_s = self._retry_s.get(execution_id, FIRST_RETRY_S)
            self._retry_s[execution_id] = min(LAST_RETRY_S, wait_s * 2)
            _say(f"{execution_id}: the store failed, again in {wait_s:g} s: {error}")
            await anyio.sleep(wait_s)
        finally:
            self._busy.discard(execution_id)

    async def _taken(self, execution_id: str) -> Driven:
        """The session of a loop or a workflow, ready to run."""
        from treadle.app.claiming import claimed
        from treadle.app.runtime import Session

        session = await claimed(self.runtime, execution_id)
        if isinstance(session, Session):
            _say(f"{execution_id}: goes on in round {session.state.round}")
        else:
            done, tasks = len(session.state.done), len(session.state.settings.tasks)
            _say(f"{execution_id}: goes on, {done} of {tasks} tasks are done")
        return session


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
