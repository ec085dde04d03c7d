"""The one state table, for the canvas: what is drawn, and whether an edge may be (AG-02)."""

from __future__ import annotations

from typing import cast

import msgspec
from fastapi import APIRouter

from treadle.core.endings import ENDINGS
from treadle.kernel.states import AGENT_TRANSITIONS, AgentStateName
from treadle.server import schemas
from treadle.server.problems import Problem
from treadle.spec.loopfile import illegal

router = APIRouter(prefix="/api/machine", tags=["machine"])


@router.get("")
async def machine() -> schemas.MachineOut:
    """States, transitions and endings."""
    return schemas.MachineOut(
        start="planning",
        states=list(AGENT_TRANSITIONS),
        transitions={source: sorted(targets) for source, targets in AGENT_TRANSITIONS.items()},
        endings=[msgspec.to_builtins(row) for row in ENDINGS],
    )


@router.post("/check")
async def check(edge: schemas.EdgeIn) -> schemas.EdgeOut:
    """Whether the table has the edge; nothing is changed, so it needs no key."""
    for name in (edge.source, edge.target):
        if name not in AGENT_TRANSITIONS:
            raise Problem(422, "unknown-state", f"{name!r} is no state. There are {', '.join(AGENT_TRANSITIONS)}.")
    source, target = cast("AgentStateName", edge.source), cast("AgentStateName", edge.target)
    legal = target in AGENT_TRANSITIONS[source]
    return schemas.EdgeOut(legal=legal, reason="" if legal else illegal(source, target))
