"""The document that `run`, `resume`, `show` and `ls` print: one projection of the state (SV-03)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import asdict

from treadle.core.endings import exit_code
from treadle.core.usage import Usage
from treadle.kernel.budget import possibly_charged
from treadle.kernel.states import LoopState, ScopeState

_encoder = msgspec.json.Encoder(decimal_format="number")


def document(execution_id: str, state: LoopState, *, signal: str = "") -> dict[str, Any]:
    """Keys and meanings as in SV-03; money as Decimal. `signal`: the one that interrupted it, for its exit code."""
    total, act, pending = state.total, state.act, state.pending
    in_doubt = possibly_charged(state)
    return {
        "execution_id": execution_id,
        "status": state.status,
        "code": state.code,
        "pending": None
        if pending is None
        else {
            "request_id": pending.id,
            "kind": pending.kind,
            "prompt": pending.prompt,
            "choices": list(pending.choices),
            "until_us": pending.until_us,
            **({"child": pending.child} if pending.child else {}),
        },
        "rounds": state.round,
        "phase": state.phase,
        "turns_taken": total.turns,
        "act_turns_taken": act.turns,
        "cost_usd": total.usage.cost_usd,
        "in_doubt_usd": in_doubt.cost_usd,
        "usage": _usage(total.usage, in_doubt),
        "output": None if not state.last_output_json else msgspec.json.decode(state.last_output_json),
        "guards": {
            "limits": {name.replace("_", "-"): value for name, value in asdict(state.settings.guards).items()},
            "fires": dict(state.fires),
            "must_change": state.settings.must_change,
        },
        "model": state.last_act_model or None,
        "rung": state.rung,
        "outcome": {"kind": state.outcome, "evidence": state.evidence, "advice": state.advice}
        if state.outcome
        else None,
        "started_at": iso(state.started_us),
        "elapsed_ms": total.us // 1000,
        "act_elapsed_ms": act.us // 1000,
        "task": state.task,
        "workspace": state.workspace,
        **({"forked": state.forked} if state.forked else {}),
        **({"parent": state.parent} if state.parent else {}),
        **({"children": _children(state)} if state.children else {}),
        **({} if state.scope is None else {"scope": _scope(state.scope)}),
        "exit_code": exit_code(state.status, state.code, signal=signal),
    }


def _children(state: LoopState) -> list[dict[str, Any]]:
    """All that its agent has forked, oldest first; `waits_for` of the one at work: a person, or this very agent."""
    at_work = state.child
    found: list[dict[str, Any]] = []
    for child, name in state.children:
        one: dict[str, Any] = {"execution_id": child, "name": name, "open": False}
        if at_work is not None and at_work.child == child:
            waits_for = "agent" if at_work.asks else state.pending.kind if state.pending is not None else None
            one |= {"open": True, "waits_for": waits_for, "reserved_usd": at_work.reserve.cost_usd}
        found.append(one)
    return found


def _scope(scope: ScopeState) -> dict[str, Any]:
    return {
        "branch": scope.isolation.branch,
        "target": scope.isolation.target or None,
        "commit": scope.commit or None,
        "conflicts": list(scope.conflicts),
        "closed": scope.closed or None,
        "note": scope.note or None,
    }


def _usage(usage: Usage, in_doubt: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "requests": usage.requests,
        "in_doubt_requests": in_doubt.requests,
    }


def iso(us: int) -> str:
    """Wall time in microseconds since the epoch as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_json(value: object) -> bytes:
    """JSON with money as numbers."""
    return _encoder.encode(value)


def summary_bytes(execution_id: str, state: LoopState) -> bytes:
    """The document as stored beside an execution, for listings."""
    return to_json(document(execution_id, state))
