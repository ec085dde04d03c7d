"""Drives one execution for the command line: progress, signals, questions, notifications, and the last word."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from treadle.app.ending import rest_of, write_artifact
from treadle.app.history import rounds
from treadle.app.listing import AnyState, document_of
from treadle.app.logs import tail_of
from treadle.app.observing import open_sinks
from treadle.app.runtime import Runtime
from treadle.app.task_history import whole_document
from treadle.app.views import View
from treadle.core.endings import SIGNAL_EXITS, ending
from treadle.core.errors import AnswerRefused, ConfigurationError, LedgerError, StaleEpoch
from treadle.core.redaction import Redactor, secrets_of
from treadle.kernel.states import LoopState
from treadle.kernel.steering import Steering
from treadle.ports.ledger import Ledger
from treadle.ports.observer import Observer

from .ask import Asked, Later, Terminal, terminal
from .notify import Notifier
from .output import banner, print_json, warn
from .place import Place, running
from .refusal import interrupted
from .signals import Stopping
from .workflow_view import WorkflowView

LOOK_S = 0.5  # how often it is looked whether somebody else has answered meanwhile


class _Driver(Protocol):
    def interrupt(self) -> None:
        """Asks for a clean stop."""


class Driven(Protocol):
    """A session of a loop or of a workflow."""

    @property
    def execution_id(self) -> str:
        """The execution's id."""
        ...

    @property
    def state(self) -> AnyState:
        """The state as of now."""
        ...

    @property
    def driver(self) -> _Driver:
        """What drives it."""
        ...

    async def run(self) -> dict[str, Any]:
        """Drives it until it rests."""
        ...

    async def steer(self, steering: Steering) -> None:
        """An answer from this process."""
        ...

    async def close(self) -> None:
        """Gives it up."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How it is shown and who is asked."""

    json: bool = False
    quiet: bool = False
    actor: str = ""
    notifier: Notifier | None = None
    sinks: tuple[str, ...] = ()  # where progress goes; empty: stderr
    begun: Callable[[Driven], None] | None = None  # called once the execution is durable


async def drive(
    where: Place, make: Callable[[Runtime], Awaitable[Driven]], manner: Manner, *, create: bool = False
) -> int:
    """Runs what `make` gives until it rests; the exit code of the table of endings."""
    sinks = open_sinks(manner.sinks, where.settings, sys.stderr, quiet=manner.quiet)
    view = sinks.view
    observers: tuple[Observer, ...] = (WorkflowView(view), *sinks.others)
    if manner.notifier is not None:
        observers = (*observers, manner.notifier)
    codes: list[int] = []
    stopping = Stopping(view.hide)
    try:
        async with anyio.create_task_group() as group:  # a signal is heeded from before there is a store
            stopping.stop = group.cancel_scope.cancel
            await group.start(stopping.watch)
            async with running(where, create=create, observers=observers) as runtime:
                session = await _run(where, runtime, make, manner, view, stopping)
                view.close()
                if session is not None:
                    name = stopping.name
                    codes.append(
                        await conclude(where, runtime.ledger, session.execution_id, session.state, manner, signal=name)
                    )
            group.cancel_scope.cancel()
        return codes[0] if codes else _not_started(stopping.name, manner)
    finally:
        sinks.close()
        if manner.notifier is not None:
            manner.notifier.close()


def _not_started(signal: str, manner: Manner) -> int:
    return interrupted(
        SIGNAL_EXITS[signal], "interrupted before it had started: nothing was started.", json=manner.json
    )


async def _run(
    where: Place,
    runtime: Runtime,
    make: Callable[[Runtime], Awaitable[Driven]],
    manner: Manner,
    view: View,
    stopping: Stopping,
) -> Driven | None:
    session: Driven | None = None
    async with anyio.create_task_group() as group:
        stopping.stop = group.cancel_scope.cancel
        if manner.notifier is not None:
            group.start_soon(manner.notifier.serve)
        view.show()
        session = await make(runtime)
        stopping.stop = session.driver.interrupt
        name = f"{session.execution_id}{where.flag}"
        try:
            if manner.begun is not None:
                manner.begun(session)
            await _until_it_rests(runtime.ledger, session, stopping, terminal(manner.actor), view)
        except StaleEpoch as error:
            warn(f"another process has taken it over; to see how it goes there: treadle watch {name}")
            error.next = f"treadle watch {name}"
            raise
        except LedgerError as error:
            error.next = f"treadle resume {name}"
            warn(f"the store failed. What was committed is safe; then: {error.next}")
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await session.close()
        group.cancel_scope.cancel()
    return session


async def _until_it_rests(
    ledger: Ledger, session: Driven, stopping: Stopping, person: Terminal | None, view: View
) -> None:
    found = await session.run()
    while person is not None and not stopping.name and found["status"] == "waiting-input":
        view.hide()
        if not await _ask(ledger, session, stopping, person):
            return
        view.show()
        found = await session.run()


def _open_question(state: AnyState) -> Asked | None:
    if isinstance(state, LoopState):
        return state.pending
    return next((question for key in state.asking for question in state.active[key].questions), None)


async def _ask(ledger: Ledger, session: Driven, stopping: Stopping, person: Terminal) -> bool:
    """Whether to go on: the person has answered here, or somebody has elsewhere. Not so after "later" or a signal."""
    stop, later = stopping.stop, False
    async with anyio.create_task_group() as group:

        async def look() -> None:
            while not await ledger.posted(session.execution_id):  # noqa: ASYNC110 - others write it
                await anyio.sleep(LOOK_S)
            group.cancel_scope.cancel()

        stopping.stop = group.cancel_scope.cancel
        group.start_soon(look)
        try:
            await session.steer(await person.ask(_open_question(session.state)))
        except AnswerRefused as refusal:
            warn(str(refusal))
        except Later:
            later = True
        finally:
            stopping.stop = stop
        group.cancel_scope.cancel()
    return not later and not stopping.name


async def conclude(
    where: Place, ledger: Ledger, execution_id: str, state: AnyState, manner: Manner, *, signal: str = ""
) -> int:
    """Writes the ending down, tells whoever wants to know, and prints it. The exit code."""
    found = document_of(execution_id, state, signal=signal)
    await record_ending(where, ledger, execution_id, state)
    if manner.notifier is not None:
        await manner.notifier.send(found)
    if manner.json:
        found = await whole_document(ledger, execution_id, state, signal=signal)
    return report(where, execution_id, state, manner, found)


def report(where: Place, execution_id: str, state: AnyState, manner: Manner, found: dict[str, Any]) -> int:
    """The banner for people and the document for programs."""
    failed = ending(found["status"], found["code"]).nonfailure is False if found["status"] != "running" else False
    if not manner.quiet or (failed and not manner.json):  # a script that asked for quiet still learns why it failed
        banner(execution_id, rest_of(execution_id, state, store=where.named_store), stream=sys.stderr)
    if manner.json:
        print_json(found)
    return int(found["exit_code"])


async def record_ending(where: Place, ledger: Ledger, execution_id: str, state: AnyState) -> None:
    """The artifact of AG-17. One that cannot be written changes no outcome."""
    known = rounds(await ledger.records(execution_id)) if isinstance(state, LoopState) else []
    log = await tail_of(ledger, execution_id, Redactor(secrets_of(where.settings.environ)).redact)
    try:
        write_artifact(where.settings.state_dir, execution_id, state, known, store=where.named_store, log=log)
    except ConfigurationError as error:
        warn(str(error))
