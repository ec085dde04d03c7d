"""Reading executions: the fleet, one of them, its log, its turns, its outputs, its frame."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from treadle.app import history
from treadle.app.comparing import compare
from treadle.app.leases import leases_of
from treadle.app.listing import listing
from treadle.app.moving import scope_of_loop
from treadle.core.codec import decode
from treadle.core.errors import ScopeError
from treadle.core.messages import ToolResult, ToolsFinished
from treadle.kernel.continuation import frame_of
from treadle.kernel.frame import dump_frame
from treadle.ports.ledger import Record
from treadle.runtime.document import to_json
from treadle.server import projections, schemas
from treadle.server.problems import Problem
from treadle.server.studio import Studio
from treadle.server.wire import encode_json, of_record

from .parts import TheStudio

router = APIRouter(prefix="/api/executions", tags=["executions"])
OUTPUT_CHARACTERS = 65_536
MOST_CHARACTERS = 1_048_576
SEARCHED = ("task", "workspace", "execution_id")
INT64 = 2**63 - 1
Seq = Annotated[int, Query(ge=0, le=INT64)]


@router.get("")
async def executions(
    studio: TheStudio,
    status: Annotated[str, Query(max_length=40)] = "",
    text: Annotated[str, Query(max_length=200, description="in the task, the workspace or the id")] = "",
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> schemas.ExecutionsOut:
    """The fleet, newest first."""
    known = [one for one in await listing(studio.ledger) if one.document["status"] != "unreadable"]  # ls names those
    counts: dict[str, int] = {}
    for one in known:
        counts[one.document["status"]] = counts.get(one.document["status"], 0) + 1
    wanted = text.casefold()
    found = [
        one
        for one in known
        if status in ("", one.document["status"])
        and (not wanted or any(wanted in str(one.document.get(name, "")).casefold() for name in SEARCHED))
    ]
    spent = sum(float(one.document["cost_usd"]) for one in known if not one.parent)
    return schemas.ExecutionsOut(
        executions=[projections.listed(one) for one in found[:limit]], counts=counts, spent_usd=spent
    )


@router.get("/{execution_id}")
async def execution(studio: TheStudio, execution_id: str) -> schemas.DetailOut:
    """One execution: document, state, budgets, guards, calls in hand, plan, suspensions, ending."""
    row, state = await studio.found(execution_id)
    return await projections.detail(studio, row, state)


@router.get("/{execution_id}/log", response_model=schemas.LogPage)
async def log(
    studio: TheStudio,
    execution_id: str,
    after: Seq = 0,
    to: Annotated[int | None, Query(ge=0, le=INT64)] = None,
    limit: Annotated[int, Query(ge=1, le=5_000)] = 500,
    tail: Annotated[int | None, Query(ge=1, le=5_000, description="the last so many, instead of after")] = None,
) -> Response:
    """Events by sequence number."""
    row, _ = await studio.found(execution_id)
    if tail is not None:
        after, limit = max(0, row.head - tail), tail
    found = await studio.ledger.records(execution_id, after=after, to=to, limit=limit)
    page = {"events": [of_record(execution_id, record) for record in found], "head": row.head}
    return Response(encode_json(page), media_type="application/json")


@router.get("/{execution_id}/rounds")
async def rounds(studio: TheStudio, execution_id: str) -> list[schemas.RoundOut]:
    """All rounds, with verdict, feedback and changed paths."""
    await studio.loop(execution_id)
    known = history.rounds(await studio.ledger.records(execution_id))
    return [schemas.RoundOut.model_validate(history.round_document(one)) for one in known]


@router.get("/{execution_id}/turns")
async def turns(studio: TheStudio, execution_id: str) -> list[schemas.TurnOut]:
    """All turns as rows: for charts."""
    await studio.loop(execution_id)
    return projections.turns(await studio.ledger.records(execution_id))


@router.get("/{execution_id}/turns/{number}", response_model=dict[str, Any])
async def turn(studio: TheStudio, execution_id: str, number: int) -> Response:
    """One turn, whole: calls with their results, usage, digests."""
    await studio.loop(execution_id)
    found = history.turn(await studio.ledger.records(execution_id), number)
    return Response(to_json(history.turn_document(found)), media_type="application/json")


@router.get("/{execution_id}/outputs/{call_id}")
async def output(
    studio: TheStudio,
    execution_id: str,
    call_id: str,
    seq: Annotated[int | None, Query(ge=1, le=INT64, description="record of the results, where it is known")] = None,
    start: Annotated[int, Query(ge=0, le=INT64)] = 0,
    end: Annotated[int | None, Query(ge=0, le=INT64)] = None,
) -> schemas.OutputOut:
    """A part of what a call gave, whole as it is stored, in bytes from `start` to `end`."""
    await studio.loop(execution_id)
    result = await _result(studio, execution_id, call_id, seq)
    content = await studio.ledger.blob(result.blob) if result.blob else result.content.encode(errors="replace")
    last = min(len(content), end if end is not None else start + OUTPUT_CHARACTERS, start + MOST_CHARACTERS)
    return schemas.OutputOut(
        call_id=call_id,
        start=min(start, len(content)),
        end=max(last, min(start, len(content))),
        bytes=len(content),
        preview_bytes=len(result.content.encode(errors="replace")),
        text=content[start:last].decode(errors="replace"),
    )


async def _result(studio: Studio, execution_id: str, call_id: str, seq: int | None) -> ToolResult:
    if seq is not None:
        found = await studio.ledger.records(execution_id, after=seq - 1, to=seq)
        result = next((one for record in found for one in _results(record) if one.id == call_id), None)
    else:
        result = history.last_output(await studio.ledger.records(execution_id), call_id)
    if result is None:
        raise Problem(404, "no-output", f"There is no result of a call {call_id!r}.")
    return result


def _results(record: Record) -> tuple[ToolResult, ...]:
    event: Any = decode(record.kind, record.version, record.body)
    return event.results if isinstance(event, ToolsFinished) else ()


@router.get("/{execution_id}/leases")
async def leases(studio: TheStudio, execution_id: str) -> schemas.LeasesOut:
    """What its acting agent was granted and had revoked."""
    _, state = await studio.loop(execution_id)
    return schemas.LeasesOut.model_validate(leases_of(state))


@router.get("/{execution_id}/compare/{other}")
async def comparison(studio: TheStudio, execution_id: str, other: str) -> schemas.ComparisonOut:
    """Where two part, and how the files that each has left differ."""
    (left, state), (right, _) = await studio.loop(execution_id), await studio.loop(other)
    found = await compare(studio.ledger, left, right)
    before, after = found["trees"]
    diff, note = (
        "",
        "" if before and after else "The files of one of them were not kept: it has no workspace, or no git.",
    )
    if not note:
        try:
            scope = scope_of_loop(state, studio.runtime.settings.state_dir, studio.ledger.url)
            diff = await scope.diff(before, after)
        except ScopeError as error:
            note = f"Their files cannot be compared: {error}"
    return schemas.ComparisonOut(
        parted_at=found["parted_at"], diff=diff[:MOST_CHARACTERS], cut=len(diff) > MOST_CHARACTERS, note=note
    )


@router.get("/{execution_id}/frame", response_model=dict[str, Any])
async def frame(studio: TheStudio, execution_id: str) -> Response:
    """The loop's continuation, as `treadle frame show` prints it."""
    _, state = await studio.loop(execution_id)
    sealed = dump_frame(frame_of(state), max_iterations=state.settings.max_rounds)
    return Response(sealed, media_type="application/json")
