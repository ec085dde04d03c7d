"""Every error that Treadle raises, as one tree split by what the caller does next.

TreadleError
├── InputError                    nothing was started: correct the call (command line: exit 2)
│   ├── ConfigurationError        a setting, key, provider, path or flag is wrong
│   ├── DefinitionError           a loop, workflow or agent is ill-defined
│   ├── UnknownExecution          no such execution in this store
│   ├── UnknownLesson             no such lesson in this store
│   ├── OwnerAlive                another process is running it
│   ├── DefinitionChanged         the code is not the code that started it
│   ├── InputMismatch             stored input does not fit today's input type
│   ├── WorkflowMismatch          an execution of another workflow, or of none
│   ├── PlanRefused               a plan without steps, with cycles, too long, or ill-formed
│   └── AnswerRefused             stale, foreign, empty or second answer
├── InvalidStateTransition        an event that the state does not allow
├── FrameError                    a frame that cannot be trusted; nothing of it is used
│   ├── MalformedFrame  WrongKind  UnsupportedVersion  DigestMismatch  InvalidField
│   └── BrokenInvariant  IdentityMismatch  DanglingMessage  StaleScopeReceipt
├── LedgerError                   the store; the execution goes on when the fault is gone
│   ├── LedgerFull  LedgerReadOnly  LedgerLocked  LedgerDamaged  LedgerTooNew  LedgerUnavailable
│   ├── StaleEpoch                another owner has taken over
│   └── LedgerGap                 a batch does not follow the last one
├── ProviderError                 a model call that failed, with its class
├── ToolError                     a tool call that failed, with its class
├── ScopeError                    the workspace's past cannot be read or put back
├── CheckTimeout                  a check took too long
├── TaskError                     a task of a workflow
│   └── LoopExhausted  ChildFailed  UnknownDependency  NoneAccepted
└── ReportError                   a report from user code
    └── InvalidUsage  InvalidReceipt  OutsideRound  InvalidVerdict  InvalidOutput
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal

from .excerpts import both_ends

if TYPE_CHECKING:
    from collections.abc import Sequence

ProviderErrorKind = Literal["auth", "quota", "overload", "context-too-long", "bad-request", "network", "protocol"]
ToolErrorKind = Literal[
    "safety", "not-found", "permission", "argument", "timeout", "rate-limit", "conflict", "execution"
]


class TreadleError(Exception):
    """Something in Treadle went wrong. `next`: the command that goes on from there, where one is known."""

    next: str = ""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class InputError(TreadleError):
    """The call cannot be carried out as given; nothing was started."""


class ConfigurationError(InputError):
    """A setting is wrong."""


class DefinitionError(InputError):
    """A loop, workflow or agent is ill-defined."""


class UnknownExecution(InputError):
    """No such execution in this store."""


class UnknownLesson(InputError):
    """No such lesson in this store."""


class OwnerAlive(InputError):
    """Another process is running this execution."""


class DefinitionChanged(InputError):
    """The definition is not the one that started this execution (FR-25).

    `parts` are the names of what differs, `differences` say it in words. Where the change cannot be adopted the stored execution
    can only go on with the old definition.
    """

    def __init__(
        self,
        execution_id: str,
        parts: Sequence[str],
        differences: Sequence[str],
        *,
        adoptable: bool = True,
        store: str = "",
    ) -> None:
        self.execution_id, self.parts, self.differences = execution_id, tuple(parts), tuple(differences)
        self.adoptable = adoptable
        flag = f" --store {shlex.quote(store)}" if store else ""
        ways = f"or adopt the change: treadle resume {execution_id} --adopt{flag}" if adoptable else "or start it anew"
        super().__init__(
            f"The definition has changed since {execution_id} was started: {'; '.join(differences)}. Restore it, {ways}"
        )

    def with_store(self, store: str) -> DefinitionChanged:
        """The same for a store that the command must name."""
        return DefinitionChanged(self.execution_id, self.parts, self.differences, adoptable=self.adoptable, store=store)


class InputMismatch(InputError):
    """The stored input does not fit the input type of today's definition."""


class WorkflowMismatch(InputError):
    """This execution belongs to another workflow, or to none."""


class AnswerRefused(InputError):
    """This answer fits no open question."""


class PlanRefused(InputError):
    """A plan that cannot be taken. `path` names the part that is wrong."""

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        super().__init__(f"{path} {message}")


class InvalidStateTransition(TreadleError):
    """The state does not allow this; it is unchanged."""

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target
        super().__init__(f"{source} does not lead to {target}")


class FrameError(TreadleError):
    """A stored frame cannot be trusted. `path` names the field, in the JSON form's own names."""

    def __init__(self, message: str = "", *, path: str = "$") -> None:
        self.path = path
        super().__init__(f"{path}: {message or (type(self).__doc__ or '').strip()}")


class MalformedFrame(FrameError):
    """Not JSON."""


class WrongKind(FrameError):
    """A frame of another kind."""


class UnsupportedVersion(FrameError):
    """Written by a version that this one does not know."""


class DigestMismatch(FrameError):
    """The bytes are not those that were written."""


class InvalidField(FrameError):
    """A field is missing or of the wrong type."""


class BrokenInvariant(FrameError):
    """The fields contradict one another."""


class IdentityMismatch(FrameError):
    """A frame of another loop, step or role."""


class DanglingMessage(FrameError):
    """The frame points at a message that is not there."""


class UnfoundedLease(FrameError):
    """A lease that no recorded grant leads to."""


class StaleScopeReceipt(FrameError):
    """The workspace no longer holds what the scope receipt says."""


class LedgerError(TreadleError):
    """The store failed. What was committed is safe; resume when the fault is gone."""


class LedgerFull(LedgerError):
    """No space left for the store. Free some, then resume."""


class LedgerReadOnly(LedgerError):
    """The store cannot be written. Check the permissions of the file and of its folder."""


class LedgerLocked(LedgerError):
    """Another process holds the store locked."""


class LedgerDamaged(LedgerError):
    """The store is damaged or is no Treadle store."""


class LedgerTooNew(LedgerError):
    """The store was written by a newer version of Treadle. Update Treadle."""


class LedgerUnavailable(LedgerError):
    """The store cannot be reached."""


class StaleEpoch(LedgerError):
    """Another owner has taken over this execution; this one must stop."""


class LedgerGap(LedgerError):
    """A batch does not follow the last committed record; memory must be dropped and read anew."""


class ProviderError(TreadleError):
    """A model call failed.

    `maybe_charged` is true where the request may have been billed although no usage came back.
    `retry_at_us` is wall time in microseconds since the epoch, where the provider named one.
    """

    def __init__(
        self, kind: ProviderErrorKind, message: str, *, retry_at_us: int | None = None, maybe_charged: bool = False
    ) -> None:
        self.kind: ProviderErrorKind = kind
        self.retry_at_us, self.maybe_charged = retry_at_us, maybe_charged
        super().__init__(message)

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later by itself."""
        return self.kind in ("overload", "network", "protocol")


class ToolError(TreadleError):
    """A tool call failed. The message goes to the model, the hint says what to try next (AG-09)."""

    def __init__(self, kind: ToolErrorKind, message: str, *, hint: str = "", transient: bool | None = None) -> None:
        self.kind: ToolErrorKind = kind
        self.hint = hint
        self.transient = kind in ("timeout", "rate-limit") if transient is None else transient
        super().__init__(message)


class ScopeError(TreadleError):
    """The workspace's past cannot be read or put back."""


class CheckTimeout(TreadleError):
    """The check took too long."""


class TaskError(TreadleError):
    """A task of a workflow could not do its work."""


def all_rejected(rounds: int) -> str:
    """Every round was rejected, in words."""
    return "the only round was rejected" if rounds == 1 else f"all {rounds:,} rounds were rejected"


class LoopExhausted(TaskError):
    """All rounds of a loop were rejected (TC-15)."""

    def __init__(self, key: str, max_rounds: int, feedback: str) -> None:
        self.key, self.max_rounds, self.feedback = key, max_rounds, feedback
        super().__init__(f"{key}: {all_rejected(max_rounds)}; last feedback: {both_ends(feedback, 500)}")


class ChildFailed(TaskError):
    """An execution that was run inside a task did not end well. `status` and `code` say how."""

    def __init__(self, child: str, status: str, code: str, evidence: str) -> None:
        self.child, self.status, self.code, self.evidence = child, status, code, evidence
        super().__init__(f"{child}: {status}, {code}: {evidence}")


class NoneAccepted(TaskError):
    """No candidate of a speculation was accepted. `reasons` has one for each, in their order."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        listed = "; ".join(f"{number}: {reason[:200]}" for number, reason in enumerate(self.reasons, start=1))
        super().__init__(f"none of {len(self.reasons)} candidates was accepted: {listed}")


class UnknownDependency(TaskError):
    """A task may only read what it declares in `after` (TC-13)."""


class ReportError(TreadleError):
    """A report from user code cannot be taken."""


class InvalidUsage(ReportError):
    """Usage counters are whole and not negative; cost is finite and not negative."""


class InvalidReceipt(ReportError):
    """A receipt has 1 to 512 characters, and a task has at most 65,536 of them."""


class OutsideRound(ReportError):
    """The round that this context belongs to is over."""


class InvalidVerdict(ReportError):
    """A check must return accept() or reject(feedback) (TC-14)."""


class InvalidOutput(ReportError):
    """An act must return a JSON value."""
