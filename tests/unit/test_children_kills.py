"""Children of an agent (FR-22) through kills, and carried to another store."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from support.crashing import DieAt, Died, Lives
from support.driving import DONE, FEE, LOOK, PLAN, Hanging, in_runtime, scripted
from support.families import A_TURN, ASK, FORK, family, only_child, results_of, resumed, started
from support.whole_frame import prepare
from treadle import Agent, Loop
from treadle.app.carry import as_it_is, export, import_family, read_export
from treadle.app.runtime import Runtime
from treadle.core.errors import LedgerError
from treadle.kernel.states import LoopState
from treadle.kernel.steering import Answer, Cancel
from treadle.testing import Turn
from treadle.testing.bill import read_bill
from treadle.testing.crash import CHILD_POINTS

POINTS = (
    *((point, nth) for point in ("before-model", "after-model") for nth in (2, 3, 4, 5, 6)),
    *((p, 1) for p in CHILD_POINTS),
)


@pytest.mark.req("FR-22", "LG-03")
@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize(("point", "nth"), POINTS)
def test_a_kill_counts_a_child_once(point: str, nth: int, asks: bool, tmp_path: Path) -> None:
    """Whatever dies when, the parent's account is what all of them have billed, or in doubt."""
    bills = tmp_path / "parent.bill", tmp_path / "child.bill"

    def make() -> Loop:
        steps = (PLAN, ASK, LOOK, DONE) if asks else (PLAN, LOOK, LOOK, DONE)
        parent = scripted(PLAN, FORK, DONE, bill=bills[0])
        return family(parent, scripted(*steps, bill=bills[1]), max_cost_usd=Decimal(1))

    async def answer(runtime: Runtime, state: LoopState) -> None:
        assert state.pending is not None
        said = Answer(request_id=state.pending.id, decision="answer", text="a", actor="eve")
        await runtime.steer("parent", said)

    async def main() -> None:
        lives = Lives(tmp_path)
        state = await lives.run(make, "parent", die_at=(point, nth), meanwhile=answer)
        assert lives.deaths == 1
        assert (state.status, state.total.turns, state.child) == ("done", 7, None)
        async with lives.life() as runtime:
            child = await runtime.state(only_child(state))
        assert (child.status, child.total.turns) == ("done", 4)
        assert state.total.usage.cost_usd == 7 * A_TURN
        billed = sum(A_TURN for bill in bills for _ in read_bill(bill))
        assert state.total.usage.cost_usd <= billed <= state.total.usage.cost_usd + state.total.in_doubt.cost_usd

    anyio.run(main)


@pytest.mark.req("FR-22")
@pytest.mark.parametrize("point", CHILD_POINTS)
def test_a_parent_that_is_killed_and_then_cancelled_takes_its_child_with_it(point: str, tmp_path: Path) -> None:
    async def main() -> None:
        lives = Lives(tmp_path)
        points = DieAt(point)
        with pytest.raises((Died, LedgerError, BaseExceptionGroup)):
            async with lives.life(points) as runtime:
                await started(runtime, family(scripted(PLAN, FORK, DONE), scripted(PLAN, ASK, DONE)))
        async with lives.life() as runtime:
            ended = await runtime.steer("parent", Cancel(actor="eve"))
            assert (ended.status, ended.child) == ("cancelled", None)
            if point == "after-child":
                assert ended.total.turns == 4
                assert (await runtime.state(only_child(ended))).status == "cancelled"

    anyio.run(main)


@pytest.mark.req("FR-22", "FR-27")
def test_a_parked_parent_is_carried_to_another_store_with_its_children(tmp_path: Path) -> None:
    def made() -> Loop:
        inner = family(scripted(PLAN, FORK, DONE), scripted(PLAN, ASK, DONE))
        return family(scripted(PLAN, FORK, DONE), inner)

    async def main() -> None:
        here, there = Lives(tmp_path), Lives(tmp_path / "there")
        async with here.life() as runtime:
            state = await started(runtime, made())
            data = await export(runtime.ledger, "parent", state)
        async with there.life() as runtime:
            carried = read_export(data)
            await import_family(runtime.ledger, carried, as_it_is, owner=runtime.owner, at_us=1)
            assert state.pending is not None
            await runtime.steer("parent", Answer(request_id=state.pending.id, decision="answer", text="b", actor="eve"))
            state = await resumed(runtime, made())
            assert (state.status, state.total.turns) == ("done", 9)

    anyio.run(main)


@pytest.mark.req("FR-22", "RT-02")
def test_a_worker_that_hands_over_stops_a_child_at_work_and_another_goes_on_with_both(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        child = Hanging(PLAN, LOOK)
        session = await runtime.start(family(scripted(PLAN, FORK, DONE), child), "Do it.", execution_id="parent")
        async with anyio.create_task_group() as group:
            group.start_soon(session.run)
            await child.asked.wait()
            session.driver.hand_over()
        await session.close()
        assert session.state.status == "running"
        assert session.state.total.turns == 4
        state = await resumed(runtime, family(scripted(PLAN, FORK, DONE), scripted(PLAN, LOOK, LOOK, DONE)))
        assert (state.status, state.total.turns) == ("done", 7)
        assert state.total.in_doubt.requests == 1

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-16", "FR-22")
def test_what_an_isolated_child_has_made_arrives_in_its_parents_workspace(tmp_path: Path) -> None:
    prepare(tmp_path / "workspace")
    write = Turn(calls=[("write_file", {"path": "made.txt", "text": "by the child\n"})], usage=FEE)

    async def test(runtime: Runtime) -> None:
        scout = Loop(
            name="scout", act=Agent(model=scripted(PLAN, write, DONE)), evaluate="test -f made.txt", isolate=True
        )
        loop = family(scripted(PLAN, FORK, DONE), scout, workspace=tmp_path / "workspace", evaluate="test -f made.txt")
        state = await started(runtime, loop)
        child = await runtime.state(only_child(state))
        assert (state.status, child.status) == ("done", "done")
        assert child.scope is not None
        assert child.scope.closed == "merged"
        assert child.workspace != state.workspace
        (result,) = await results_of(runtime, "parent", "fork")
        assert result.changed == ("made.txt",)

    in_runtime("memory:", tmp_path, test)
