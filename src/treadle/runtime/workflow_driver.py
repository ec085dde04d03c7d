"""The circle of one workflow: decide, perform what is ready side by side, commit, advance, until it rests."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Literal, cast

import anyio
import anyio.abc
import anyio.lowlevel

from treadle.core import workflow_events as ev
from treadle.core.errors import InputError
from treadle.core.strict_json import from_json
from treadle.core.values import Value, replace
from treadle.effects.tasks import TaskEffect
from treadle.kernel import workflow as wf
from treadle.kernel.steering import decode
from treadle.kernel.workflow_states import TaskState
from treadle.kernel.workflow_steering import to_events
from treadle.ports.clock import Clock, CrashPoints
from treadle.ports.task import ChildPaused, QuotaPause

from .contexts import HostedContext, Shared, charge
from .raised import first_error

INBOX_S = 0.3  # how long a request from outside may lie unread while tasks run
Action = wf.Perform | wf.Condition


class Stopwatch:
    """Active time: the span in which at least one thing runs, so that concurrent work counts once (FR-10)."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._running, self._since = clock, 0, 0

    def start(self) -> None:
        """One more runs."""
        if not self._running:
            self._since = self._clock.monotonic_us()
        self._running += 1

    def stop(self) -> None:
        """One less does."""
        self._running -= 1

    def take(self) -> int:
        """Microseconds since the last time it was asked, as far as anything ran."""
        now = self._clock.monotonic_us()
        us, self._since = now - self._since, now
        return us


class Flight:
    """One action under way."""

    def __init__(self, action: Action) -> None:
        self.action = action
        self.scope = anyio.CancelScope()
        self.context: HostedContext | None = None
        self.aborted = False

    async def expire(self, deadline: float, timer: anyio.CancelScope) -> None:
        """Tells the callback when its time is over: it may be shielded from being cancelled."""
        with timer:
            await anyio.sleep_until(deadline)
            if self.context is not None:
                self.context.abort.abort()

    def abort(self) -> None:
        """Tells the callback, and cancels it."""
        self.aborted = True
        if self.context is not None:
            self.context.abort.abort()
        self.scope.cancel()


class WorkflowDriver:
    """Drives one execution until it rests."""

    def __init__(
        self, shared: Shared, effects: TaskEffect, clock: Clock, points: CrashPoints, *, quota_wait_s: float | None
    ) -> None:
        self.shared, self.journal, self.effects = shared, shared.journal, effects
        self.clock, self.points, self.quota_wait_s = clock, points, quota_wait_s
        self.watch = Stopwatch(clock)
        self._flights: dict[str, Flight] = {}
        self._timers: dict[str, tuple[int, int, float]] = {}  # task -> (round, attempt, deadline)
        self._wake = anyio.Event()
        self._group: anyio.abc.TaskGroup
        self._why: Literal["signal", ""] = ""
        self._end: tuple[Value, int] | None = None  # a cancellation that was asked for, and its posted id

    def interrupt(self) -> None:
        """Asks for a clean stop (Ctrl-C, SIGTERM): what runs is cancelled, and the execution can be resumed."""
        self._why = "signal"
        self._abort()

    def _abort(self) -> None:
        for flight in self._flights.values():
            flight.abort()
        self._wake.set()

    async def take_over(self) -> None:
        """After another process: what it had running replays, and what its children have spent is charged."""
        journal = self.journal
        state = journal.state
        if state.status != "running" and state.code != "interrupted":
            return
        journal.emit(ev.WorkflowInterrupted(epoch=journal.ownership.epoch, reason="taken-over"))
        for key, task in journal.state.active.items():
            for child in task.children:
                event = charge(key, child, journal.state.active[key], await self.shared.nest.state(child))
                if event is not None:
                    journal.emit(event)

    async def run(self) -> wf.Rest:
        """Until it rests. LedgerError: memory was dropped, open it anew."""
        rests: list[wf.Rest] = []
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._watch_inbox)
                rests.append(await self._circle(group))
                group.cancel_scope.cancel()
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None
        except anyio.get_cancelled_exc_class():
            await self._cancelled()
            raise
        return rests[0]

    async def _cancelled(self) -> None:
        journal = self.journal
        if journal.failure is None and journal.state.status == "running":
            journal.emit(ev.WorkflowInterrupted(epoch=journal.ownership.epoch, reason="cancelled"))
            with anyio.CancelScope(shield=True):
                await journal.flush()

    async def _circle(self, group: anyio.abc.TaskGroup) -> wf.Rest:
        journal, self._group = self.journal, group
        while True:
            if self._wake.is_set():
                self._wake = anyio.Event()
            await anyio.lowlevel.checkpoint_if_cancelled()
            await self._heed()
            if self._flights and (self._why or self._end):
                await self._wake.wait()  # nothing new is begun
                continue
            self._due()
            actions = wf.next_actions(journal.state)
            head = actions[0]
            if isinstance(head, wf.Decide):
                journal.emit(head.event)
            elif isinstance(head, wf.BeginPause):
                journal.emit(ev.TaskSuspended(task=head.task, until_us=self.clock.wall_us() + head.for_us))
            elif isinstance(head, wf.Rest):
                if not self._flights and await self._rests(head):
                    return head
                if self._flights:
                    await self._wake.wait()  # aborted callbacks are still on their way out
            else:
                if not self._start(group, cast("tuple[Action, ...]", actions)):
                    journal.flush_soon()  # what has ended is not to wait for what still runs
                await self._idle()

    def _start(self, group: anyio.abc.TaskGroup, actions: tuple[Action, ...]) -> bool:
        """Whether something was begun that makes all that has happened durable before it does anything."""
        barrier = False
        for action in actions:
            if action.id not in self._flights:
                barrier = barrier or isinstance(action, wf.Perform)
                flight = self._flights[action.id] = Flight(action)
                self.watch.start()
                group.start_soon(self._fly, flight)
        if wf.stopping(self.journal.state) and not all(flight.aborted for flight in self._flights.values()):
            self._abort()  # once: what is on its way out is waited for, and not asked again and again
        return barrier

    async def _heed(self) -> None:
        """At a boundary: stop or end where that was asked for."""
        journal = self.journal
        if self._flights or not (self._why or self._end):
            return
        if self._end is not None:
            (event, posted_id), self._end = self._end, None
            journal.emit(event, taken=posted_id)
            await self.cancel_children(cast("ev.WorkflowStopped", event).evidence)
        elif journal.state.status == "running":
            journal.emit(ev.WorkflowInterrupted(epoch=journal.ownership.epoch, reason="signal"))
        self._why = ""

    async def cancel_children(self, why: str) -> None:
        """Executions inside an ended one end with it."""
        for task in self.journal.state.active.values():
            for child in task.children:
                await self.shared.nest.cancel(child, why)

    # ---- one flight

    async def _fly(self, flight: Flight) -> None:
        action = flight.action
        try:
            outcome = await self._land(flight)
            if outcome is not None:
                held = flight.context.given.held if flight.context else None
                self.journal.emit_with(outcome, held)
            if flight.context and isinstance(flight.context.given.control, ChildPaused):
                self.interrupt()
        finally:
            self.watch.stop()
            if flight.context is not None:
                flight.context.open = False
        # Not after an error, which ends the run: until it does, the circle would find the phase unfinished and begin it again.
        del self._flights[action.id]
        self.shared.wake()
        self._wake.set()

    async def _land(self, flight: Flight) -> Value | None:
        """The outcome of an action, with the active time that it closes."""
        journal, action = self.journal, flight.action
        outcome: Value | None = None
        with flight.scope:
            if isinstance(action, wf.Perform):
                await journal.flush()  # a barrier: the intent is on disk before anything is done
                self.points.reach("phase-intended")
            flight.context = context = await self._context(action)
            if flight.aborted:
                context.abort.abort()
            try:
                outcome = await self._performed(flight, context)
            finally:
                context.open = False
        if outcome is None and flight.aborted:
            outcome = ev.PhaseStopped(task=action.task)
        if outcome is None or isinstance(outcome, ev.ConditionDecided):
            return outcome
        return replace(outcome, us=self.watch.take())  # type: ignore[type-var]

    async def _performed(self, flight: Flight, context: HostedContext) -> Value | None:
        """What the callback came to, within its time."""
        action = flight.action
        if isinstance(action, wf.Condition):
            return await self.effects.condition(action, context.given)
        timeout_us = self.journal.state.task(action.task).timeout_us
        if timeout_us is None:
            return await self.effects.perform(action, context.given)
        outcome: Value | None = None
        deadline, expiry = self._deadline(action, timeout_us), anyio.CancelScope()
        self._group.start_soon(flight.expire, deadline, expiry)
        with anyio.CancelScope(deadline=deadline) as timer:
            try:
                outcome = await self.effects.perform(action, context.given)
            finally:
                expiry.cancel()
                context.open = False
        if timer.cancel_called and not flight.aborted:
            return self.effects.timed_out(action.task, timeout_us)
        return outcome

    def _deadline(self, action: wf.Perform, timeout_us: int) -> float:
        """One timer covers attempt and check of a round, and starts anew on replay (TC-07)."""
        known = self._timers.get(action.task)
        if known is not None and known[:2] == (action.round, action.attempt):
            return known[2]
        deadline = anyio.current_time() + timeout_us / 1e6
        self._timers[action.task] = (action.round, action.attempt, deadline)
        return deadline

    async def _context(self, action: Action) -> HostedContext:
        """What the callback is given; everything that it may read is loaded now."""
        journal = self.journal
        task = journal.state.active[action.task]
        if task.attempt > 1 and action.task not in self.shared.receipts:
            receipts = await journal.ledger.receipts(journal.execution_id, action.task)
            self.shared.receipts[action.task] = receipts
        context = HostedContext(
            self.shared,
            action,
            task,
            input=from_json(journal.state.input_json),
            values={key: await self._reader(key) for key in journal.state.task(action.task).after},
            quota=await self._quota(task),
            saved="" if task.saved_at is None else await journal.text(task.saved_at),
        )
        given = context.given
        given.feedback = task.feedback
        if task.phase == "check" and task.candidate_at is not None:
            given.candidate = await self._value(task.candidate_at)
        return context

    async def _reader(self, key: str) -> Callable[[], Any]:
        at = self.journal.state.done[key].at
        if (held := self.journal.held(at)) is not None:
            return lambda: held
        text = await self.journal.text(at)
        return lambda: from_json(text)

    async def _value(self, at: int) -> Any:
        """A candidate as saved: what a check does to it is nobody else's business until it accepts (TC-17)."""
        held = self.journal.held(at)
        if held is None:
            return from_json(await self.journal.text(at))
        try:
            return copy.deepcopy(held)
        except Exception:  # noqa: BLE001 - without a store a candidate may be anything, such as an open connection
            return held

    async def _quota(self, task: TaskState) -> QuotaPause | None:
        if task.quota_at is None:  # folding forgets it once an attempt after this one begins (TC-03)
            return None
        event = await self.journal.event(task.quota_at)
        conversation = from_json(event.conversation_json)
        return QuotaPause(event.requested_at_us, event.message, event.reset_at_us, conversation, event.branch)

    # ---- waiting

    def _due(self) -> None:
        """Retry delays, pauses and quota resets whose time has come."""
        journal = self.journal
        if journal.state.status != "running":
            return
        now = self.clock.wall_us()
        for key, until_us in journal.state.timers.items():
            if until_us <= now:
                journal.emit(ev.TaskDue(task=key, at_us=now))
        quota = journal.state.quota
        if quota is not None and quota.reset_at_us is not None and quota.reset_at_us <= now:
            journal.emit(ev.QuotaEnded(at_us=now))

    def _next_due(self) -> int | None:
        state = self.journal.state
        moments = list(state.timers.values())
        if state.quota is not None and state.quota.reset_at_us is not None:
            moments.append(state.quota.reset_at_us)
        return min(moments, default=None)

    async def _idle(self) -> None:
        """Until something has happened or is due."""
        until_us = self._next_due()
        if until_us is None:
            await self._wake.wait()
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._sleep_until, until_us)
            await self._wake.wait()
            group.cancel_scope.cancel()

    async def _sleep_until(self, until_us: int) -> None:
        while (left_s := (until_us - self.clock.wall_us()) / 1e6) > 0:
            await self.clock.sleep(min(left_s, 30.0))  # in steps, since wall time may jump
        self._wake.set()

    async def _rests(self, rest: wf.Rest) -> bool:
        """Whether the driver gives up waiting; False: something has changed."""
        await self.journal.flush()
        if rest.wants == "end":
            return True
        await self._read_inbox()
        if self._end is not None or self._why:
            return False
        if wf.next_actions(self.journal.state)[0] != rest:
            return False
        if rest.until_us is None:
            return True
        if rest.wants == "quota" and self.quota_wait_s is not None:
            left_s = (rest.until_us - self.clock.wall_us()) / 1e6
            if left_s > self.quota_wait_s:
                return True
        self.journal.tell("waiting", {"kind": rest.wants, "until_us": rest.until_us})
        await self._idle()
        return False

    # ---- requests from outside

    async def _watch_inbox(self) -> None:
        while True:
            await anyio.sleep(INBOX_S)
            # What runs here stops where it is another's by now: the process may have slept.
            await self.journal.confirm()
            await self._read_inbox()

    async def _read_inbox(self) -> None:
        journal = self.journal
        for posted in await journal.ledger.posted(journal.execution_id):
            if journal.was_taken(posted.id) or (self._end is not None and self._end[1] == posted.id):
                continue
            try:
                (event,) = to_events(journal.state, [decode(posted.body)], self.clock.wall_us())
            except InputError as refusal:
                journal.take(posted.id)
                journal.tell("refused", str(refusal))
                continue
            if isinstance(event, ev.WorkflowStopped):
                self._end = (event, posted.id)  # once what runs has been stopped
                self._abort()
            else:
                journal.emit(event, taken=posted.id)
            self._wake.set()
