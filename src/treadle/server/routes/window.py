"""What the model is shown: what fills its window, and the map of the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Query

from treadle.app.window import window_document, window_now
from treadle.context.map import build_map
from treadle.core.errors import InputError
from treadle.core.settings import MAP_TOKENS
from treadle.server import schemas
from treadle.server.problems import Problem
from treadle.settings import map_cache

from .parts import TheStudio

router = APIRouter(prefix="/api/executions", tags=["executions"])
MOST_MAP_TOKENS = 64_000


@router.get("/{execution_id}/window")
async def window(studio: TheStudio, execution_id: str) -> schemas.WindowOut:
    """The window of the agent that works, or worked last. Problem 404 before the first request."""
    row, state = await studio.loop(execution_id)
    found = await window_now(studio.ledger, row.execution_id, state)
    if found is None:
        raise Problem(404, "no-window", "No request has been sent yet, or no model acts in it.")
    facts = found.state.prompt
    settings = state.settings.act_agent if found.phase == "act" else state.settings.evaluate_agent
    document = window_document(row.execution_id, found)
    return schemas.WindowOut.model_validate(
        {
            **document,
            "requested": document["requested"] or "",
            "static_tokens": facts.static_tokens if facts else 0,
            "tools_tokens": facts.tools_tokens if facts else 0,
            "changed": list(facts.changed) if facts else [],
            "depth": settings.compact,
            "compact_at": settings.compact_at,
        }
    )


@router.get("/{execution_id}/map")
async def context_map(
    studio: TheStudio,
    execution_id: str,
    budget: Annotated[int | None, Query(ge=100, le=MOST_MAP_TOKENS, description="tokens; as the loop's own")] = None,
) -> schemas.MapOut:
    """The map for its task, of its workspace as that is now."""
    _, state = await studio.loop(execution_id)
    if not state.workspace:
        raise InputError("It has no workspace, so there is no map.")
    given = state.settings.act_agent.map_tokens
    tokens = budget or given or MAP_TOKENS
    try:
        found = await anyio.to_thread.run_sync(build_map, Path(state.workspace), state.task, tokens, map_cache())
    except OSError as error:
        raise InputError(f"{state.workspace} cannot be mapped: {error.strerror or error}.") from error
    return schemas.MapOut(
        modality=str(found.modality),
        tokens=found.tokens,
        budget=tokens,
        on=given > 0,
        entries=[
            schemas.MapEntryOut(path=one.path, level=one.level, definitions=len(one.lines)) for one in found.entries
        ],
        files_left=found.files_left,
    )
