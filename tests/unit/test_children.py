"""Children of an agent (FR-22): executions of their own, under their parent's budget, leases, guards and plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.driving import DONE, FEE, LOOK, PLAN, in_runtime, scripted
from support.families import (
    A_TURN,
    ASK,
    FORK,
    PUBLISHED,
    WRITE,
    family,
    only_child,
    results_of,
    resumed,
    started,
)
from treadle import Agent, Child, Loop, Person, accept
from treadle.app.archive import whole
from treadle.app.claiming import Abandoned
from treadle.app.ending import advice_of, next_command
from treadle.app.forking import fork
from treadle.app.listing import listing
from treadle.app.runtime import Runtime
from treadle.core.errors import AnswerRefused, DefinitionError, InputError
from treadle.kernel.steering import Answer, Cancel, ChangeLease, Extend
from treadle.testing import Fault, Turn


@pytest.mark.req("FR-22")
def test_a_child_is_an_execution_of_its_own_and_its_result_is_that_of_the_call(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        state = await started(runtime, family(scripted(PLAN, FORK, DONE), scripted(PLAN, LOOK, DONE)))
        child = await runtime.state(only_child(state))
        assert (state.status, state.total.turns, state.act.turns) == ("done", 6, 6)
        assert (child.status, child.parent, child.total.turns) == ("done", "parent", 3)
        assert state.total.usage.cost_usd == 6 * A_TURN
        assert state.child is None
        (result,) = await results_of(runtime, "parent", "fork")
        assert result.status == "ok"
        assert "scout ended done, accepted, after 1 round." in result.content
        assert "did it" in result.content

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
@pytest.mark.parametrize(
    ("limit", "turns"),
    [
        ({"max_turns": 5}, 5),
        ({"max_cost_usd": 5 * A_TURN}, 5),
        ({"max_tokens": 5 * 110}, 5),
        ({"agent": {"max_turns": 4}}, 4),
        ({"scout": {"max_turns": 2}}, 5),
    ],
)
def test_a_child_spends_no_more_than_its_parent_has_left(limit: dict[str, Any], turns: int, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        child = scripted(PLAN, *[LOOK] * 50)
        loop = family(scripted(PLAN, FORK, DONE), child, **{"guards": {"repeat": 0}, **limit})
        state = await started(runtime, loop)
        assert state.total.turns == turns
        assert child.requests == turns - (3 if "scout" in limit else 2)
        below = await runtime.state(only_child(state))
        assert (below.status, below.code) == ("stopped", "limit")
        assert (state.status, state.code) == (("done", "accepted") if "scout" in limit else ("stopped", "limit"))

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
@pytest.mark.parametrize("depth", [1, 2])
def test_what_a_child_asks_parks_its_parent_and_the_answer_wakes_both(depth: int, tmp_path: Path) -> None:
    """At every depth, whichever of them is answered, and by another process than asked."""
    store = f"sqlite:///{tmp_path}/store.db"

    def made() -> Loop:
        inner = family(scripted(PLAN, FORK, DONE), scripted(PLAN, ASK, DONE))
        return inner if depth == 1 else family(scripted(PLAN, FORK, DONE), inner)

    async def asked(runtime: Runtime) -> None:
        state = await started(runtime, made())
        pending = state.pending
        assert (state.status, state.code) == ("waiting-input", "question")
        assert pending is not None
        assert (pending.child, pending.choices) == (only_child(state), ("a", "b"))
        assert pending.prompt.endswith("Which one?")

    async def answered(runtime: Runtime) -> None:
        state = await runtime.state("parent")
        below = "parent"
        for _ in range(depth):
            below = only_child(await runtime.state(below))
        waiting = (await runtime.state(below)).pending
        assert waiting is not None
        with pytest.raises(AnswerRefused, match="none of the choices"):
            await runtime.steer(below, Answer(request_id=waiting.id, decision="answer", text="c", actor="eve"))
        told = await runtime.steer(below, Answer(request_id=waiting.id, decision="answer", text="b", actor="eve"))
        assert (told.step_exec_id, told.status) == ("parent", "running")
        with pytest.raises(AnswerRefused, match="eve has answered it already"):
            await runtime.steer(below, Answer(request_id=waiting.id, decision="answer", text="a", actor="x"))
        with pytest.raises(AnswerRefused):  # consumed once
            await runtime.steer("parent", Answer(request_id=state.pending.id, decision="answer", text="a", actor="x"))  # type: ignore[union-attr]
        done = await resumed(runtime, made())
        assert (done.status, done.total.turns) == ("done", 6 if depth == 1 else 9)
        (result,) = await results_of(runtime, below, "ask_person")
        assert result.content == "b"

    in_runtime(store, tmp_path, asked)
    in_runtime(store, tmp_path, answered)


@pytest.mark.req("FR-22")
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_childs_result_is_judged_through_its_parent(decision: Any, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        loop = family(scripted(PLAN, FORK, DONE), scripted(PLAN, DONE, DONE), scout={"max_rounds": 1})
        inner = loop.act.children["scout"].loop  # type: ignore[union-attr]
        loop = family(scripted(PLAN, FORK, DONE), Loop(name="scout", act=inner.act, evaluate=Person(), max_rounds=1))
        state = await started(runtime, loop)
        assert state.pending is not None
        assert state.pending.kind == "evaluation"
        said = Answer(request_id=state.pending.id, decision=decision, text="not so", actor="eve")
        await runtime.steer("parent", said)
        state = await resumed(runtime, loop)
        (result,) = await results_of(runtime, "parent", "fork")
        assert result.status == ("ok" if decision == "approve" else "error")
        assert state.status == "done"

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
def test_where_declared_the_parents_agent_answers(tmp_path: Path) -> None:
    answer = Turn(calls=[("answer_child", {"answer": "b"})], usage=FEE)

    async def test(runtime: Runtime) -> None:
        loop = family(scripted(PLAN, FORK, answer, DONE), scripted(PLAN, ASK, DONE), answers="agent")
        state = await started(runtime, loop)
        assert (state.status, state.total.turns, len(state.children)) == ("done", 7, 1)
        (asked,) = await results_of(runtime, "parent", "fork")
        assert "It asks: Which one? Choices: a, b." in asked.content
        (told,) = await results_of(runtime, only_child(state), "ask_person")
        assert told.content == "b"

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
def test_a_child_that_still_asks_when_act_is_over_is_ended(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        state = await started(runtime, family(scripted(PLAN, FORK, DONE), scripted(PLAN, ASK, DONE), answers="agent"))
        assert (state.status, state.child) == ("done", None)
        assert (await runtime.state(only_child(state))).status == "cancelled"
        assert state.total.turns == 5

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
@pytest.mark.parametrize("depth", [1, 2])
def test_cancelling_a_parent_ends_all_below_it(depth: int, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        loop = family(scripted(PLAN, FORK, DONE), scripted(PLAN, ASK, DONE))
        loop = loop if depth == 1 else family(scripted(PLAN, FORK, DONE), loop)
        state = await started(runtime, loop)
        assert state.status == "waiting-input"
        ended = await runtime.steer("parent", Cancel(actor="eve"))
        assert (ended.status, ended.child) == ("cancelled", None)
        below = "parent"
        for _ in range(depth):
            below = only_child(await runtime.state(below))
            assert (await runtime.state(below)).status == "cancelled"

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
def test_cancelling_a_child_wakes_its_parent(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        loop = family(scripted(PLAN, FORK, DONE), scripted(PLAN, ASK, DONE))
        state = await started(runtime, loop)
        await runtime.steer(only_child(state), Cancel(actor="eve", reason="no need"))
        assert (await runtime.state("parent")).status == "running"
        state = await resumed(runtime, loop)
        assert state.status == "done"
        (result,) = await results_of(runtime, "parent", "fork")
        assert result.status == "error"
        assert "cancelled by eve: no need" in result.content

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
def test_a_child_whose_quota_is_used_up_pauses_its_parent(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        fault = Fault(status=429, body={"error": {"code": "insufficient_quota", "message": "used up"}})
        loop = family(scripted(PLAN, FORK, DONE), scripted(PLAN, fault, DONE, order="request"))
        state = await started(runtime, loop)
        assert (state.status, state.code) == ("paused", "quota")
        assert state.pending is not None
        assert state.pending.child == only_child(state)
        state = await resumed(runtime, loop)
        assert (state.status, state.total.turns) == ("done", 5)

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
@pytest.mark.parametrize("repeat", [3, 6])
def test_a_child_has_its_parents_guards(repeat: int, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        child = scripted(PLAN, *[LOOK] * 100)
        state = await started(runtime, family(scripted(PLAN, FORK, DONE), child, guards={"repeat": repeat}))
        below = await runtime.state(only_child(state))
        assert (below.status, below.code) == ("failed", "thrash")
        assert child.requests == 1 + 2 * repeat
        assert state.status == "done"

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
@pytest.mark.parametrize(
    ("parent", "child", "published"),
    [
        ({"allow": ()}, {}, False),
        ({"allow": ()}, {"allow": ("external.mutation:publish",)}, False),
        ({"allow": ("external.mutation:publish",)}, {}, True),
        ({"allow": ("external.mutation:publish",)}, {"allow": ("external.mutation:other",)}, False),
        ({}, {"allow": ("external.mutation:publish",)}, True),
    ],
)
def test_a_child_has_no_lease_that_its_parent_lacks(parent: Any, child: Any, published: bool, tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        PUBLISHED.clear()
        loop = family(scripted(PLAN, FORK, DONE), scripted(PLAN, WRITE, DONE), agent=parent, inner=child)
        state = await started(runtime, loop)
        (result,) = await results_of(runtime, only_child(state), "publish")
        assert (result.status, result.error) == (("ok", "") if published else ("error", "permission"))
        assert bool(PUBLISHED) is published

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
def test_a_lease_revoked_from_the_parent_is_lost_to_a_child_at_work(tmp_path: Path) -> None:
    """Case 45: also after a resume, since the child asks those above it before each call."""

    async def test(runtime: Runtime) -> None:
        PUBLISHED.clear()
        loop = family(scripted(PLAN, FORK, DONE), scripted(PLAN, WRITE, ASK, WRITE, DONE))
        state = await started(runtime, loop)
        assert PUBLISHED == ["x"]
        await runtime.steer("parent", ChangeLease(actor="eve", op="revoke", capability="external.mutation:publish"))
        assert state.pending is not None
        await runtime.steer("parent", Answer(request_id=state.pending.id, decision="answer", text="a", actor="eve"))
        state = await resumed(runtime, loop)
        assert PUBLISHED == ["x"]
        below = await runtime.state(only_child(state))
        assert [lease.op for lease in below.above[0].leases] == ["revoke"]
        last = (await results_of(runtime, only_child(state), "publish"))[-1]
        assert last.error == "permission"

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
def test_nobody_can_grant_a_child_what_its_parent_lacks(tmp_path: Path) -> None:
    request = Turn(calls=[("request_permission", {"capability": "network.request:a.org", "reason": "r"})], usage=FEE)

    async def test(runtime: Runtime) -> None:
        loop = family(
            scripted(PLAN, FORK, DONE),
            scripted(PLAN, request, ASK, DONE),
            agent={"allow": ()},
            inner={"allow": (), "may_ask": ("network.request",)},
        )
        state = await started(runtime, loop)
        child = only_child(state)
        (refused,) = await results_of(runtime, child, "request_permission")
        assert refused.status == "error"
        with pytest.raises(InputError, match="more than parent has"):
            await runtime.steer(child, ChangeLease(actor="eve", op="grant", capability="network.request:a.org"))

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
def test_in_plan_mode_nothing_is_forked_before_the_plan_is_approved(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        plan = Turn(calls=[("write_plan", {"steps": [{"title": "fork"}]})], usage=FEE)
        child = scripted(PLAN, DONE)
        state = await started(runtime, family(scripted(FORK, plan, FORK, DONE), child, plan=True))
        assert (state.code, child.requests, state.children) == ("approval", 0, ())

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
def test_a_child_goes_on_with_what_its_parent_was_extended_by(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        loop = family(scripted(PLAN, FORK, DONE), scripted(PLAN, ASK, LOOK, LOOK, DONE), max_turns=5)
        state = await started(runtime, loop)
        assert state.pending is not None
        await runtime.steer("parent", Extend(actor="eve", max_turns=20))
        await runtime.steer("parent", Answer(request_id=state.pending.id, decision="answer", text="a", actor="eve"))
        assert (await resumed(runtime, loop)).status == "done"

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
def test_a_child_that_was_stopped_is_not_extended_behind_its_parents_back(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        loop = family(scripted(PLAN, FORK, DONE), scripted(PLAN, LOOK, LOOK, LOOK, LOOK, DONE), scout={"max_turns": 2})
        state = await started(runtime, loop)
        child = only_child(state)
        stopped = await runtime.state(child)
        assert (state.status, stopped.status) == ("done", "stopped")
        with pytest.raises(InputError, match="was forked by parent"):
            await runtime.steer(child, Extend(actor="eve", max_turns=20))
        assert await runtime.state(child) == stopped
        assert "parent" in advice_of(stopped)
        assert next_command(child, stopped) == "treadle show parent"

    in_runtime("memory:", tmp_path, test)


def test_a_child_is_not_resumed_without_its_parent(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        loop = family(scripted(PLAN, FORK, DONE), scripted(PLAN, ASK, DONE))
        state = await started(runtime, loop)
        with pytest.raises(InputError, match="runs inside parent: treadle resume parent"):
            await resumed(runtime, loop, only_child(state))

    in_runtime("memory:", tmp_path, test)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Child(loop=_plain(), about=" "), "about"),
        (lambda: Child(loop=_plain(), about="x", answers="nobody"), "answers"),  # type: ignore[arg-type]
        (lambda: Child(loop=_plain(input_type=int), about="x"), "must take a text"),
        (lambda: Agent(model="a:b", children={"a b": Child(loop=_plain(), about="x")}), "no name of a child"),
        (lambda: Agent(model="a:b", allow=(), children={"c": Child(loop=_plain(), about="x")}), "no lease holds"),
    ],
)
def test_a_child_that_is_ill_defined_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        wrong()


def _plain(**changes: Any) -> Loop:
    return Loop(name="c", act=lambda ctx, feedback: "x", evaluate=lambda ctx, output: accept(), **changes)


@pytest.mark.req("FR-22")
def test_a_fork_of_a_parked_parent_begins_the_child_anew(tmp_path: Path) -> None:
    """Two executions never wait for one child."""

    async def test(runtime: Runtime) -> None:
        loop = family(scripted(PLAN, FORK, DONE), scripted(PLAN, ASK, DONE))
        first = await started(runtime, loop)
        made = await fork(runtime, "parent", name="other")
        second = await resumed(runtime, loop, made.execution_id)
        assert (second.status, second.code) == ("waiting-input", "question")
        assert only_child(second) != only_child(first)
        await runtime.steer("other", Cancel(actor="eve"))
        assert (await runtime.state(only_child(first))).status == "waiting-input"

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("FR-22")
def test_a_family_is_listed_and_shown_together(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        loop = family(scripted(PLAN, FORK, DONE), scripted(PLAN, ASK, DONE))
        state = await started(runtime, loop)
        child = only_child(state)
        by_id = {one.document["execution_id"]: one for one in await listing(runtime.ledger)}
        assert by_id[child].parent == "parent"
        document = by_id["parent"].document
        assert document["pending"]["child"] == child
        ((shown),) = document["children"]
        assert (shown["execution_id"], shown["open"], shown["waits_for"]) == (child, True, "question")
        assert [row.execution_id for row in await whole(runtime.ledger, ())] == ["parent"]
        assert await Abandoned(runtime.ledger, print).find() == []
        assert state.pending is not None
        await runtime.steer(child, Answer(request_id=state.pending.id[17:], decision="answer", text="a", actor="eve"))
        assert [row.execution_id for row in await Abandoned(runtime.ledger, print).find()] == ["parent"]

    in_runtime("memory:", tmp_path, test)
