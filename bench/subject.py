"""What is measured: a Treadle loop over an instant model and an instant tool, and the floor of bare SQLite commits."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import workload

from treadle.core.messages import ModelResponded, ToolCall
from treadle.core.usage import Usage
from treadle.ports.model import Model, ModelRequest, OnDelta, RawCall, Reply, ToolDef
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset
from treadle.spec.definitions import Agent, Loop

SCHEMA = {
    "type": "object",
    "properties": {"key": {"type": "string"}},
    "required": ["key"],
    "additionalProperties": False,
}
FEE = Usage(input_tokens=100, output_tokens=50, requests=1, cost_usd=Decimal("0.001"))


class InstantModel(Model):
    """Answers at once. `turns` is how many it makes before it stops the run by raising Enough."""

    name = "bench:instant"
    context_window = 10_000_000
    max_output_tokens = 500

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.marks: list[float] = []
        self.on_ready: Callable[[int], None] | None = None

    async def request(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Reply:
        turn = sum(1 for m in request.view.messages[-1:] if not isinstance(m, ModelResponded)) and len(self.marks)
        self.marks.append(time.perf_counter())
        if self.on_ready is not None:
            self.on_ready(len(request.view.messages))
        if len(self.marks) > self.turns:
            return Reply("", (RawCall("end", "finish", {"summary": "done"}),), FEE, "tool_call")
        return Reply(
            workload.say(turn),
            (RawCall(f"call_{turn:06d}", "lookup", {"key": f"record-{turn:06d}"}),),
            FEE,
            "tool_call",
        )

    def price(self, usage: Usage) -> Decimal | None:
        return Decimal("0.01")


class Lookup(Toolset):
    """One instant tool, reading or mutating as told."""

    def __init__(self, kind: str) -> None:
        self._tools = (
            ToolDef("finish", "Ends.", {"type": "object", "properties": {"summary": {"type": "string"}}}, "finish"),
            ToolDef("lookup", "Looks a record up.", SCHEMA, kind),
        )

    def tools(self) -> tuple[ToolDef, ...]:
        return self._tools

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        args: Any = call.args
        return ToolOutput(workload.result(int(args["key"].rsplit("-", 1)[1])))


def loop(turns: int, kind: str, model: Model | None = None) -> Loop:
    """A loop that makes that many turns and is accepted."""
    from treadle.ports.callback import accept

    agent = Agent(
        model=model or InstantModel(turns), tools=(Lookup(kind),), builtin_tools=False, max_turns_per_act=10**9
    )
    return Loop(name="bench", act=agent, evaluate=lambda _ctx, _output: accept())


def floor(path: Path, turns: int) -> list[float]:
    """Two full-sync commits a turn, and nothing else. When each turn ended."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
    marks = [time.perf_counter()]
    for turn in range(turns):
        call = {"id": f"call_{turn:06d}", "name": "lookup", "arguments": {"key": f"record-{turn:06d}"}}
        for message in (
            {"role": "assistant", "content": workload.say(turn), "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": workload.result(turn)},
        ):
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO log (body) VALUES (?)", (json.dumps(message),))
            db.execute("COMMIT")
        marks.append(time.perf_counter())
    db.close()
    return marks


def payload_bytes(turns: int) -> int:
    """What a turn is about: the two messages as JSON."""
    return sum(
        len(
            json.dumps(
                {
                    "role": "assistant",
                    "content": workload.say(t),
                    "tool_calls": [{"id": f"call_{t:06d}", "name": "lookup", "arguments": {"key": f"record-{t:06d}"}}],
                }
            )
        )
        + len(json.dumps({"role": "tool", "tool_call_id": f"call_{t:06d}", "content": workload.result(t)}))
        for t in range(turns)
    )
