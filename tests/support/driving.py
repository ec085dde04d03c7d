"""What the tests of a driven execution share: scripted loops, a model that hangs, a runtime of one store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from treadle import Agent, Loop, Usage, accept, tool
from treadle.app.runtime import Runtime, Session
from treadle.app.stores import open_store
from treadle.models.prices import parse_price
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.ports.observer import Observer, Progress
from treadle.settings import Settings
from treadle.testing import Fault, ScriptedModel, Turn

FEE = Usage(input_tokens=100, output_tokens=10)
PLAN = Turn(text="First I look.", usage=FEE)
DONE = Turn(calls=[("finish", {"summary": "did it"})], usage=FEE)
LOOK = Turn(calls=[("look", {})], usage=FEE)


@tool(kind="read")
def look() -> str:
    """Looks."""
    return "nothing special"


def scripted(*steps: Any, **options: Any) -> ScriptedModel:
    return ScriptedModel(list(steps), price=parse_price("10,20"), **options)


class Hanging(ScriptedModel):
    """Answers with these turns, then lets the next request hang and says so."""

    def __init__(self, *turns: Turn) -> None:
        self.asked = anyio.Event()

        def decide(body: dict[str, Any]) -> Turn | Fault:
            done = sum(message["role"] == "assistant" for message in body["messages"])
            if done < len(turns):
                return turns[done]
            self.asked.set()
            return Fault(hang=True, bill=True)

        super().__init__(decide, price=parse_price("10,20"))


async def run_until(session: Session, event: anyio.Event) -> None:
    """Drives the session, and cancels it natively once the event is there."""
    async with anyio.create_task_group() as group:
        group.start_soon(session.run)
        await event.wait()
        group.cancel_scope.cancel()


class ToldOf(Observer):
    """Sets an event when a tool of this name starts."""

    def __init__(self, name: str) -> None:
        self.name, self.event = name, anyio.Event()

    def notify(self, progress: Progress) -> None:
        if progress.kind == "tool.started" and progress.data["name"] == self.name:
            self.event.set()


def a_loop(model: ScriptedModel, evaluate: Any = None, **changes: Any) -> Loop:
    agent = {key: changes.pop(key) for key in ("max_turns", "instructions", "history") if key in changes}
    return Loop(
        name="test",
        act=Agent(model=model, tools=(look,), **agent),
        evaluate=evaluate or (lambda ctx, output: accept()),
        **changes,
    )


@asynccontextmanager
async def runtime(store: str, tmp_path: Path, **options: Any) -> AsyncIterator[Runtime]:
    ledger = await open_store(store, options.get("points", NO_CRASH_POINTS))
    made = Runtime(ledger, Settings(environ={}, state_dir=tmp_path), **options)
    try:
        yield made
    finally:
        await made.close()


def in_runtime(store: str, tmp_path: Path, test: Any, **options: Any) -> None:
    async def main() -> None:
        async with runtime(store, tmp_path, **options) as made:
            with anyio.fail_after(20):
                await test(made)

    anyio.run(main)
