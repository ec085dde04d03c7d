"""More workflows whose processes die: what waits, what nests, candidates side by side, and what is cancelled or rejected."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from treadle.core import workflow_events as ev
from treadle.core.errors import ProviderError
from treadle.kernel.steering import Cancel
from treadle.ports.callback import accept, reject
from treadle.ports.task import QuotaReached
from treadle.spec.definitions import Loop
from treadle.spec.workflows import ApprovalTask, Asks, LoopTask, OnQuota, Retry, RunTask, Task, Workflow

from .shows import FEE, RUN, SHOWS, Desk, Ended, Show, World

MINUTE_US = 60_000_000

# ---- retries and quota


def waits(world: World) -> Workflow:
    """Back-off, a server's own retry-after, and a quota in the middle of a round."""

    async def flaky(ctx: Any) -> str:
        world.did(ctx)
        world.say("tried", at_us=world.now_us())
        if len({line["at_us"] for line in world.lines("tried")}) < 3:
            raise ConnectionError("flaky")
        return "at last"

    async def hopeless(ctx: Any) -> str:
        world.did(ctx)
        raise ConnectionError("hopeless")

    async def throttled(ctx: Any) -> str:
        world.did(ctx)
        if world.once("throttled"):
            until_us = world.now_us() + 2 * MINUTE_US
            raise ProviderError("overload", "slow down", retry_at_us=until_us) from ConnectionError("503")
        return "served"

    async def attempt(ctx: Any, feedback: str | None) -> str:
        world.did(ctx)
        return await limited(ctx, "attempt")

    async def check(ctx: Any, candidate: str) -> Any:
        world.did(ctx)
        await limited(ctx, "check")
        return accept() if ctx.round == 2 else reject("again")

    async def limited(ctx: Any, where: str) -> str:
        if ctx.quota is not None:
            world.say("quota", pause=ctx.quota.conversation, attempt=ctx.attempt, message=ctx.quota.message)
        if ctx.round == 1 and world.once(f"used up in {where}"):
            reset_us = world.now_us() + 60 * MINUTE_US
            world.say("pause", where=where, reset_us=reset_us)
            raise QuotaReached("used up", reset_at_us=reset_us, conversation=where, branch="b")
        world.say("went on", where=where, at_us=world.now_us())
        return "fine"

    patient = Retry(attempts=3, delay_s=10, backoff="exponential", jitter=0)
    return Workflow(
        "waits",
        [
            Task("flaky", flaky, retry=patient),
            Task("throttled", throttled, retry=Retry(attempts=2, delay_s=1)),
            LoopTask("limited", attempt, check, max_rounds=2),
            Task("hopeless", hopeless, after=("limited", "flaky", "throttled"), retry=Retry(attempts=3, delay_s=1)),
        ],
        on_quota=OnQuota(max_wait_s=None),
    )


def judge_waits(end: Ended) -> None:
    assert (end.status, end.code) == ("failed", "failed")
    assert (end.outputs["flaky"], end.outputs["throttled"], end.outputs["limited"]) == ("at last", "served", "fine")
    calls = [line for line in end.world.lines("did") if line["task"] == "hopeless"]
    assert 3 <= len(calls) <= 3 + end.deaths, "a death gives no new tries"
    tried = sorted({line["at_us"] for line in end.world.lines("tried")})
    assert tried[1] - tried[0] >= 10_000_000
    seen = defaultdict[str, set[int]](set)
    for line in end.world.lines("quota"):
        seen[line["pause"]].add(line["attempt"])
        assert line["message"] == "used up"
    pauses = [line["where"] for line in end.world.lines("pause")]
    assert sorted(set(pauses)) == ["attempt", "check"]
    assert all(len(attempts) <= pauses.count(where) for where, attempts in seen.items()), (
        "only the first attempt sees it"
    )
    if not end.deaths:
        assert set(seen) == {"attempt", "check"}
    due = defaultdict[str, int](int)
    for event in end.events:
        match event:
            case ev.QuotaPaused():
                due["quota"] = event.reset_at_us or 0
            case ev.PhaseFailed() if event.retry_after_us is not None:
                due["server"] = event.retry_after_us
            case ev.RetryScheduled():
                assert event.task != "throttled" or event.until_us >= due["server"] > 0, "before the server said"
                due[event.task] = event.until_us
            case ev.QuotaEnded():
                assert event.at_us >= due["quota"], "not before the provider's reset"
            case ev.TaskDue():
                assert event.at_us >= due[event.task], "not before its time"
            case _:
                pass


# ---- executions inside


def nested(world: World) -> Workflow:
    """A workflow in a workflow in a workflow, that asks; a loop; both pay."""

    async def paying(ctx: Any) -> str:
        world.did(ctx)
        await world.pay(ctx)
        return ctx.task

    async def asking(ctx: Any) -> str:
        world.did(ctx)
        answer = ctx.interaction.answer
        if answer is None:
            await ctx.interaction.suspend("Deep down?", {"deep": True})
        await world.pay(ctx)
        return f"{answer.text} {ctx.interaction.state}"

    async def act(ctx: Any, feedback: str | None) -> int:
        await world.pay(ctx)
        return ctx.round

    async def evaluate(ctx: Any, output: int) -> Any:
        await world.pay(ctx)
        return accept() if output == 2 else reject("once more")

    deep = Workflow(
        "deep", [Task("asking", asking, interaction=Asks()), ApprovalTask("gate", "Deep?", after=("asking",))]
    )
    inner = Workflow(
        "inner", [Task("a", paying), RunTask("deep", deep, after=("a",)), Task("b", paying, after=("deep",))]
    )
    loop = Loop(name="loop", act=act, evaluate=evaluate, max_rounds=3)

    async def running(ctx: Any) -> Any:
        world.did(ctx)
        found = await ctx.run(inner, {"n": 1}, key="mine")
        world.say("child", id=found.execution_id)
        return [found.output["b"], found.usage.requests]

    return Workflow("nested", [Task("running", running), RunTask("loop", loop, input="do it"), Task("beside", paying)])


def judge_nested(end: Ended) -> None:
    assert end.status == "done", end.document
    counted, doubt = end.state.total.usage.requests, end.state.total.in_doubt.requests
    paid = len(end.world.lines("paid"))
    assert counted <= paid <= counted + doubt
    assert doubt <= 3 * end.deaths
    assert end.outputs["loop"] == 2
    assert end.outputs["running"][0] == "b"
    assert end.executions == 4, "a child was begun twice"
    assert len({line["id"] for line in end.world.lines("child")}) == 1
    if not end.deaths:
        assert (counted, end.outputs["running"]) == (3 + 4 + 1, ["b", 3])


# ---- candidates


def speculating(world: World) -> Workflow:
    """Three candidates; the second is the best."""

    def trying(number: int) -> Any:
        async def candidate(ctx: Any) -> int:
            world.did(ctx)
            await world.pay(ctx)
            return number

        return candidate

    async def validate(ctx: Any, output: int) -> Any:
        world.say("judged", number=output)
        return {1: 1.0, 2: 3.0}.get(output) or reject("bad")

    async def choose(ctx: Any) -> Any:
        world.did(ctx)
        taken = await ctx.speculate([trying(1), trying(2), trying(3)], validate, select="best", key="pick")
        return [taken.number, taken.output, [lost.why for lost in taken.lost]]

    return Workflow("speculating", [Task("choose", choose)])


def judge_speculating(end: Ended) -> None:
    assert (end.status, end.outputs["choose"]) == ("done", [2, 2, ["", "bad"]])
    counted, doubt = end.state.total.usage.requests, end.state.total.in_doubt.requests
    assert counted <= len(end.world.lines("paid")) <= counted + doubt
    assert len(end.world.lines("judged")) <= 3 + 3 * end.deaths


# ---- ended by people, and by one another


def cancelled(world: World) -> Workflow:
    """Somebody cancels it while an execution inside it waits for an answer."""

    async def paying(ctx: Any) -> str:
        world.did(ctx)
        await world.pay(ctx)
        return "paid"

    inner = Workflow("inner", [ApprovalTask("gate", "Inside?")])
    return Workflow(
        "cancelled", [Task("a", paying), RunTask("inside", inner, after=("a",)), ApprovalTask("gate", "Outside?")]
    )


async def cancelling(desk: Desk) -> bool:
    if desk.status != "waiting-input":
        return False
    await desk.runtime.steer(RUN, [Cancel(actor="ada", reason="enough")])
    return True


def judge_cancelled(end: Ended) -> None:
    assert (end.status, end.code) == ("cancelled", "aborted")
    assert end.state.evidence == "cancelled by ada: enough"
    assert end.outputs == {"a": "paid"}


def rejected(world: World) -> Workflow:
    """A gate is rejected inside: what runs it is rejected with it, and what depends on that is skipped."""

    async def fine(ctx: Any) -> str:
        world.did(ctx)
        return "fine"

    async def never(ctx: Any) -> None:
        world.say("never")

    inner = Workflow("inner", [ApprovalTask("gate", "Ship it?", actors=("ada",)), Task("then", never, after=("gate",))])
    inside = RunTask("inside", inner, after=("fine",))
    return Workflow("rejected", [Task("fine", fine), inside, Task("after", never, after=(inside,))])


async def rejecting(desk: Desk) -> bool:
    if desk.status != "waiting-input":
        return False
    (asked,) = desk.asked
    await desk.answer(asked.id, "reject", "not today")
    return True


def judge_rejected(end: Ended) -> None:
    assert (end.status, end.code) == ("rejected", "rejected")
    assert end.state.evidence.startswith("inside: gate: rejected by ada: not today (in ")
    assert end.executions == 2
    assert end.state.outcome == "rejected"
    assert not end.world.lines("never")
    assert end.document["status"] == "rejected"


def stopping(world: World) -> Workflow:
    """One fails: what runs beside it is told and stopped, nothing else begins."""

    async def long(ctx: Any) -> None:
        world.did(ctx)
        try:
            await ctx.signal.wait()
        finally:
            world.say("told", aborted=ctx.signal.aborted)

    async def breaks(ctx: Any) -> None:
        world.did(ctx)
        raise ValueError("broken")

    async def never(ctx: Any) -> None:
        world.say("never")

    tasks = [
        Task("long", long),
        Task("breaks", breaks),
        Task("third", never, after=("long",)),
        Task("after", never, after=("breaks",)),
    ]
    return Workflow("stopping", tasks, concurrency=2)


def judge_stopping(end: Ended) -> None:
    assert (end.status, end.code) == ("failed", "failed")
    assert "broken" in end.state.evidence
    assert dict(end.state.skipped.items()) == {"after": "breaks"}
    assert not end.world.lines("never")
    assert all(line["aborted"] for line in end.world.lines("told"))
    assert end.deaths or end.world.lines("told")


SHOWS |= {
    "waits": Show(make=waits, judge=judge_waits),
    "nested": Show(make=nested, judge=judge_nested),
    "speculating": Show(make=speculating, judge=judge_speculating),
    "cancelled": Show(make=cancelled, judge=judge_cancelled, person=cancelling),
    "rejected": Show(make=rejected, judge=judge_rejected, person=rejecting),
    "stopping": Show(make=stopping, judge=judge_stopping),
}
__all__ = ["FEE", "SHOWS"]
