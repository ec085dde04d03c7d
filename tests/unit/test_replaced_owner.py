"""A process that was away while another took its execution over: it pays and begins nothing more, and what it runs is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from support.driving import DONE, FEE, PLAN, a_loop, scripted
from support.places import Lapsed
from treadle import Agent, Loop, Person, accept, tool
from treadle.app.runtime import Runtime
from treadle.app.workflows import run_workflow
from treadle.core.errors import StaleEpoch, ToolError
from treadle.ledger.inmemory import InMemoryLedger
from treadle.settings import Settings
from treadle.spec.workflows import Task, Workflow
from treadle.testing import Turn


@pytest.mark.req("RT-03")
def test_an_owner_whose_lease_has_lapsed_asks_before_it_pays_and_stops_where_it_is_no_longer_its_own(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        ledger, model = Lapsed(), scripted(PLAN, DONE)
        made = Runtime(ledger, Settings(environ={}, state_dir=tmp_path))
        session = await made.start(a_loop(model), "the task")
        ledger.away = True
        with pytest.raises(StaleEpoch):
            await session.run()
        assert model.requests == 0
        with pytest.raises(StaleEpoch):
            await session.journal.flush()
        await made.close()

    anyio.run(main)


@pytest.mark.req("RT-03", "AG-09")
def test_what_failed_for_the_moment_is_not_tried_again_by_an_owner_that_was_replaced_meanwhile(tmp_path: Path) -> None:
    ledger, tries = Lapsed(), list[int]()

    @tool(kind="read")
    async def unsteady() -> str:
        """Fails for the moment, and while it does another owner takes over."""
        tries.append(1)
        ledger.away = True
        raise ToolError("timeout", "no answer")

    with pytest.raises(StaleEpoch):
        run_once(ledger, tmp_path, unsteady)
    assert tries == [1]


@pytest.mark.req("RT-03")
def test_a_long_call_of_an_owner_that_was_replaced_is_stopped_where_it_stands(tmp_path: Path) -> None:
    ledger, stopped = Lapsed(), list[str]()

    @tool(kind="mutating")
    async def endless() -> str:
        """Never ends, and while it runs another owner takes over."""
        ledger.away = True
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append("stopped")

    with pytest.raises(StaleEpoch):
        run_once(ledger, tmp_path, endless)
    assert stopped == ["stopped"]


def run_once(ledger: InMemoryLedger, folder: Path, only: Any) -> None:
    """A loop whose agent calls its only tool once."""

    async def main() -> None:
        made = Runtime(ledger, Settings(environ={}, state_dir=folder))
        model = scripted(Turn(calls=[(only.definition.name, {})], usage=FEE), DONE)
        agent = Agent(model=model, tools=(only,), builtin_tools=False)
        session = await made.start(Loop(name="test", act=agent, evaluate=lambda ctx, output: accept()), "the task")
        try:
            with anyio.fail_after(30):
                await session.run()
        finally:
            await made.close()

    anyio.run(main)


@pytest.mark.req("RT-03", "LG-04")
@pytest.mark.parametrize("way", ["loop", "task", "child"])
def test_a_charge_is_not_made_by_an_owner_that_was_replaced_while_it_announced_it(way: str, tmp_path: Path) -> None:
    ledger, charged = Lapsed(), list[str]()

    async def pay(ctx: Any, *_: Any) -> None:
        ledger.away = True
        if await ctx.intend("r1", FEE):
            charged.append("charged")

    async def fork(ctx: Any) -> None:
        ledger.away = True
        await ctx.run(
            Loop(name="test", act=lambda ctx, _: charged.append("begun"), evaluate=Person()), "the task", key="c"
        )

    async def main() -> None:
        if way == "loop":
            made = Runtime(ledger, Settings(environ={}, state_dir=tmp_path))
            await (await made.start(Loop(name="test", act=pay, evaluate=Person()), "the task")).run()
        else:
            work = Task("a", pay if way == "task" else fork)
            await run_workflow(Workflow("w", [work]), None, store=ledger)

    with pytest.raises(StaleEpoch):
        anyio.run(main)
    assert charged == []
