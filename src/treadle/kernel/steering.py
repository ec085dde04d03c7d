"""What people ask of an execution, checked against its state and turned into events (TC-22, TC-23)."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import msgspec

from treadle.core.endings import is_final
from treadle.core.errors import AnswerRefused, InputError
from treadle.core.events import (
    Answered,
    CompactionRequested,
    Extended,
    Interrupted,
    LeaseChanged,
    Pinned,
    PlanWritten,
    StepMoved,
    Stopped,
    Suspended,
)
from treadle.core.plans import PlanStep, plan_digest
from treadle.core.settings import with_guards
from treadle.core.values import Value

from .leases import lacking_above, parse, within
from .plan import known_step
from .states import LoopState
from .stepping import Unit


class Answer(Value, frozen=True, kw_only=True, tag="answer"):
    """An answer to one question or gate."""

    request_id: str
    decision: Literal["answer", "approve", "reject"]
    text: str
    actor: str
    end: bool = False  # of a rejected plan: end it, and do not plan anew


class EditPlan(Value, frozen=True, kw_only=True, tag="edit-plan"):
    """Another plan in place of the one there is. In plan mode it waits for an approval of its own."""

    actor: str
    steps: tuple[PlanStep, ...]
    digest: str = ""  # of the plan that it was made from; empty: whatever there is


class MarkStep(Value, frozen=True, kw_only=True, tag="mark-step"):
    """A person's word on one step: it satisfies the gate, and is never counted as verified."""

    actor: str
    step: str
    status: Literal["done", "failed"]
    reason: str


class Cancel(Value, frozen=True, kw_only=True, tag="cancel"):
    """End it for good."""

    actor: str
    reason: str = ""


class Pause(Value, frozen=True, kw_only=True, tag="pause"):
    """Stop what is in flight, so that it can be resumed; what a signal does to the process that runs it."""

    actor: str


class Step(Value, frozen=True, kw_only=True, tag="step"):
    """Do one turn, or what is left of this round, and hold it there."""

    actor: str
    unit: Unit = "turn"


class Extend(Value, frozen=True, kw_only=True, tag="extend"):
    """Raise limits; each value is the new limit."""

    actor: str
    max_rounds: int | None = None
    max_turns: int | None = None
    max_cost_usd: Decimal | None = None
    max_duration_us: int | None = None
    max_tokens: int | None = None
    guards: dict[str, int] = {}  # noqa: RUF012 - msgspec copies it
    warn_at: tuple[int, ...] | None = None  # per cent of act's turns at which the model is told to wrap up
    compact_at: int | None = None  # per cent of act's window from which it is compacted


class Compact(Value, frozen=True, kw_only=True, tag="compact"):
    """Compact the history at the next boundary."""

    actor: str
    depth: Literal["micro", "auto", "full"]


class Pin(Value, frozen=True, kw_only=True, tag="pin"):
    """Mark where it is, so that it can be forked there."""

    actor: str
    label: str = ""


class ChangeLease(Value, frozen=True, kw_only=True, tag="lease"):
    """Grant or revoke a capability. `for_us`: how long, from now; None: until its scope ends."""

    actor: str
    op: Literal["grant", "revoke"]
    capability: str
    scope: Literal["turn", "step", "loop"] = "loop"
    for_us: int | None = None
    reason: str = ""


Steering = Answer | Cancel | Pause | Step | Extend | Compact | Pin | ChangeLease | EditPlan | MarkStep
_encode = msgspec.json.Encoder(decimal_format="string").encode
_decode = msgspec.json.Decoder(Steering).decode


def encode(steering: Steering) -> tuple[str, bytes]:
    """(kind, body) as posted to the ledger."""
    return type(steering).__struct_config__.tag, _encode(steering)  # type: ignore[return-value]


def decode(body: bytes) -> Steering:
    """InputError where the body is none of ours."""
    try:
        return _decode(body)
    except msgspec.DecodeError as error:
        raise InputError(f"A posted request cannot be read: {error}") from error


def to_event(
    state: LoopState, steering: Steering, at_us: int
) -> (
    Answered | Extended | Interrupted | Stopped | CompactionRequested | LeaseChanged | Pinned | PlanWritten | StepMoved
):
    """The event that grants it. AnswerRefused or InputError where the state does not allow it; nothing is changed."""
    match steering:
        case Answer():
            check_answer(state, steering)
            if steering.end:
                by = f"{steering.actor} rejected the plan" + (f": {steering.text}" if steering.text else "")
                return Stopped(status="rejected", code="rejected", kind="rejected", evidence=by)
            return Answered(
                id=steering.request_id,
                decision=steering.decision,
                text=steering.text,
                actor=steering.actor,
                at_us=at_us,
            )
        case Cancel():
            return _cancelled(state, steering)
        case Pause() | Step():  # a step is held by whoever runs it, once it is done
            if state.status != "running":
                raise InputError(f"It does not run: {state.status}, {state.code}.")
            return Interrupted(epoch=state.epoch, reason="signal" if isinstance(steering, Pause) else "step")
        case Extend():
            return _extended(state, steering)
        case Compact():
            return _compacting(state, steering, at_us)
        case Pin():
            return _pinned(state, steering, at_us)
        case ChangeLease():
            return _lease(state, steering, at_us)
        case EditPlan():
            return _edited(state, steering)
        case MarkStep():
            return _marked(state, steering)


def _cancelled(state: LoopState, cancel: Cancel) -> Stopped:
    if is_final(state.status, state.code):
        raise InputError(f"It has ended already: {state.status}, {state.code}")
    by = f"cancelled by {cancel.actor}" + (f": {cancel.reason}" if cancel.reason else "")
    return Stopped(status="cancelled", code="aborted", kind="cancelled", evidence=by)


def _lease(state: LoopState, change: ChangeLease, at_us: int) -> LeaseChanged:
    """InputError for a malformed capability, one beyond the ceiling, or where nothing is left to be done."""
    if is_final(state.status, state.code):
        raise InputError(f"It has ended ({state.status}, {state.code}); its leases have ended with it.")
    parse(change.capability)
    ceiling = state.settings.ceiling
    if change.op == "grant" and ceiling is not None and not within(ceiling, change.capability):
        raise InputError(f"{change.capability} is beyond the ceiling of this loop: {', '.join(ceiling) or 'nothing'}.")
    if change.op == "grant" and lacking_above(state.above, change.capability):
        raise InputError(f"{change.capability} is more than {state.parent} has, whose child this is.")
    if change.for_us is not None and change.for_us <= 0:
        raise InputError("A lease that ends before it begins grants nothing.")
    return LeaseChanged(
        id=f"{change.op}.{state.seq + 1}",
        op=change.op,
        capability=change.capability,
        scope=change.scope,
        expires_at_us=None if change.for_us is None else at_us + change.for_us,
        by="person",
        actor=change.actor,
        reason=change.reason,
        at_us=at_us,
    )


def check_answer(state: LoopState, answer: Answer) -> None:
    """AnswerRefused unless it answers the question that is open now."""
    pending = state.pending
    if pending is None or pending.kind == "quota":
        raise AnswerRefused("Nothing is waiting for an answer; it may have been answered already.")
    if pending.id != answer.request_id:
        raise AnswerRefused(f"{answer.request_id!r} is not the open question; that is {pending.id!r}.")
    if not answer.actor.strip():
        raise AnswerRefused("An answer needs the name of who gives it (--as).")
    if pending.kind == "question":
        if answer.decision != "answer":
            raise AnswerRefused(f"{pending.id!r} is a question: use treadle answer.")
        if not answer.text.strip():
            raise AnswerRefused("The answer is empty.")
        if pending.choices and answer.text not in pending.choices:
            raise AnswerRefused(f"{answer.text!r} is none of the choices: {', '.join(pending.choices)}.")
    elif answer.decision == "answer":
        raise AnswerRefused(f"{pending.id!r} waits for a decision: use treadle approve or treadle reject.")
    elif answer.decision == "reject" and pending.kind == "evaluation" and not answer.text.strip():
        raise AnswerRefused("A rejected result needs a reason: it is the feedback of the next round (--reason).")
    elif answer.decision == "reject" and pending.kind == "plan" and not answer.end and not answer.text.strip():
        raise AnswerRefused(
            "A rejected plan needs a reason, for the model to plan anew (--reason); or end it: treadle plan reject --end."
        )
    if answer.end:
        _check_end(pending, answer)


def _check_end(pending: Suspended, answer: Answer) -> None:
    """AnswerRefused unless it is a plan of its own that is rejected for good."""
    if pending.child:
        raise AnswerRefused(f"That plan is one of {pending.child}: treadle plan reject {pending.child} --end.")
    if pending.kind != "plan" or answer.decision != "reject":
        raise AnswerRefused(f"{pending.id!r} is no plan that could be rejected; treadle cancel ends an execution.")


def _going_on(state: LoopState, actor: str) -> None:
    if state.status in ("done", "rejected", "cancelled") or is_final(state.status, state.code):
        raise InputError(f"It has ended ({state.status}, {state.code}): its plan is no longer changed.")
    if state.settings.act != "agent":
        raise InputError("No model acts in it, so it has no plan.")
    if not actor.strip():
        raise InputError("Say who does it (--as).")


def _edited(state: LoopState, edit: EditPlan) -> PlanWritten:
    _going_on(state, edit.actor)
    if edit.digest and edit.digest != state.plan.digest:
        raise InputError("The plan has changed meanwhile: look at it (treadle plan show), and edit that one.")
    if plan_digest(edit.steps) == state.plan.digest:
        raise InputError("That is the plan as it is; nothing was changed.")
    pending = state.pending
    if pending is not None and pending.child:
        raise InputError(f"Its child {pending.child} waits for an answer: edit that one's plan, or answer it first.")
    withdraws = pending.id if pending is not None and pending.kind == "plan" else ""
    return PlanWritten(steps=edit.steps, by="person", actor=edit.actor, withdraws=withdraws)


def _marked(state: LoopState, mark: MarkStep) -> StepMoved:
    _going_on(state, mark.actor)
    if not mark.reason.strip():
        raise InputError("A mark needs a reason (--reason): it stands in for what no check has shown.")
    step = known_step(state.plan, mark.step)
    return StepMoved(step=step.step.id, status=mark.status, by="person", reason=mark.reason, actor=mark.actor)


def _compacting(state: LoopState, compact: Compact, at_us: int) -> CompactionRequested:
    if is_final(state.status, state.code):
        raise InputError(f"It has ended ({state.status}, {state.code}): there is nothing to compact for.")
    if "agent" not in (state.settings.act, state.settings.evaluate):
        raise InputError("No model acts or evaluates in it: there is no conversation to compact.")
    return CompactionRequested(depth=compact.depth, actor=compact.actor, at_us=at_us)


def _pinned(state: LoopState, pin: Pin, at_us: int) -> Pinned:
    if not state.seq:
        raise InputError("It has not begun: there is nothing to pin.")
    return Pinned(actor=pin.actor, label=pin.label.strip() or f"{state.iteration}-{state.agent.turn}", at_us=at_us)


def _check_bands(bands: tuple[int, ...] | None, compact_at: int | None) -> None:
    if bands is not None and (len(bands) > 10 or any(not 1 <= band <= 99 for band in bands)):
        raise InputError("Warning bands are at most ten numbers from 1 to 99, in per cent of the turns.")
    if compact_at is not None and not 1 <= compact_at <= 100:
        raise InputError(f"A window is compacted at 1 to 100 per cent, not {compact_at}.")


def _extended(state: LoopState, extend: Extend) -> Extended:
    if is_final(state.status, state.code):
        raise InputError(f"It has ended ({state.status}, {state.code}) and cannot be extended.")
    if state.parent and state.status == "stopped":
        raise InputError(
            f"It was forked by {state.parent}, which has been told that it stopped, and cannot be extended by itself."
            " Extend that one: its agent may fork another."
        )
    settings = state.settings
    pairs = (
        ("max_rounds", extend.max_rounds, settings.max_rounds),
        ("max_turns", extend.max_turns, settings.act_policy.max_turns),
        ("max_cost", extend.max_cost_usd, settings.limits.max_cost_usd),
        ("max_time", extend.max_duration_us, settings.limits.max_duration_us),
        ("max_tokens", extend.max_tokens, settings.limits.max_tokens),
    )
    with_guards(settings.guards, extend.guards)
    _check_bands(extend.warn_at, extend.compact_at)
    retuned = extend.guards or extend.warn_at is not None or extend.compact_at is not None
    if all(new is None for _, new, _ in pairs) and not retuned:
        raise InputError(
            "Say what to extend: --max-rounds, --max-turns, --max-cost, --max-time, --max-tokens or --guard."
        )
    for name, new, old in pairs:
        if new is not None and old is not None and new <= old:
            raise InputError(f"{name} is {old} already; {new} would not extend it.")
    return Extended(
        actor=extend.actor,
        max_rounds=extend.max_rounds,
        max_turns=extend.max_turns,
        max_cost_usd=extend.max_cost_usd,
        max_duration_us=extend.max_duration_us,
        max_tokens=extend.max_tokens,
        guards=extend.guards,
        warn_at=None if extend.warn_at is None else tuple(sorted(set(extend.warn_at))),
        compact_at=extend.compact_at,
    )
