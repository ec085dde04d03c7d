"""The circle of one execution: decide, perform, commit, advance. It rests when it has ended, waits, or is asked to stop."""

from __future__ import annotations

import math
from typing import Literal

import anyio

from treadle.core import events as ev
from treadle.core.errors import InputError, LedgerError
from treadle.effects.broken import what_broke
from treadle.effects.loop import LoopEffects
from treadle.kernel import actions as act
from treadle.kernel.budget import remaining_us
from treadle.kernel.children import may_yield
from treadle.kernel.loop import at_boundary, next_actions
from treadle.kernel.states import LoopState
from treadle.kernel.steering import Step, decode, to_event
from treadle.kernel.stepping import Hold, Unit, begin, reached
from treadle.ports.clock import Clock, CrashPoints

from .host import JournalHost
from .journal import Journal
from .raised import first_error

Rest = act.Finish | act.Wait
INTENTS = (act.IntendModel, act.IntendCompaction)
LESSONS = (act.VoteLessons, act.DistilLessons)
CHILDREN = (act.RunChild, act.EndChild)  # a child is given what is left of the time, and keeps to it itself
BARRIERS = (
    act.CallModel,
    act.Compact,
    act.RunTools,
    act.RunActor,
    act.RunCheck,
    act.RunGates,
    act.CloseScope,
    *CHILDREN,
    *LESSONS,
)
# What is finished or accepted is not undone by a limit.
UNTIMED = (act.FinishAct, act.Conclude, act.CloseScope, *CHILDREN, *LESSONS)
LINGER_S = 0.005  # how long reads may run until the response that asked for them is written by itself
INBOX_S = 0.3  # how long a request from outside may lie unread while an effect runs


class Driver:
    """Drives one execution until it rests."""

    def __init__(
        self, journal: Journal, effects: LoopEffects, clock: Clock, points: CrashPoints, *, quota_wait_s: float | None
    ) -> None:
        self.journal, self.effects, self.clock, self.points = journal, effects, clock, points
        self.host = JournalHost(journal)
        self.quota_wait_s = quota_wait_s  # longest wait in process for a known reset; None: as long as it takes
        self._scope: anyio.CancelScope | None = None
        self._why: Literal["signal", "cancelled", ""] = ""
        self._yielding = False
        self._hold: Hold | None = None  # a step is on its way
        self._start_us: int | None = None  # when the effect in flight began; None: none is
        self._left_us = 0  # the active time that it was given
        self._end: tuple[ev.Stopped, int] | None = None  # a cancellation that was asked for, and its posted id

    def interrupt(self) -> None:
        """Asks for a clean stop (Ctrl-C, SIGTERM): what is in flight is cancelled, and the execution can be resumed."""
        self._stop("signal")

    def hold_after(self, unit: Unit) -> None:
        """Asks it to rest, paused, once one turn or round more is done; what it comes to before is a rest as well."""
        self._hold = begin(self.journal.state, unit)

    def hand_over(self) -> None:
        """Asks it to rest at the next boundary, running as it is, so that another owner goes on. A child at work is stopped for it."""
        self._yielding = True
        if self.journal.state.child is not None:
            self._stop("cancelled")

    def _stop(self, why: Literal["signal", "cancelled"]) -> None:
        self._why = self._why or why
        if self._scope is not None:
            self._scope.cancel()

    async def take_over(self) -> None:
        """After another process: make sure that its children are gone, put in doubt what it had in flight, look at the workspace."""
        journal = self.journal
        state = journal.state
        await self.effects.clean_up(state)
        if state.status == "running" or state.code == "interrupted":
            if (changed := await self.effects.workspace_changed(state, journal.last_us)) is not None:
                journal.emit(changed)
            journal.emit(ev.Interrupted(epoch=journal.ownership.epoch, reason="taken-over"))

    async def run(self) -> Rest:
        """Until it rests. LedgerError: memory was dropped, open it anew."""
        rests: list[Rest] = []
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._watch_inbox)
                rests.append(await self._circle())
                group.cancel_scope.cancel()
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None
        return rests[0]

    async def _circle(self) -> Rest:
        journal = self.journal
        try:
            while True:
                with anyio.CancelScope() as scope:
                    self._scope = scope
                    return await self._until_rest()
                if (rest := self._cut_off()) is not None:
                    await journal.flush()
                    return rest
        except anyio.get_cancelled_exc_class():
            if journal.failure is None and journal.state.status == "running":
                journal.emit(ev.Interrupted(epoch=journal.ownership.epoch, reason="cancelled"))
                with anyio.CancelScope(shield=True):
                    await journal.flush()
            raise
        finally:
            self._scope = None

    async def _until_rest(self) -> Rest:
        """Decides and performs until it rests. Every few commits yield, so a cancellation never starves."""
        journal = self.journal
        while True:
            self._heed()
            if self._yielding and journal.state.status == "running" and _may_yield(journal.state):
                await journal.flush()
                return act.Wait(kind="hand-over")
            action = next_actions(journal.state)[0]
            if isinstance(action, act.Record):
                journal.emit(action.event)
            elif isinstance(
                action, act.IntendModel | act.IntendCompaction
            ):  # says what will be asked, and waits for nothing
                journal.emit(await self.effects.perform(action, self.host))
            elif isinstance(action, act.Finish):
                await journal.flush()
                return action
            elif isinstance(action, act.Wait):
                if not await self._wait(action):
                    return action
            else:
                await self._perform(action)

    def _heed(self) -> None:
        """At a boundary: stop or end where that was asked for."""
        journal = self.journal
        why, self._why = self._why, ""
        if why == "signal" and journal.state.status == "running":
            journal.emit(ev.Interrupted(epoch=journal.ownership.epoch, reason=why))
        if self._hold is not None and reached(self._hold, journal.state):
            self._hold = None
            if journal.state.status == "running":
                journal.emit(ev.Interrupted(epoch=journal.ownership.epoch, reason="step"))
        if self._end is not None:
            (event, posted_id), self._end = self._end, None
            journal.emit(event, taken=posted_id)

    def _cut_off(self) -> Rest | None:
        """The scope was cancelled, by a stop or by the deadline: whatever was in flight is so no longer."""
        journal = self.journal
        start, self._start_us = self._start_us, None
        us = 0 if start is None else self.clock.monotonic_us() - start
        why, self._why = self._why or "deadline", ""
        if why == "deadline" and start is not None:
            us = max(us, self._left_us)  # the limit has been reached, whatever the two clocks say
        if journal.state.status == "running":
            journal.emit(ev.Interrupted(epoch=journal.ownership.epoch, reason=why, us=us))
            return None
        action = next_actions(journal.state)[0]
        return action if why == "signal" and isinstance(action, act.Wait) else None

    async def _perform(self, action: act.Action) -> None:
        """One effect, within the active time that is left. Its outcome is the event that it returns, or an interruption."""
        journal, timer = self.journal, None
        if isinstance(action, act.RunTools) and action.calls[0].kind == "read":
            # The response is written while the reads run; quick ones share the commit (decision 12).
            timer = journal.flush_later(LINGER_S)
        elif isinstance(action, BARRIERS) or (isinstance(action, act.TakeBaseline) and action.onto):
            await journal.barrier()
            if self._why:
                return  # asked to stop meanwhile: nothing has been sent
        left = None if isinstance(action, UNTIMED) else remaining_us(journal.state)
        if left is not None and self._scope is not None:
            self._left_us = left
            self._scope.deadline = anyio.current_time() + max(left, 1) / 1e6
        self._start_us = self.clock.monotonic_us()
        try:
            event = await self.effects.perform(action, self.host)
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of tool machinery: it ends the loop, in its words
            self._broken(error, self.clock.monotonic_us() - self._start_us)
            self._start_us = None
            return
        finally:
            if timer is not None:
                timer.cancel()
        self._start_us = None
        if left is not None and self._scope is not None:
            self._scope.deadline = math.inf
        journal.emit(event)

    def _broken(self, error: Exception, us: int) -> None:
        evidence, advice = what_broke(error, self.journal.state.workspace)
        epoch = self.journal.ownership.epoch
        self.journal.emit(ev.Interrupted(epoch=epoch, reason="cancelled", us=us))
        self.journal.emit(
            ev.Stopped(
                status="failed",
                code="failed",
                kind="internal",
                evidence=evidence,
                advice=advice,
            )
        )

    async def _wait(self, action: act.Wait) -> bool:
        """Whether the wait is over; False: rest, and let a later process go on."""
        journal = self.journal
        await journal.flush()
        if action.kind not in ("back-off", "quota") or action.until_us is None:
            await self._read_inbox()
            return journal.state.pending is None or self._end is not None
        left_s = (action.until_us - self.clock.wall_us()) / 1e6
        if action.kind == "quota" and self.quota_wait_s is not None and left_s > self.quota_wait_s:
            return False
        journal.tell("waiting", {"kind": action.kind, "until_us": action.until_us})
        await self._sleep_until(action.until_us)
        journal.emit(ev.WaitEnded(at_us=self.clock.wall_us()))
        return True

    async def _sleep_until(self, until_us: int) -> None:
        """In steps, since wall time may jump."""
        while (left_s := (until_us - self.clock.wall_us()) / 1e6) > 0:
            await self.clock.sleep(min(left_s, 30.0))

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
                wish = decode(posted.body)
                event = to_event(journal.state, wish, self.clock.wall_us())
            except InputError as refusal:
                journal.take(posted.id)
                journal.tell("refused", str(refusal))
                continue
            if isinstance(wish, Step):
                journal.take(posted.id)
                self.hold_after(wish.unit)
            elif isinstance(event, ev.Interrupted):  # a person asks for a pause
                journal.take(posted.id)
                self.interrupt()
            elif isinstance(event, ev.Stopped):
                self._end = (event, posted.id)  # once what is in flight has been stopped
                self._stop("cancelled")
            else:
                journal.emit(event, taken=posted.id)


def _may_yield(state: LoopState) -> bool:
    return at_boundary(state) or may_yield(state)
