"""What people change of a loop while it runs: its plan, its window, its leases, and marks to come back to."""

from __future__ import annotations

from fastapi import APIRouter

from treadle.core.plans import read_steps
from treadle.kernel.steering import ChangeLease, Compact, EditPlan, MarkStep, Pin, Steering
from treadle.server import schemas, wishes
from treadle.server.studio import Studio

from .parts import Key, TheStudio
from .steering import once

router = APIRouter(prefix="/api/executions", tags=["steering"])


async def _steered(
    studio: Studio, key: str, what: str, execution_id: str, body: wishes.Act, wish: Steering
) -> schemas.ActedOut:
    return await once(
        studio, key, f"{what} {execution_id}", body, lambda: studio.steer(execution_id, wish, seen=body.seen)
    )


@router.post("/{execution_id}/plan")
async def edit(studio: TheStudio, key: Key, execution_id: str, body: wishes.PlanIn) -> schemas.ActedOut:
    """Another plan. In plan mode it waits for an approval of its own."""
    wish = EditPlan(actor=body.actor or studio.actor, steps=read_steps(body.steps), digest=body.digest)
    return await _steered(studio, key, "plan", execution_id, body, wish)


@router.post("/{execution_id}/plan/steps/{step}")
async def mark(studio: TheStudio, key: Key, execution_id: str, step: str, body: wishes.MarkIn) -> schemas.ActedOut:
    """A step is done, or has failed, on a person's word."""
    wish = MarkStep(actor=body.actor or studio.actor, step=step, status=body.status, reason=body.reason)
    return await _steered(studio, key, f"mark {step}", execution_id, body, wish)


@router.post("/{execution_id}/compact")
async def compact(studio: TheStudio, key: Key, execution_id: str, body: wishes.CompactIn) -> schemas.ActedOut:
    """Compacts the history at the next boundary."""
    wish = Compact(actor=body.actor or studio.actor, depth=body.depth)
    return await _steered(studio, key, "compact", execution_id, body, wish)


@router.post("/{execution_id}/leases")
async def lease(studio: TheStudio, key: Key, execution_id: str, body: wishes.LeaseIn) -> schemas.ActedOut:
    """Grants a capability within the ceiling of the definition, or takes one away: it bites before the next tool call."""
    wish = ChangeLease(
        actor=body.actor or studio.actor,
        op=body.op,
        capability=body.capability,
        scope=body.scope,
        for_us=None if body.for_s is None else int(body.for_s * 1e6),
        reason=body.reason,
    )
    return await _steered(studio, key, "lease", execution_id, body, wish)


@router.post("/{execution_id}/pins")
async def pin(studio: TheStudio, key: Key, execution_id: str, body: wishes.PinIn) -> schemas.ActedOut:
    """Marks where it is."""
    wish = Pin(actor=body.actor or studio.actor, label=body.label)
    return await _steered(studio, key, "pin", execution_id, body, wish)


@router.post("/{execution_id}/forks", status_code=201)
async def fork(studio: TheStudio, key: Key, execution_id: str, body: wishes.ForkIn) -> schemas.ActedOut:
    """Another execution with the same past up to a record; it rests, paused, until it is resumed."""
    return await once(
        studio, key, f"fork {execution_id}", body, lambda: studio.fork(execution_id, body.at, key=key), repeatable=True
    )
