"""What happened, round by round and turn by turn, projected from the records: the artifacts of AG-27 and AG-28."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from treadle.core import events as ev
from treadle.core.codec import decode
from treadle.core.errors import InputError
from treadle.core.messages import MapGiven, ModelResponded, Prompted, ToolCall, ToolResult, ToolsFinished
from treadle.core.usage import Usage
from treadle.core.values import Value, replace
from treadle.kernel.loop import advance
from treadle.kernel.states import LoopState
from treadle.ports.ledger import Record
from treadle.runtime.document import iso


class RoundRecord(Value, frozen=True, kw_only=True):
    """One pass of act and evaluate. `head` is the tree that act left, where there is git."""

    round: int
    verdict: str = ""  # accepted, rejected, or empty while there is none
    feedback: str = ""
    evidence: str = ""
    turns: int = 0
    changed: tuple[str, ...] = ()
    failure: str = ""  # why act did not finish
    output_json: str = "null"
    baseline: str = ""
    head: str = ""
    map: MapGiven | None = None  # what act was shown of the workspace first


class TurnRecord(Value, frozen=True, kw_only=True):
    """One model call and its batch (AG-27)."""

    turn: int  # over the whole execution, from 1
    round: int
    phase: str
    call: str
    model: str
    at: str
    request: str  # digest of what was sent
    reserve: Usage
    response: str  # digest of what came back
    text: str
    finish: str
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...] = ()
    usage: Usage
    elapsed_us: int
    decision: str = ""
    changed: tuple[str, ...] = ()


def rounds(records: Iterable[Record]) -> list[RoundRecord]:
    """All rounds so far, oldest first."""
    found: dict[int, RoundRecord] = {}
    state = LoopState()
    for record in records:
        event = decode(record.kind, record.version, record.body)
        before, state = state, advance(state, event)
        number = before.round if before.seq else 1
        found[number] = _with(found.get(number) or RoundRecord(round=number), event)
    return [found[number] for number in sorted(found)]


def _with(one: RoundRecord, event: ev.Event) -> RoundRecord:
    match event:
        case ev.BaselineTaken():
            return replace(one, baseline=event.tree)
        case Prompted() if event.map is not None:
            return replace(one, map=event.map)
        case ModelResponded():
            return replace(one, turns=one.turns + 1)
        case ev.ActFinished() | ev.ActFailed():
            failure = event.reason if isinstance(event, ev.ActFailed) else ""
            receipt: dict[str, Any] | None = msgspec.json.decode(event.scope_receipt_json)
            head = str(receipt["head"]) if receipt else ""
            return replace(one, changed=event.changed, output_json=event.output_json, failure=failure, head=head)
        case ev.Judged():
            verdict = "accepted" if event.accept else "rejected"
            return replace(one, verdict=verdict, feedback=event.feedback, evidence=event.evidence)
        case _:
            return one


def turn(records: Iterable[Record], number: int) -> TurnRecord:
    """The turn with this number. InputError where there is none."""
    state, intended, seen = LoopState(), ev.ModelIntended(call="", reserve=Usage(), request="", model=""), 0
    found: TurnRecord | None = None
    for record in records:
        event = decode(record.kind, record.version, record.body)
        before, state = state, advance(state, event)
        if isinstance(event, ev.ModelIntended):
            intended = event
        elif isinstance(event, ModelResponded):
            seen += 1
            if found is not None:
                break
            if seen == number:
                found = _turn(number, before, intended, event, record)
        elif found is not None:
            found = _followed(found, event, before, state)
    if found is None:
        raise InputError(f"There is no turn {number}: this execution has had {seen}. Turns count from 1.")
    return found if found.decision else replace(found, decision="its calls have no results yet")


def _turn(
    number: int, before: LoopState, intended: ev.ModelIntended, event: ModelResponded, record: Record
) -> TurnRecord:
    return TurnRecord(
        turn=number,
        round=before.round,
        phase=before.phase,
        call=event.call,
        model=intended.model,
        at=iso(record.at_us),
        request=intended.request,
        reserve=intended.reserve,
        response=blake2b(record.body, digest_size=12).hexdigest(),
        text=event.text,
        finish=event.finish,
        calls=event.calls,
        usage=event.usage,
        elapsed_us=event.us,
        decision="" if event.calls else "no tool call: the model was told to go on",
    )


def _followed(found: TurnRecord, event: ev.Event, before: LoopState, after: LoopState) -> TurnRecord:
    """What came of the turn: results, and what the machine made of them."""
    if isinstance(event, ToolsFinished):
        results = (*found.results, *event.results)
        changed = tuple(dict.fromkeys((*found.changed, *(path for result in event.results for path in result.changed))))
        found = replace(found, results=results, changed=changed)
        whole = len(results) >= len(found.calls)
        return replace(found, decision=_decision(found, before, after)) if whole else found
    if found.decision or isinstance(event, Prompted):
        return found
    if isinstance(event, ev.Suspended):
        return replace(found, decision=f"waits for a person: {event.kind}")
    if isinstance(event, ev.Stopped):
        return replace(found, decision=f"ended: {event.status}, {event.code}")
    return found


def _decision(found: TurnRecord, before: LoopState, after: LoopState) -> str:
    moved = f"{before.agent.state} → {after.agent.state}"
    if after.agent.state == "completed":
        if after.agent.accept is None:
            return f"finished: {moved}"
        return f"verdict {'accepted' if after.agent.accept else 'rejected'}: {moved}"
    failed = sum(result.status != "ok" for result in found.results)
    ran = f"{len(found.results) - failed} of {len(found.results)} calls succeeded"
    return f"{ran}: {moved}" if before.agent.state != after.agent.state else ran


def last_output(records: Iterable[Record], call_id: str | None = None) -> ToolResult | None:
    """The result of the latest call of a tool, or of the latest with this id. What only ends a phase gives no output."""
    found: ToolResult | None = None
    ending: set[str] = set()
    for record in records:
        if record.kind not in ("model.responded", "tools.finished"):
            continue
        event = decode(record.kind, record.version, record.body)
        if isinstance(event, ModelResponded):
            ending = {call.id for call in event.calls if call.kind in ("finish", "verdict")}
        elif isinstance(event, ToolsFinished):
            for result in event.results:
                if call_id == result.id or (call_id is None and result.id not in ending):
                    found = result
    return found


def turn_document(found: TurnRecord) -> dict[str, Any]:
    """As JSON: calls with their results side by side; money as Decimal."""
    results = dict(enumerate(found.results))
    return {
        "turn": found.turn,
        "round": found.round,
        "phase": found.phase,
        "call": found.call,
        "model": found.model,
        "at": found.at,
        "request": {"digest": found.request, "reserve": usage_document(found.reserve)},
        "response": {"digest": found.response, "text": found.text, "finish": found.finish},
        "calls": [
            {
                "id": call.id,
                "name": call.name,
                "args": call.args,
                "kind": call.kind,
                "problem": call.problem or None,
                "result": _result_document(results.get(index)),
            }
            for index, call in enumerate(found.calls)
        ],
        "usage": usage_document(found.usage),
        "elapsed_ms": found.elapsed_us // 1000,
        "decision": found.decision,
        "changed": list(found.changed),
    }


def _result_document(result: ToolResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "status": result.status,
        "content": result.content,
        "changed": list(result.changed),
        "whole_output": result.blob or None,
    }


def round_document(one: RoundRecord) -> dict[str, Any]:
    """As JSON."""
    return {
        "round": one.round,
        "verdict": one.verdict or None,
        "feedback": one.feedback,
        "evidence": one.evidence,
        "turns": one.turns,
        "changed": list(one.changed),
        "failure": one.failure or None,
        "output": msgspec.json.decode(one.output_json),
        "baseline": one.baseline or None,
        "head": one.head or None,
        "map": None if one.map is None else msgspec.to_builtins(one.map),
    }


def usage_document(usage: Usage) -> dict[str, Any]:
    """Usage by name."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "requests": usage.requests,
        "cost_usd": usage.cost_usd,
    }
