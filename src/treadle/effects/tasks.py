"""Lets the callbacks of a workflow do their phases, and says of each what came of it: one outcome event."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from treadle.core import workflow_events as ev
from treadle.core.endings import WORST_FIRST, Code, Status
from treadle.core.errors import (
    ChildFailed,
    InputError,
    InvalidOutput,
    InvalidVerdict,
    LedgerError,
    ProviderError,
    ReportError,
    TaskError,
)
from treadle.core.redaction import redact_json
from treadle.core.strict_json import to_json
from treadle.core.values import Value, replace
from treadle.kernel.workflow import Condition, Perform
from treadle.ports.callback import Verdict
from treadle.ports.clock import Clock, CrashPoints
from treadle.ports.task import BudgetReached, ChildPaused, ControlFlow, LoopTaskContext, QuotaReached, Suspend

ProviderFault = Callable[[BaseException], ProviderError | None]


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The functions of one task."""

    perform: Callable[[Any], Awaitable[Any]] | None = None
    attempt: Callable[[Any, str | None], Awaitable[Any]] | None = None
    check: Callable[[Any, Any], Awaitable[Any]] | None = None
    condition: Callable[[Any], Awaitable[Any]] | None = None
    retry_when: Callable[[Exception], bool] | None = None


@dataclass(slots=True)
class Given:
    """What a phase starts from, and what it leaves. `control`: a signal that the context raised, should the callback swallow it."""

    context: LoopTaskContext
    feedback: str | None = None
    candidate: Any = None
    control: ControlFlow | None = None
    held: Any = None  # an output that is no JSON, where there is no store


class TaskEffect:
    """Runs phases and conditions. `durable`: outputs must be JSON."""

    def __init__(
        self,
        callbacks: Mapping[str, Callbacks],
        clock: Clock,
        points: CrashPoints,
        *,
        durable: bool,
        keep_conversation: bool,
        provider_fault: ProviderFault,
        redact: Callable[[str], str] = str,
    ) -> None:
        self.callbacks, self.clock, self.points = callbacks, clock, points
        self.durable, self.keep_conversation = durable, keep_conversation
        self.provider_fault, self.redact = provider_fault, redact

    async def condition(self, action: Condition, given: Given) -> Value:
        """Asks whether the task runs."""
        condition = self.callbacks[action.task].condition
        assert condition is not None
        try:
            go: object = await _awaited(condition(given.context), "a condition")
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever user code raises fails its task, in its words
            return self._failed(action.task, error)
        if type(go) is not bool:
            return self._failed(action.task, InvalidOutput(f"a condition must return True or False, not {go!r:.80}"))
        return ev.ConditionDecided(task=action.task, go=go)

    async def perform(self, action: Perform, given: Given) -> Value:
        """The outcome of a phase. LedgerError and cancellation pass."""
        try:
            outcome = await self._run(action, given)
            return outcome if given.control is None else self._left(action.task, given.control)
        except LedgerError:
            raise
        except ControlFlow as control:
            return self._left(action.task, control)
        except BaseExceptionGroup as group:
            if given.control is None and not isinstance(group, ExceptionGroup):
                raise
            return self._raised(action.task, given, cast("BaseExceptionGroup[BaseException]", group))
        except Exception as error:  # noqa: BLE001 - as above
            return self._raised(action.task, given, error)

    def _raised(self, task: str, given: Given, error: BaseException) -> Value:
        if given.control is not None:  # it came wrapped, by a task group or by `raise ... from`
            return self._left(task, given.control)
        fault = self.provider_fault(error)
        if fault is not None and fault.kind == "quota":
            return self._left(task, QuotaReached(self.redact(str(fault)), reset_at_us=fault.retry_at_us))
        return self._failed(task, error, fault)

    async def _run(self, action: Perform, given: Given) -> Value:
        callbacks, task = self.callbacks[action.task], action.task
        match action.phase:
            case "perform":
                assert callbacks.perform is not None
                self.points.reach("before-perform")
                value = await _awaited(callbacks.perform(given.context), "perform")
                self.points.reach("after-perform")
                return ev.TaskFinished(task=task, json=self._json(value, given, "output"))
            case "attempt":
                assert callbacks.attempt is not None
                self.points.reach("before-attempt")
                value = await _awaited(callbacks.attempt(given.context, given.feedback), "attempt")
                self.points.reach("after-attempt")
                return ev.CandidateSaved(task=task, json=self._json(value, given, "candidate"))
            case "check":
                assert callbacks.check is not None
                self.points.reach("before-check")
                verdict: object = await _awaited(callbacks.check(given.context, given.candidate), "check")
                self.points.reach("after-check")
                return self._judged(action, verdict, given)

    def _judged(self, action: Perform, verdict: object, given: Given) -> ev.RoundJudged:
        if not isinstance(verdict, Verdict):
            raise InvalidVerdict(f"a check must return accept() or reject(feedback), not {verdict!r:.80}")
        json = self._json(given.candidate, given, "output") if verdict.accepted else ""
        return ev.RoundJudged(
            task=action.task,
            round=action.round,
            accept=verdict.accepted,
            feedback=self.redact(verdict.feedback),
            evidence=self.redact(verdict.evidence),
            json=json,
        )

    def _json(self, value: object, given: Given, what: str) -> str:
        try:
            return redact_json(to_json(value, what), self.redact)
        except InvalidOutput:
            if self.durable:
                raise
            given.held = value
            return "null"

    def _left(self, task: str, control: ControlFlow) -> Value:
        match control:
            case Suspend():
                return ev.TaskSuspended(task=task, questions=control.questions, state_json=control.state_json)
            case QuotaReached():
                keep = self.keep_conversation and control.conversation is not None
                return ev.QuotaPaused(
                    task=task,
                    message=self.redact(control.message),
                    requested_at_us=self.clock.wall_us(),
                    reset_at_us=control.reset_at_us,
                    conversation_json=redact_json(to_json(control.conversation, "conversation"), self.redact)
                    if keep
                    else "",
                    branch=control.branch if self.keep_conversation else "",
                )
            case BudgetReached() | ChildPaused():
                return ev.PhaseStopped(task=task)
            case _:
                raise control

    def _failed(self, task: str, error: BaseException, fault: ProviderError | None = None) -> ev.PhaseFailed:
        code: Code = "failed"
        retryable = not isinstance(error, ReportError | InputError | TaskError)
        if fault is not None:
            code, retryable = "provider", fault.transient
        elif (child := _child_of(error)) is not None:
            code, retryable = cast("Code", child.code), child.status == "failed"
        when = self.callbacks[task].retry_when
        if retryable and when is not None and isinstance(error, Exception):
            retryable = when(error)
        return ev.PhaseFailed(
            task=task,
            code=code,
            message=self.redact(_in_words(error))[:4000],
            at_us=self.clock.wall_us(),
            retryable=retryable,
            jitter=self.clock.random(),
            retry_after_us=None if fault is None else fault.retry_at_us,
        )

    def timed_out(self, task: str, timeout_us: int) -> ev.PhaseFailed:
        """The phase took longer than it may."""
        text = f"it took longer than {timeout_us / 1e6:g} s"
        failed = self._failed(task, TimeoutError(text))
        return replace(failed, code="timeout", message=text)


def _child_of(error: BaseException) -> ChildFailed | None:
    """The execution inside whose ending is the task's own; of a task group the one that failed, where there is one."""
    if isinstance(error, ChildFailed):
        return error if error.status in WORST_FIRST else None
    if not isinstance(error, ExceptionGroup):
        return None
    found = [_child_of(one) for one in cast("ExceptionGroup[Exception]", error).exceptions]
    children = [one for one in found if one is not None]
    if len(children) < len(found):
        return None
    return min(children, key=lambda one: WORST_FIRST.index(cast("Status", one.status)))


def _in_words(error: BaseException) -> str:
    """What is said of it. Of an execution inside another the innermost is named, where it happened."""
    child = _child_of(error)
    if child is None:
        return f"{type(error).__name__}: {error}"
    inside = f" (in {child.child})"
    evidence = child.evidence or f"{child.status}, {child.code}"
    return evidence if evidence.endswith(")") and " (in " in evidence else f"{evidence}{inside}"


async def _awaited(value: object, what: str) -> object:
    if not inspect.isawaitable(value):
        raise InvalidOutput(f"{what} must be an async function; it returned {value!r:.80}")
    return await cast("Awaitable[object]", value)
