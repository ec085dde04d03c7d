"""Reads a book in a window that holds a quarter of it, until it has finished or is killed. The bill outlives SIGKILL.

python window_victim.py FOLDER      TREADLE_CRASH_AT=point:n kills it there
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
from victim import Notes, one

from treadle import Agent, Loop, accept, tool
from treadle.app.runtime import Runtime
from treadle.app.stores import open_store
from treadle.models.prices import parse_price
from treadle.runtime.document import to_json
from treadle.settings import Settings
from treadle.testing import ScriptedModel, Turn, crash_points

PAGES = 40
TASK = "Read the whole book."
NOTE = "NOTE: so far it tells of a voyage."


def read_on(body: dict[str, Any]) -> Turn:
    """Decides by what it is shown, so that a process which resumes goes on where the last one was."""
    if "hand-over note" in body["messages"][0]["content"]:
        return Turn(text=NOTE)
    calls = [call["function"] for message in body["messages"] for call in message.get("tool_calls", ())]
    read = max((json.loads(c["arguments"])["number"] for c in calls if c["name"] == "page"), default=0)
    if read >= PAGES:
        return Turn(calls=[("finish", {"summary": "read"})])
    return Turn(text="I read on. " * 20, calls=[("page", {"number": read + 1})])


def loop(folder: Path, notes: Notes) -> Loop:
    """The reader; each reading is noted."""

    @tool(kind="mutating")
    def page(number: int) -> str:
        """Turns to a page."""
        notes.note(page=number)
        return f"page {number}\n" + "lorem ipsum dolor sit amet\n" * 40

    model = ScriptedModel(
        read_on,
        name="scripted:reader",
        price=parse_price("10,20"),
        bill=folder / "window.bill",
        context_window=4_500,
        max_output_tokens=500,
    )
    return Loop(name="window", act=Agent(model=model, tools=(page,)), evaluate=lambda ctx, output: accept())


async def main() -> None:
    folder = Path(sys.argv[1])
    points = crash_points(os.environ.get("TREADLE_CRASH_AT", ""))
    ledger = await open_store(f"sqlite:///{folder / 't.db'}", points)
    runtime = Runtime(ledger, Settings(environ=dict(os.environ), state_dir=folder / "state"), points=points)
    print("ready", flush=True)
    found = await one(runtime, "window", loop(folder, Notes(folder / "notes.jsonl")), TASK)
    await runtime.close()
    print(to_json(found).decode(), flush=True)


if __name__ == "__main__":
    anyio.run(main)
