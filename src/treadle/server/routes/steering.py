"""What people ask of executions. Every wish carries a key and the sequence last seen; a stale one is refused with 409."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal, InvalidOperation
from typing import Literal

from fastapi import APIRouter

from treadle.app.runtime import Reopening
from treadle.core.errors import AnswerRefused, InputError
from treadle.core.usage import MOST_USD
from treadle.kernel.steering import Answer, Cancel, Extend, Pause, Step
from treadle.server import schemas, wishes
from treadle.server.studio import Granted, Studio, shielded
from treadle.spec.loopyaml import parse

from .loops import read_loop
from .parts import Key, TheStudio

router = APIRouter(prefix="/api/executions", tags=["steering"])


def _acted(granted: Granted) -> schemas.ActedOut:
    state = granted.state
    return schemas.ActedOut(
        execution_id=granted.execution_id, seq=state.seq, status=state.status, code=state.code, given=granted.given
    )


async def once(
    studio: Studio,
    key: str,
    what: str,
    body: wishes.Given,
    act: Callable[[], Awaitable[Granted]],
    *,
    repeatable: bool = False,
) -> schemas.ActedOut:
    """Carries a wish out, once for its key, to its end whatever becomes of the sender.

    `repeatable`: done twice with one key it is done once, so that it may be tried again where it is not known whether it was done.
    """

    async def acted() -> schemas.ActedOut:
        return _acted(await shielded(act()))

    return await studio.once.run(key, what, body, acted, schemas.ActedOut, repeatable=repeatable)


@router.post("", status_code=201)
async def start(studio: TheStudio, key: Key, body: wishes.StartIn) -> schemas.ActedOut:
    """Starts a loop file on a task, here."""
    if bool(body.loop) == bool(body.text):
        raise InputError("Name a loop file (loop), or give one (text): one of the two.")
    text = body.text or (await read_loop(studio, body.loop)).text
    file = parse(text, name=body.loop or "loop file")
    return await once(studio, key, "start", body, lambda: studio.start(file, body.task, key=key), repeatable=True)


@router.post("/{execution_id}/pause")
async def pause(studio: TheStudio, key: Key, execution_id: str, body: wishes.Act) -> schemas.ActedOut:
    """Stops what is in flight, so that it can be resumed."""
    wish = Pause(actor=body.actor or studio.actor)
    return await once(
        studio, key, f"pause {execution_id}", body, lambda: studio.steer(execution_id, wish, seen=body.seen)
    )


@router.post("/{execution_id}/resume")
async def resume(studio: TheStudio, key: Key, execution_id: str, body: wishes.ResumeIn) -> schemas.ActedOut:
    """Goes on with it, here."""
    how = Reopening(retry_incomplete=body.retry_incomplete, adopt=body.adopt, actor=body.actor or studio.actor)
    return await once(
        studio, key, f"resume {execution_id}", body, lambda: studio.resume(execution_id, how, seen=body.seen)
    )


@router.post("/{execution_id}/step")
async def step(studio: TheStudio, key: Key, execution_id: str, body: wishes.StepIn) -> schemas.ActedOut:
    """Does one turn, or what is left of the round, and holds it there; a running one is held once it has done so."""
    wish = Step(actor=body.actor or studio.actor, unit=body.unit)
    return await once(
        studio, key, f"step {execution_id}", body, lambda: studio.step(execution_id, wish, seen=body.seen)
    )


@router.post("/{execution_id}/cancel")
async def cancel(studio: TheStudio, key: Key, execution_id: str, body: wishes.ReasonIn) -> schemas.ActedOut:
    """Ends it for good."""
    wish = Cancel(actor=body.actor or studio.actor, reason=body.reason)
    return await once(
        studio, key, f"cancel {execution_id}", body, lambda: studio.steer(execution_id, wish, seen=body.seen)
    )


@router.post("/{execution_id}/answer")
async def answer(studio: TheStudio, key: Key, execution_id: str, body: wishes.AnswerIn) -> schemas.ActedOut:
    """Answers its question."""
    return await _say(studio, key, execution_id, body, "answer", body.request_id, body.text)


@router.post("/{execution_id}/approve")
async def approve(studio: TheStudio, key: Key, execution_id: str, body: wishes.ReasonIn) -> schemas.ActedOut:
    """Says yes to what it waits with."""
    return await _say(studio, key, execution_id, body, "approve", body.request_id, body.reason)


@router.post("/{execution_id}/reject")
async def reject(studio: TheStudio, key: Key, execution_id: str, body: wishes.ReasonIn) -> schemas.ActedOut:
    """Says no; of a result, the reason is the feedback for the next round."""
    return await _say(studio, key, execution_id, body, "reject", body.request_id, body.reason)


async def _say(
    studio: Studio,
    key: str,
    execution_id: str,
    body: wishes.Act,
    decision: Literal["answer", "approve", "reject"],
    request_id: str,
    text: str,
) -> schemas.ActedOut:
    actor = body.actor or studio.actor

    async def act() -> Granted:
        _, state = await studio.loop(execution_id)
        asked = request_id or (state.pending.id if state.pending else "")
        if not asked:
            raise AnswerRefused("Nothing is waiting for an answer; it may have been answered already.")
        wish = Answer(request_id=asked, decision=decision, text=text, actor=actor)
        return await studio.steer(execution_id, wish, seen=body.seen)

    return await once(studio, key, f"{decision} {execution_id}", body, act)


@router.post("/{execution_id}/extend")
async def extend(studio: TheStudio, key: Key, execution_id: str, body: wishes.ExtendIn) -> schemas.ActedOut:
    """Raises limits."""
    wish = Extend(
        actor=body.actor or studio.actor,
        max_rounds=body.max_rounds,
        max_turns=body.max_turns,
        max_cost_usd=_money(body.max_cost_usd),
        max_duration_us=None if body.max_time_s is None else int(body.max_time_s * 1e6),
        max_tokens=body.max_tokens,
        guards=body.guards,
        warn_at=None if body.warn_at is None else tuple(body.warn_at),
        compact_at=body.compact_at,
    )
    return await once(
        studio, key, f"extend {execution_id}", body, lambda: studio.steer(execution_id, wish, seen=body.seen)
    )


def _money(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        amount = Decimal(text.strip().removeprefix("$"))
    except InvalidOperation as error:
        raise InputError(f"max_cost_usd {text!r} is no amount in US dollars. Example: 2.50") from error
    if not amount.is_finite() or not 0 < amount <= MOST_USD:
        raise InputError(f"max_cost_usd must be above 0 and at most {MOST_USD:,}, not {text}.")
    return amount
