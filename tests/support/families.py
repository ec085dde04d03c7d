"""Loops whose agents fork children, on scripted models, and what the tests look up of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from support.driving import FEE, look
from treadle import Agent, Child, Loop, accept, tool
from treadle.app.runtime import Reopening, Runtime
from treadle.core.codec import decode
from treadle.core.messages import ModelResponded, ToolResult, ToolsFinished
from treadle.kernel.states import LoopState
from treadle.testing import Turn

FORK = Turn(calls=[("fork", {"child": "scout", "task": "Look around."})], usage=FEE)
ASK = Turn(calls=[("ask_person", {"question": "Which one?", "choices": ["a", "b"]})], usage=FEE)
WRITE = Turn(calls=[("publish", {"name": "x"})], usage=FEE)
A_TURN = Decimal("0.0012")  # a hundred tokens in and ten out at 10 and 20 USD a million
PUBLISHED: list[str] = []


@tool(kind="mutating")
def publish(name: str) -> str:
    """Publishes."""
    PUBLISHED.append(name)
    return "published"


def family(
    parent: Any,
    child: Any,
    *,
    answers: Any = "person",
    agent: dict[str, Any] | None = None,
    inner: dict[str, Any] | None = None,
    scout: dict[str, Any] | None = None,
    **changes: Any,
) -> Loop:
    """A loop whose agent may fork one child, on scripted models or on a Loop of its own."""
    if not isinstance(child, Loop):
        acts = Agent(model=child, tools=(look, publish), **(inner or {}))
        child = Loop(name="scout", act=acts, evaluate=lambda ctx, output: accept(), **(scout or {}))
    about = Child(loop=child, about="Finds things out.", answers=answers)
    act = Agent(model=parent, tools=(look, publish), children={"scout": about}, **(agent or {}))
    return Loop(name="test", act=act, **{"evaluate": lambda ctx, output: accept(), **changes})


async def started(runtime: Runtime, loop: Loop, name: str = "parent") -> LoopState:
    """Runs it until it rests."""
    session = await runtime.start(loop, "Do it.", execution_id=name)
    try:
        await session.run()
        return session.state
    finally:
        await session.close()


async def resumed(runtime: Runtime, loop: Loop, name: str = "parent", **how: Any) -> LoopState:
    """Goes on with it until it rests."""
    session = await runtime.resume(name, loop, Reopening(**how))
    try:
        await session.run()
        return session.state
    finally:
        await session.close()


async def results_of(runtime: Runtime, execution_id: str, name: str) -> list[ToolResult]:
    """What calls of a tool gave, in order."""
    names: dict[str, str] = {}
    found: list[ToolResult] = []
    for record in await runtime.ledger.records(execution_id):
        event = decode(record.kind, record.version, record.body)
        if isinstance(event, ModelResponded):
            names.update((call.id, call.name) for call in event.calls)
        elif isinstance(event, ToolsFinished):
            found += [result for result in event.results if names[result.id] == name]
    return found


def only_child(state: LoopState) -> str:
    ((child, _),) = state.children
    return child
