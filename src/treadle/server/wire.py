"""Events and states as the page gets them: summarised, bounded, with money as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import msgspec

from treadle.app.describe import describe
from treadle.core.codec import decode, encode
from treadle.core.values import Value
from treadle.kernel.budget import possibly_charged
from treadle.kernel.states import LoopState
from treadle.kernel.workflow_states import WorkflowState
from treadle.ports.ledger import Record
from treadle.ports.observer import Progress

WHOLE_BYTES = 4_096  # a record of at most so many goes as it is stored
TEXT_CHARACTERS = 2_000  # ... of a larger one each text is cut to this
ITEMS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """The state after an event: all that the canvas shows of it."""

    seq: int = 0
    status: str = "running"
    code: str = ""
    round: int = 1
    phase: str = "act"
    agent: str = "planning"
    step: str = ""
    iteration: int = 0
    turn: int = 0
    turns: int = 0
    act_turns: int = 0
    cost_usd: float = 0.0
    in_doubt_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    elapsed_ms: int = 0
    pending: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """An event of the log: its record, summarised and bounded. `state` is there on the live stream only."""

    execution_id: str
    seq: int  # 0: never recorded (the text of a response, a call that has begun)
    kind: str
    at_us: int
    text: str
    data: Any = None
    state: LiveState | None = None


def live(state: object) -> LiveState | None:
    """Of a loop or a workflow; None for anything else."""
    if isinstance(state, LoopState):
        return _loop(state)
    if isinstance(state, WorkflowState):
        return LiveState(seq=state.seq, status=state.status, code=state.code, agent="")
    return None


def _loop(state: LoopState) -> LiveState:
    total, usage, agent = state.total, state.total.usage, state.agent
    return LiveState(
        seq=state.seq,
        status=state.status,
        code=state.code,
        round=state.round,
        phase=state.phase,
        agent=agent.state,
        step=agent.step,
        iteration=agent.iteration,
        turn=agent.turn,
        turns=total.turns,
        act_turns=state.act.turns,
        cost_usd=float(usage.cost_usd),
        in_doubt_usd=float(possibly_charged(state).cost_usd),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        elapsed_ms=total.us // 1000,
        pending=state.pending.id if state.pending else "",
    )


def of_record(execution_id: str, record: Record, state: object = None) -> LogEvent:
    """A stored event."""
    event = decode(record.kind, record.version, record.body)
    return LogEvent(
        execution_id=execution_id,
        seq=record.seq,
        kind=record.kind,
        at_us=record.at_us,
        text=describe(event),
        data=_bounded(event, record.body),
        state=live(state),
    )


def of_progress(progress: Progress) -> LogEvent:
    """An event of an execution of this process, durable or not."""
    data = progress.data
    if isinstance(data, Value) and progress.seq:
        text, data = describe(data), _bounded(data, encode(cast("Any", data))[2])
    else:
        text, data = "", clipped(msgspec.to_builtins(data))
    return LogEvent(
        execution_id=progress.execution_id,
        seq=progress.seq,
        kind=progress.kind,
        at_us=progress.at_us,
        text=text,
        data=data,
        state=live(progress.state),
    )


def _bounded(event: object, body: bytes) -> Any:
    return msgspec.Raw(body) if len(body) <= WHOLE_BYTES else clipped(msgspec.to_builtins(event))


def clipped(value: Any) -> Any:
    """With long texts and long lists cut, and said so."""
    match value:
        case str():
            left = len(value) - TEXT_CHARACTERS
            return value if left <= 0 else f"{value[:TEXT_CHARACTERS]}… ({left:,} more characters)"
        case dict():
            found = cast("dict[Any, Any]", value)
            return {key: clipped(one) for key, one in list(found.items())[:ITEMS]}
        case list() | tuple():
            return [clipped(one) for one in cast("list[Any]", value)[:ITEMS]]
        case _:
            return value


encode_json = msgspec.json.Encoder(decimal_format="number").encode
