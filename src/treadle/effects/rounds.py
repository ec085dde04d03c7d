"""Phases that a callback does: its context, its reports, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from treadle.core.errors import CheckTimeout, InvalidVerdict, LedgerError, OutsideRound
from treadle.core.events import (
    ActFailed,
    ActFinished,
    CallbackRaised,
    ChargeIntended,
    Judged,
    ProcessStarted,
    UsageReported,
)
from treadle.core.lesson_events import OUTCOMES, LessonsAttributed, RecalledLesson
from treadle.core.receipts import accounted_for
from treadle.core.usage import Usage, checked
from treadle.kernel.actions import FinishAct, RunActor, RunCheck
from treadle.kernel.budget import reached
from treadle.kernel.lessons import LONGEST_EVIDENCE
from treadle.ports.callback import Actor, Check, LessonOutcomes, RoundContext, Verdict
from treadle.ports.clock import Clock, CrashPoints
from treadle.ports.scope import Scope, ScopeReceipt

from .broken import what_broke
from .changes import gone
from .host import Host


class HostedContext(RoundContext):
    """The context of one running callback. Every report is an interim event."""

    def __init__(self, host: Host, key: str, receipts: set[str]) -> None:
        state = host.state
        self._host, self._key, self._receipts = host, key, receipts
        self.execution_id, self.round, self.phase = host.execution_id, state.round, state.phase
        self.attempt = state.attempt
        self.idempotency_key = f"{host.execution_id}:{key.rpartition('.')[0]}"
        self.task, self.feedback, self.changed = state.task, state.feedback, state.last_changed
        self.lessons = state.memory.recalled or ()

    def _inside(self) -> None:
        if self._host.state.callback != self._key:
            raise OutsideRound

    def report_usage(self, usage: Usage) -> None:
        checked(usage)
        self._inside()
        self._host.emit(UsageReported(usage=usage))
        self._host.flush_soon()

    def report_usage_once(self, receipt: str, usage: Usage) -> None:
        checked(usage)
        self._inside()
        if accounted_for(receipt, self._receipts):
            return
        self._receipts.add(receipt)
        self._host.emit(UsageReported(usage=usage, receipt=receipt))
        self._host.flush_soon()

    async def intend(self, receipt: str, reserve: Usage) -> bool:
        checked(reserve)
        self._inside()
        if accounted_for(receipt, self._receipts):
            return False
        self._host.emit(ChargeIntended(receipt=receipt, reserve=reserve))
        await self._host.flush()
        return True

    def limit_reached(self) -> str:
        return reached(self._host.state)

    async def checkpoint(self) -> None:
        await self._host.flush()

    def started(self, pgid: int, birth: str) -> None:
        self._host.emit(ProcessStarted(call=self._key, pgid=pgid, birth=birth))
        self._host.flush_soon()


class RoundEffect:
    """Runs actors and checks, and looks at what act left behind."""

    def __init__(
        self, actor: Actor | None, check: Check | None, scope: Scope | None, clock: Clock, points: CrashPoints
    ) -> None:
        self.actor, self.check, self.scope, self.clock, self.points = actor, check, scope, clock, points

    async def finish(self, action: FinishAct, host: Host) -> ActFinished | ActFailed:
        """The agent's act is over: what it changed goes with its output into one commit (FR-07)."""
        return await self._act_ended(host, action.output_json, action.failure, 0)

    async def act(self, action: RunActor, host: Host) -> ActFinished | ActFailed | CallbackRaised:
        """Lets the callback act."""
        if self.actor is None:
            raise AssertionError("a callback acts, and there is none")
        context = HostedContext(host, action.key, await host.receipts())
        self.points.reach("before-act")
        start = self.clock.monotonic_us()
        try:
            result = await self.actor.act(context)
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever user code raises ends the loop as failed, in its words
            return self._raised(action.key, error, start, host)
        self.points.reach("after-act")
        return await self._act_ended(host, result.output_json, result.failure, self.clock.monotonic_us() - start)

    async def _act_ended(self, host: Host, output_json: str, failure: str, us: int) -> ActFinished | ActFailed:
        base = host.state.baseline
        receipt_json, changed, deleted = "null", (), ()
        if self.scope is not None and base:
            receipt = await self.scope.receipt(base)
            receipt_json, changed = receipt_to_json(receipt), receipt.paths
            deleted = gone(self.scope.root, changed)
        if failure:
            return ActFailed(
                reason=failure,
                output_json=output_json,
                scope_receipt_json=receipt_json,
                changed=changed,
                deleted=deleted,
                us=us,
            )
        return ActFinished(
            output_json=output_json, scope_receipt_json=receipt_json, changed=changed, deleted=deleted, us=us
        )

    async def evaluate(self, action: RunCheck, host: Host) -> Judged | CallbackRaised:
        """Lets the callback judge."""
        if self.check is None:
            raise AssertionError("a callback evaluates, and there is none")
        context = HostedContext(host, action.key, await host.receipts())
        self.points.reach("before-check")
        start = self.clock.monotonic_us()
        try:
            verdict = await self.check.check(context, host.state.last_output_json or "null")
            check_attribution(verdict.lessons, context.lessons)
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            return self._raised(action.key, error, start, host)
        self.points.reach("after-check")
        us = self.clock.monotonic_us() - start
        if verdict.lessons:  # on record with the verdict, in one commit
            host.emit(LessonsAttributed(outcomes=dict(verdict.lessons), evidence=_shown(verdict)))
        return Judged(accept=verdict.accepted, feedback=verdict.feedback, us=us, evidence=verdict.evidence)

    def _raised(self, key: str, error: Exception, start: int, host: Host) -> CallbackRaised:
        timeout = isinstance(error, CheckTimeout | TimeoutError)
        message, _ = what_broke(error, host.state.workspace)
        return CallbackRaised(key=key, message=message, us=self.clock.monotonic_us() - start, timeout=timeout)


def check_attribution(lessons: LessonOutcomes, recalled: Sequence[RecalledLesson]) -> None:
    """InvalidVerdict where a check attributes to a lesson that was not recalled, or what is no outcome (FR-18)."""
    known = {one.lesson_id for one in recalled}
    for one, outcome in lessons.items():
        if one not in known:
            raise InvalidVerdict(f"The verdict names the lesson {one!r}, which was not recalled for this loop.")
        if outcome not in OUTCOMES[1:]:
            raise InvalidVerdict(f"A lesson is helpful, neutral or harmful, not {outcome!r}.")


def _shown(verdict: Verdict) -> dict[str, str]:
    return dict.fromkeys(verdict.lessons, (verdict.evidence or verdict.feedback)[:LONGEST_EVIDENCE])


def receipt_to_json(receipt: ScopeReceipt) -> str:
    """A scope receipt as stored in the frame."""
    return msgspec.json.encode(receipt._asdict()).decode()
