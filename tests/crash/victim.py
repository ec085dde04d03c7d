"""Runs three loops to their ends, or until it is killed. Whatever is paid or changed is noted in files that outlive SIGKILL.

    python victim.py FOLDER [--resume]      TREADLE_CRASH_AT=point:n kills it there

loop0: tools of its own, and a check that pays for something itself.   loop1: an evaluating agent.
loop2: the built-in tools in a workspace, with a command as the check.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import anyio

from treadle import Agent, Command, Judge, Loop, Usage, accept, reject
from treadle.app.runtime import Reopening, Runtime, resting
from treadle.app.stores import open_store
from treadle.core.errors import UnknownExecution
from treadle.core.messages import ToolCall
from treadle.models.prices import parse_price
from treadle.ports.model import ToolDef
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset
from treadle.runtime.document import document, to_json
from treadle.settings import Settings
from treadle.testing import ScriptedModel, Turn, crash_points

FEE = Usage(input_tokens=70, output_tokens=30)
EXTRA = Usage(input_tokens=1, output_tokens=1, requests=1)
PRICE = parse_price("10,20")
LOOPS = ("loop0", "loop1", "loop2")
OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
BATCHES = ("", "rr", "w", "rwrw", "r")  # calls a turn; then finish


class Notes:
    """The oracle's file: appended to in one write each, so a kill leaves whole lines."""

    def __init__(self, file: Path) -> None:
        self._fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def note(self, **what: Any) -> None:
        os.write(self._fd, (json.dumps(what) + "\n").encode())


class Noted(Toolset):
    """A read and a write that note when they start and end."""

    def __init__(self, loop: str, notes: Notes) -> None:
        self._loop, self._notes = loop, notes

    def tools(self) -> tuple[ToolDef, ...]:
        return (ToolDef("r", "Reads.", OBJECT, "read"), ToolDef("w", "Writes.", OBJECT, "mutating"))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        await anyio.sleep(random.random() * 0.002)
        if call.name == "w":
            self._notes.note(start=self._loop, key=context.key)
            await anyio.sleep(random.random() * 0.002)
            self._notes.note(end=self._loop, key=context.key)
        return ToolOutput(f"{call.name} {context.key} " + "x" * 100)


def own_tools_script(rounds: int) -> list[Turn]:
    turns: list[Turn] = []
    for number in range(1, rounds + 1):
        turns += [Turn(text="working", calls=[(c, {"n": i}) for i, c in enumerate(b)], usage=FEE) for b in BATCHES]
        turns.append(Turn(calls=[("finish", {"summary": f"round-{number}"})], usage=FEE))
    return turns


def workspace_script(rounds: int) -> list[Turn]:
    turns: list[Turn] = []
    for number in range(1, rounds + 1):
        command = f"echo {number} >> log.txt && sleep 0.01 && echo {number} >> log.txt"
        turns += [
            Turn(text="plan", usage=FEE),
            Turn(calls=[("write_file", {"path": "out.txt", "text": f"round {number}\n"})], usage=FEE),
            Turn(calls=[("read_file", {"path": "out.txt"}), ("list_dir", {})], usage=FEE),
            Turn(calls=[("edit_file", {"path": "out.txt", "old": "round", "new": "Round"})], usage=FEE),
            Turn(calls=[("run_command", {"command": command})], usage=FEE),
            Turn(calls=[("finish", {"summary": f"round-{number}"})], usage=FEE),
        ]
    return turns


def judge(body: dict[str, Any]) -> Turn:
    """Accepts the second round."""
    asked = next(m["content"] for m in body["messages"] if m["role"] == "user")
    good = '"round-2"' in asked
    return Turn(calls=[("verdict", {"accept": good, "feedback": "" if good else "not yet"})], usage=FEE)


def loops(folder: Path, notes: Notes) -> dict[str, Loop]:
    def model(name: str, script: Any) -> ScriptedModel:
        return ScriptedModel(script, name=f"scripted:{name}", price=PRICE, bill=folder / f"{name}.bill")

    async def check(ctx: Any, output: str) -> Any:
        for number in range(2):
            receipt = f"{ctx.idempotency_key}#{ctx.attempt}#{number}"
            if await ctx.intend(receipt, EXTRA):
                notes.note(extra="loop0", key=receipt)
                await anyio.sleep(random.random() * 0.001)
                ctx.report_usage_once(receipt, EXTRA)
        return accept() if output == "round-2" else reject(f"was {output}")

    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    return {
        "loop0": Loop(
            name="loop0",
            act=Agent(model=model("loop0", own_tools_script(2)), tools=(Noted("loop0", notes),)),
            evaluate=check,
        ),
        "loop1": Loop(
            name="loop1",
            act=Agent(model=model("loop1", own_tools_script(2)), tools=(Noted("loop1", notes),)),
            evaluate=Judge(model=model("loop1-judge", judge)),
        ),
        "loop2": Loop(
            name="loop2",
            act=Agent(model=model("loop2", workspace_script(2))),
            evaluate=Command(command="grep -q 'Round 2' out.txt && sleep 0.01"),
            workspace=workspace,
        ),
    }


async def one(runtime: Runtime, name: str, loop: Loop, task: str = "the task") -> dict[str, Any]:
    try:
        state = await runtime.state(name)
        known = state.seq > 0
    except UnknownExecution:
        known = False
    if not known:
        session = await runtime.start(loop, task, execution_id=name)
    elif resting(state, Reopening()):
        return document(name, state)
    else:
        session = await runtime.resume(name, loop, Reopening())
    try:
        return await session.run()
    finally:
        await session.close()


async def main() -> None:
    folder = Path(sys.argv[1])
    notes = Notes(folder / "notes.jsonl")
    points = crash_points(os.environ.get("TREADLE_CRASH_AT", ""))
    ledger = await open_store(f"sqlite:///{folder / 't.db'}", points)
    settings = Settings(environ=dict(os.environ), state_dir=folder / "state")
    runtime = Runtime(ledger, settings, points=points)
    print("ready", flush=True)
    found: dict[str, Any] = {}

    async def run(name: str, loop: Loop) -> None:
        found[name] = await one(runtime, name, loop)

    async with anyio.create_task_group() as group:
        for name, loop in loops(folder, notes).items():
            group.start_soon(run, name, loop)
    await runtime.close()
    print(to_json(found).decode(), flush=True)


if __name__ == "__main__":
    anyio.run(main)
