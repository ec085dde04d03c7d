"""What the workers work on: `job:loop`, imported by each of them. Whatever it changes is noted in a file that outlives a kill."""

from __future__ import annotations

import json
import os
import random
import time
from typing import Any

import anyio

from treadle import Agent, Loop, accept, tool
from treadle.ports.toolset import ToolContext

NOTES = os.environ.get("CHAOS_NOTES", "")
TURNS = int(os.environ.get("CHAOS_TURNS", "100"))


def note(**what: Any) -> None:
    """One line, in one write."""
    line = json.dumps({"pid": os.getpid(), "at": time.time(), **what}) + "\n"
    descriptor = os.open(NOTES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


@tool(kind="mutating")
async def change(n: int, context: ToolContext) -> str:
    """Changes something that nobody can look up afterwards."""
    note(begin=context.key)
    await anyio.sleep(random.random() * 0.05)
    note(done=context.key)
    return f"changed {n}"


@tool(kind="read")
async def look(n: int) -> str:
    """Looks."""
    await anyio.sleep(random.random() * 0.02)
    return f"{n} is as it was"


async def check(ctx: Any, output: Any) -> Any:
    return accept()


agent = Agent(
    model="openai:scripted",
    base_url=os.environ.get("CHAOS_URL") or None,
    api_key="none",
    price="1,2",
    tools=(change, look),
    max_turns_per_act=TURNS * 2,
)
loop = Loop(name="chaos", act=agent, evaluate=check, max_rounds=1, lessons="off", guards={"repeat": 0, "stagnation": 0})
