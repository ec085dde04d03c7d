"""Starts executions, takes them over, and drives them: what the command line, the service and Python users call."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from anyio import CancelScope

from treadle.core import events as ev
from treadle.core.child_events import ChildEnded, ChildWoken, ParentSaid
from treadle.core.endings import RETRY, ending, is_final
from treadle.core.errors import AnswerRefused, InputError
from treadle.core.scope_events import Isolation
from treadle.effects.children import used_since
from treadle.effects.loop import LoopEffects
from treadle.kernel.actions import EndChild, Record
from treadle.kernel.children import left
from treadle.kernel.lessons import after
from treadle.kernel.loop import next_actions
from treadle.kernel.outcomes import lacks_usage
from treadle.kernel.states import LoopState
from treadle.kernel.steering import Answer, Extend, Steering, encode, to_event
from treadle.kernel.stepping import Unit
from treadle.ports.clock import NO_CRASH_POINTS, Clock, CrashPoints
from treadle.ports.ledger import Ledger
from treadle.ports.lessons import Lessons
from treadle.ports.observer import Observer
from treadle.runtime.clock import SystemClock
from treadle.runtime.document import document
from treadle.runtime.driver import Driver
from treadle.runtime.journal import Journal, load_state
from treadle.runtime.leases import check_leases
from treadle.settings import Settings
from treadle.spec.definitions import Agent, Loop
from treadle.tools.process import kill_recorded

from .build import Built, build, with_task
from .children import Family, Parent, ended
from .identity import refused
from .inputs import check_input, check_room, dump_input
from .isolating import Builder, inside, isolated, reopened
from .stores import lessons_of


@dataclass(frozen=True, slots=True)
class Reopening:
    """What a person says when going on with an execution."""

    retry_incomplete: bool = False
    adopt: bool = False
    price: bool = False  # a price was given
    force: bool = False
    actor: str = ""
    guards: Mapping[str, int] = field(default_factory=dict[str, int])  # other thresholds from now on
    step: Unit | None = None  # do so much, and hold it there
    parent_said: ParentSaid | None = None  # of a child: what its parent can spare now


class Session:
    """One execution in this process."""

    def __init__(self, journal: Journal, driver: Driver, effects: LoopEffects) -> None:
        self.journal, self.driver, self.effects = journal, driver, effects

    @property
    def execution_id(self) -> str:
        """The execution's id."""
        return self.journal.execution_id

    @property
    def state(self) -> LoopState:
        """The state as of now."""
        return self.journal.state

    async def run(self) -> dict[str, Any]:
        """Drives it until it rests; the document of SV-03."""
        await self.driver.run()
        return document(self.execution_id, self.state)

    async def steer(self, steering: Steering) -> None:
        """An answer or an extension from this very process. AnswerRefused, InputError."""
        self.journal.emit(to_event(self.state, steering, self.journal.clock.wall_us()))
        _ask_anew(self.journal)
        await self.journal.flush()

    async def close(self) -> None:
        """Gives the execution and its connections up."""
        try:
            await self.effects.close()
        finally:
            await self.journal.close()


class Runtime:
    """Executions of one store. Give it up with `close`."""

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        *,
        clock: Clock | None = None,
        points: CrashPoints = NO_CRASH_POINTS,
        observers: tuple[Observer, ...] = (),
        quota_wait_s: float | None = 0.0,
    ) -> None:
        self.ledger, self.settings, self.points, self.observers = ledger, settings, points, observers
        self.clock = clock or SystemClock()
        self.quota_wait_s = quota_wait_s
        self.lessons = lessons_of(ledger)
        self.owner = f"{socket.gethostname()}:{os.getpid()}"

    async def start(
        self,
        loop: Loop,
        value: Any,
        *,
        execution_id: str | None = None,
        definition: str = "",
        parent: Parent | None = None,
    ) -> Session:
        """A new execution, durable when this returns; nothing has been paid yet. InputError for anything that is wrong."""
        input_json, task = dump_input(loop, value)
        execution_id = execution_id or self.clock.new_id()
        if loop.isolate:
            async with isolated(loop, execution_id, self._builder(), self.settings, self.points) as own:
                return await self._start(*own, input_json, task, execution_id, definition, parent)
        built = self._builder()(loop, None)
        return await self._start(built, None, input_json, task, execution_id, definition, parent)

    def _builder(self) -> Builder:
        return partial(_build, self.settings, self.clock, self.ledger.url, self.lessons)

    async def _start(
        self,
        built: Built,
        isolation: Isolation | None,
        input_json: str,
        task: str,
        execution_id: str,
        definition: str,
        parent: Parent | None,
    ) -> Session:
        check_room(task, built.parts)
        started = ev.LoopStarted(
            settings=with_task(built.settings, built.loop.must_change, task),
            step_exec_id=execution_id,
            input_json=built.redact(input_json),
            task=built.redact(task),
            fingerprint=built.fingerprint,
            at_us=self.clock.wall_us(),
            workspace=built.workspace,
            definition=definition,
            scope=isolation,
            forked_by="" if parent is None else parent.execution_id,
            above=() if parent is None else parent.held,
        )
        effects = await self._effects(built, execution_id, parent)
        async with _given_up_on_failure(effects):
            journal = await Journal.create(
                self.ledger,
                execution_id,
                started,
                clock=self.clock,
                owner=self.owner,
                observers=self._observers(parent),
            )
            return self._session(journal, effects, parent)

    async def resume(
        self, execution_id: str, loop: Loop, how: Reopening, *, definition: str = "", parent: Parent | None = None
    ) -> Session:
        """Takes an execution over and makes it ready to run.

        InputError where it cannot go on as asked; DefinitionChanged, InputMismatch, OwnerAlive, UnknownExecution.
        Ask `resting` first: a finished execution needs no session.
        """
        known = await load_state(self.ledger, execution_id)
        if known.state.parent and parent is None:
            raise InputError(_inside_of(execution_id, known.state.parent))
        check_input(loop, known.state.input_json)
        await check_leases(self.ledger, execution_id, known.state)
        isolation, restored = await reopened(known.state, self.settings)
        built = self._builder()(loop if isolation is None else inside(loop, known.state), isolation)
        told = known.state.fingerprint
        # Accepted work is only put away: its scope, with its skills, may be gone.
        if told != built.fingerprint and not how.adopt and not known.state.accepted:
            raise refused(execution_id, told, built.fingerprint)
        effects = await self._effects(built, execution_id, parent)
        async with _given_up_on_failure(effects):
            journal = await Journal.open(
                self.ledger,
                execution_id,
                clock=self.clock,
                owner=self.owner,
                observers=self._observers(parent),
                force=how.force,
                known=known,
            )
        session = self._session(journal, effects, parent)
        try:
            if restored is not None:
                journal.emit(restored)
            await self._go_on(session, built, how, definition)
        except BaseException:
            await session.close()
            raise
        return session

    async def _go_on(self, session: Session, built: Built, how: Reopening, definition: str) -> None:
        journal = session.journal
        state = journal.state
        if how.adopt and state.fingerprint != built.fingerprint:
            adopted = ev.Adopted(
                actor=how.actor,
                settings=built.settings,
                fingerprint=built.fingerprint,
                definition=definition or state.definition,
            )
            journal.emit(adopted)
        elif definition and definition != state.definition:
            journal.emit(
                ev.Adopted(
                    actor=how.actor, settings=state.settings, fingerprint=state.fingerprint, definition=definition
                )
            )
        if how.parent_said is not None:
            journal.emit(how.parent_said)
        if how.guards:
            journal.emit(ev.Extended(actor=how.actor, guards=dict(how.guards)))
        if state.code == "usage-unavailable" and how.price:
            journal.emit(ev.Extended(actor=how.actor, priced=True))
        elif how.retry_incomplete and (state.status == "failed" or lacks_usage(state)):
            journal.emit(ev.Reopened(actor=how.actor))
        elif state.code == "quota" and state.pending is not None and state.pending.until_us is None:
            journal.emit(ev.WaitEnded(at_us=self.clock.wall_us()))  # a person says that it is worth another try
        await session.driver.take_over()
        await journal.flush()
        if how.step is not None:
            session.driver.hold_after(how.step)

    async def _effects(self, built: Built, execution_id: str, parent: Parent | None) -> LoopEffects:
        """Connected to what its tools need, before anything is started. ConfigurationError."""
        parts = built.parts
        if isinstance(built.loop.act, Agent) and built.loop.act.children:
            workspace = Path(built.workspace) if built.workspace else None
            parts = replace(parts, children=Family(self, execution_id, built, workspace))
        if parent is not None:
            parts = replace(parts, above=parent.above)
        effects = LoopEffects(parts, self.clock, self.points)
        await effects.open()
        return effects

    def _observers(self, parent: Parent | None) -> tuple[Observer, ...]:
        return self.observers if parent is None else tuple(one for one in self.observers if one.hears_children)

    def _session(self, journal: Journal, effects: LoopEffects, parent: Parent | None) -> Session:
        # A child does not wait for its quota: its parent does, parked, as it was told to.
        wait_s = self.quota_wait_s if parent is None else 0.0
        driver = Driver(journal, effects, self.clock, self.points, quota_wait_s=wait_s)
        return Session(journal, driver, effects)

    # ---- looking and steering

    async def state(self, execution_id: str, *, at: int | None = None) -> LoopState:
        """The state now, or as it was after record `at`. InputError where it is no loop."""
        row = await self.ledger.row(execution_id)
        if row.kind != "loop":
            raise InputError(f"{row.execution_id} is a {row.kind}, not a loop.")
        return (await load_state(self.ledger, execution_id, at=at))[0]

    async def steer(self, execution_id: str, steering: Steering, *, routed: bool = False) -> LoopState:
        """Gives the request to whoever owns the execution, or carries it out at once where nobody does.

        AnswerRefused and InputError against the state as it is now. An answer to a child for which its parent is parked goes
        to the parent, which hands it down (`routed`: it comes from there); a parent is told of whatever else ends its wait.
        """
        row = await self.ledger.row(execution_id)
        state = await self.state(row.execution_id)
        to_event(state, steering, self.clock.wall_us())
        if state.parent and not routed and (told := await self._through_parent(row.execution_id, state, steering)):
            return told
        if row.owner_alive:
            kind, body = encode(steering)
            await self.ledger.post(row.execution_id, kind, body, at_us=self.clock.wall_us())
            return state
        journal = await Journal.open(
            self.ledger, row.execution_id, clock=self.clock, owner=self.owner, observers=self.observers
        )
        try:
            if journal.state.status == "running":  # its owner died: what it had in flight is in doubt, its children end
                for pgid, birth in journal.state.processes:
                    kill_recorded(pgid, birth)
                journal.emit(ev.Interrupted(epoch=journal.ownership.epoch, reason="taken-over"))
            journal.emit(to_event(journal.state, steering, self.clock.wall_us()))
            _ask_anew(journal)
            await journal.flush()
            await self._end_child(journal)
        finally:
            await journal.close()
        if journal.state.parent and not routed:
            await self._wake_parent(row.execution_id, journal.state)
        return journal.state

    async def _through_parent(self, child: str, state: LoopState, steering: Steering) -> LoopState | None:
        """The parent's state, where the answer is one to what it is parked with; None: it is the child's own business."""
        if not isinstance(steering, Answer) or steering.end:
            return None
        parent = await self.state(state.parent)
        asked = f"{child}.{steering.request_id}"
        if parent.answer is not None and parent.answer.id == asked:
            raise AnswerRefused(
                f"{parent.answer.actor} has answered it already; treadle resume {state.parent} goes on with both."
            )
        if parent.pending is None or parent.pending.id != asked:
            return None
        return await self.steer(state.parent, msgspec.structs.replace(steering, request_id=asked))

    async def _wake_parent(self, child: str, state: LoopState) -> None:
        """A parent that is parked for what its child no longer waits with looks at it again."""
        parent = await self.state(state.parent)
        if parent.pending is None or parent.pending.child != child:
            return
        if state.pending is not None and parent.pending.id == f"{child}.{state.pending.id}":
            return
        journal = await Journal.open(
            self.ledger, state.parent, clock=self.clock, owner=self.owner, observers=self.observers
        )
        try:
            journal.emit(ChildWoken(child=child, id=parent.pending.id))
            await journal.flush()
        finally:
            await journal.close()
        if parent.parent:
            await self._wake_parent(state.parent, journal.state)

    async def _end_child(self, journal: Journal) -> None:
        """The child of an execution that was ended while nobody ran it is ended with it (FR-22)."""
        (action,) = next_actions(journal.state)
        if not isinstance(action, EndChild):
            return
        account = journal.state.child
        found = await ended(self, action.child, "its parent was ended")
        if account is not None and found is not None:
            journal.emit(used_since(account, found))
        journal.emit(ChildEnded(child=action.child))
        await journal.flush()

    async def close(self) -> None:
        """Closes the store."""
        await self.lessons.close()
        await self.ledger.close()


@asynccontextmanager
async def _given_up_on_failure(effects: LoopEffects) -> AsyncGenerator[None]:
    """What was connected for an execution that cannot be opened is given back."""
    try:
        yield
    except BaseException:
        with CancelScope(shield=True):
            await effects.close()
        raise


def _ask_anew(journal: Journal) -> None:
    """A plan that a person changed is put before a person again, at once and in the same commit."""
    (action,) = next_actions(journal.state)
    if isinstance(action, Record) and isinstance(action.event, ev.Suspended) and action.event.kind == "plan":
        journal.emit(action.event)


def retuned(state: LoopState, guards: Mapping[str, int]) -> dict[str, int]:
    """Those thresholds of a definition that are not the ones the execution has."""
    now = state.settings.guards
    return {name: value for name, value in guards.items() if getattr(now, name.replace("-", "_")) != value}


def resting(state: LoopState, how: Reopening) -> str:
    """Why an execution does not go on by itself, in words; empty where a session may be opened (FR-26, table of endings)."""
    if state.status == "running" or (state.status == "paused"):
        return ""
    if is_final(state.status, state.code):
        # Killed before its child was ended, or its vote on lessons was cast.
        return "" if left(state) or after(state) is not None else "it has ended"
    if state.status == "waiting-input":
        return "it waits for an answer"
    if state.code == "usage-unavailable":
        if lacks_usage(state):
            return (
                "" if how.price or how.retry_incomplete else "the provider reports no usage: resume --retry-incomplete"
            )
        return "" if how.price else "it needs a price: resume --price IN,OUT"
    if state.status == "stopped":
        return "it needs more room: treadle extend"
    if state.status == "failed" and RETRY in ending(state.status, state.code).goes_on_by:
        return "" if how.retry_incomplete else "it failed: resume --retry-incomplete"
    return "it has ended"


def _inside_of(execution_id: str, parent: str) -> str:
    return f"{execution_id} runs inside {parent}: treadle resume {parent} goes on with both."


def _build(
    settings: Settings, clock: Clock, store: str, lessons: Lessons | None, loop: Loop, isolation: Isolation | None
) -> Built:
    return build(loop, settings, clock, store=store, lessons=lessons, isolation=isolation)


__all__ = ["Extend", "InputError", "Reopening", "Runtime", "Session", "resting", "retuned"]
