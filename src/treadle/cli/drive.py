"""Drives one execution for the command line: progress, signals, questions, notifications, and the last word."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio

from treadle.app.ending import rest_of, write_artifact
from treadle.app.history import rounds
from treadle.app.runtime import Runtime, Session
from treadle.app.views import View, progress_view
from treadle.core.endings import SIGNAL_EXITS
from treadle.core.errors import AnswerRefused, ConfigurationError, LedgerError
from treadle.kernel.states import LoopState
from treadle.ports.ledger import Ledger
from treadle.runtime.document import document

from .ask import Later, Terminal, terminal
from .notify import Notifier
from .output import banner, print_json, warn
from .place import Place, running
from .signals import Stopping

LOOK_S = 0.5  # how often it is looked whether somebody else has answered meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How it is shown and who is asked."""

    json: bool = False
    quiet: bool = False
    actor: str = ""
    notifier: Notifier | None = None
    begun: Callable[[Session], None] | None = None  # called once the execution is durable


async def drive(
    where: Place, make: Callable[[Runtime], Awaitable[Session]], manner: Manner, *, create: bool = False
) -> int:
    """Runs what `make` gives until it rests; the exit code of the table of endings."""
    view = progress_view(sys.stderr, quiet=manner.quiet)
    observers = (view,) if manner.notifier is None else (view, manner.notifier)
    try:
        async with running(where, create=create, observers=observers) as runtime:
            session, signal = await _run(runtime, make, manner, view)
            view.close()
            if session is None:
                warn("interrupted before it had started.")
                return SIGNAL_EXITS[signal]
            return await conclude(where, runtime.ledger, session.execution_id, session.state, manner, signal=signal)
    finally:
        view.close()
        if manner.notifier is not None:
            manner.notifier.close()


async def _run(
    runtime: Runtime, make: Callable[[Runtime], Awaitable[Session]], manner: Manner, view: View
) -> tuple[Session | None, str]:
    session: Session | None = None
    stopping = Stopping(view.hide)
    async with anyio.create_task_group() as group:
        stopping.stop = group.cancel_scope.cancel
        await group.start(stopping.watch)
        if manner.notifier is not None:
            group.start_soon(manner.notifier.serve)
        view.show()
        session = await make(runtime)
        stopping.stop = session.driver.interrupt
        try:
            if manner.begun is not None:
                manner.begun(session)
            await _until_it_rests(session, stopping, terminal(manner.actor), view)
        except LedgerError:
            warn(f"the store failed. What was committed is safe; then: treadle resume {session.execution_id}")
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await session.close()
        group.cancel_scope.cancel()
    return session, stopping.name


async def _until_it_rests(session: Session, stopping: Stopping, person: Terminal | None, view: View) -> None:
    await session.run()
    while person is not None and not stopping.name and session.state.status == "waiting-input":
        view.hide()
        if not await _ask(session, stopping, person):
            return
        view.show()
        await session.run()


async def _ask(session: Session, stopping: Stopping, person: Terminal) -> bool:
    """Whether to go on: the person has answered here, or somebody has elsewhere. Not so after "later" or a signal."""
    stop, later = stopping.stop, False
    async with anyio.create_task_group() as group:

        async def look() -> None:
            while not await session.journal.ledger.posted(session.execution_id):  # noqa: ASYNC110 - others write it
                await anyio.sleep(LOOK_S)
            group.cancel_scope.cancel()

        stopping.stop = group.cancel_scope.cancel
        group.start_soon(look)
        try:
            await session.steer(await person.ask(session.state.pending))
        except AnswerRefused as refusal:
            warn(str(refusal))
        except Later:
            later = True
        finally:
            stopping.stop = stop
        group.cancel_scope.cancel()
    return not later and not stopping.name


async def conclude(
    where: Place, ledger: Ledger, execution_id: str, state: LoopState, manner: Manner, *, signal: str = ""
) -> int:
    """Writes the ending down, tells whoever wants to know, and prints it. The exit code."""
    found = document(execution_id, state, signal=signal)
    await record_ending(where, ledger, execution_id, state)
    if manner.notifier is not None:
        await manner.notifier.send(found)
    return report(where, execution_id, state, manner, found)


def report(where: Place, execution_id: str, state: LoopState, manner: Manner, found: dict[str, Any]) -> int:
    """The banner for people and the document for programs."""
    if not manner.quiet:
        banner(execution_id, rest_of(execution_id, state, store=where.named_store), stream=sys.stderr)
    if manner.json:
        print_json(found)
    return int(found["exit_code"])


async def record_ending(where: Place, ledger: Ledger, execution_id: str, state: LoopState) -> None:
    """The artifact of AG-17. One that cannot be written changes no outcome."""
    records = await ledger.records(execution_id)
    try:
        write_artifact(where.settings.state_dir, execution_id, state, rounds(records), store=where.named_store)
    except ConfigurationError as error:
        warn(str(error))
