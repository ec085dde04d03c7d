"""The account of a child as pure rules (FR-22): what it may have, what is settled, and how many there may be."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from support.machine import call
from treadle.core.child_events import ChildUsed
from treadle.core.errors import ToolError
from treadle.core.messages import ToolsFinished
from treadle.core.settings import Limits, LoopSettings, Policy
from treadle.core.usage import Usage
from treadle.effects.leasing import LeaseGate
from treadle.kernel import actions as act
from treadle.kernel.children import MOST_CHILDREN, allowance, due, used
from treadle.kernel.states import ChildAccount, Counters, LoopState
from treadle.ports.children import Above
from treadle.testing import VirtualClock
from treadle.tools.builtin import WorkspaceTools


def usd(amount: str) -> Usage:
    return Usage(cost_usd=Decimal(amount))


@pytest.mark.req("FR-22")
def test_what_a_child_may_have_is_what_it_has_had_and_all_that_its_parent_has_left() -> None:
    child = ChildAccount(child="c", name="scout", turns=3, usage=usd("0.2"), in_doubt=usd("0.1"))
    limits, policy = Limits(max_turns=20, max_cost_usd=Decimal(1)), Policy(max_turns=10, max_cost_usd=Decimal(2))
    spent = Counters(turns=6, usage=usd("0.4"), in_doubt=usd("0.1"))
    settings = LoopSettings(loop_id="l", role_key="r", limits=limits, act_policy=policy)
    room = allowance(LoopState(settings=settings, total=spent, act=spent, child=child))
    assert (room.turns, room.usd) == (10 - 6 + 3, Decimal("0.5") + Decimal("0.3"))


@pytest.mark.req("FR-22")
def test_what_was_reserved_for_a_child_is_free_again_once_it_is_counted() -> None:
    child = ChildAccount(child="c", name="scout", reserve=usd("0.9"), running=True)
    event = ChildUsed(child="c", usage=usd("0.1"), in_doubt=usd("0.2"), turns=2, asks="q")
    state = used(LoopState(child=child), event)
    assert state.child is not None
    assert (state.child.reserve.cost_usd, state.child.running, state.child.asks) == (0, False, "q")
    assert (state.child.turns, state.child.usage, state.child.in_doubt) == (2, usd("0.1"), usd("0.2"))
    assert (state.total.turns, state.act.turns) == (2, 2)
    assert (state.total.usage, state.act.usage, state.total.in_doubt) == (usd("0.1"), usd("0.1"), usd("0.2"))


@pytest.mark.req("FR-22")
def test_an_execution_has_a_limited_number_of_children() -> None:
    known = tuple((f"c{number}", "scout") for number in range(MOST_CHILDREN))
    fork = call("fork", "fork", child="scout", task="t")
    assert not isinstance(refused(LoopState(children=known[1:]), fork), ToolsFinished)
    result = refused(LoopState(children=known), fork)
    assert isinstance(result, ToolsFinished)
    assert str(MOST_CHILDREN) in result.results[0].content


def refused(state: LoopState, fork: object) -> object:
    action = due(state, fork, "k")  # type: ignore[arg-type]
    assert isinstance(action, act.Record)
    return action.event


@pytest.mark.req("FR-22", "AG-07")
def test_while_the_plan_above_waits_for_its_approval_a_child_only_looks(tmp_path: Path) -> None:
    gated = [False]
    gate = LeaseGate(WorkspaceTools(tmp_path), None, VirtualClock(), Above(lambda: (), lambda: gated[0]))
    write, read = call("write_file", "mutating", path="a", text=""), call("read_file", "read", path="a")
    gate.check(LoopState(), write)
    gated[0] = True
    gate.check(LoopState(), read)
    with pytest.raises(ToolError, match="plan"):
        gate.check(LoopState(), write)
