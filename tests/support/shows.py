"""Small workflows that between them use all of a task's context, and what must be true of each however often its process died.

A callback's acts are lines of the world, which no death takes back. `tests/support/deaths.py` lets their processes die.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from treadle.app.runtime import Reopening
from treadle.app.workflow_runtime import WorkflowRuntime
from treadle.core.errors import AnswerRefused
from treadle.core.usage import Usage
from treadle.kernel.steering import Answer
from treadle.kernel.workflow_budget import standing
from treadle.kernel.workflow_states import WorkflowState
from treadle.ports.callback import accept, reject
from treadle.spec.workflows import (
    ApprovalTask,
    Asks,
    Budget,
    LoopTask,
    PauseTask,
    Task,
    Workflow,
)

FEE = Usage(input_tokens=10, output_tokens=1, requests=1, cost_usd=Decimal("0.01"))
RUN = "show-1"
Line = dict[str, Any]


class World:
    """What cannot be taken back: lines in memory, or in a file that outlives real processes. The dead say nothing."""

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._lines = path, list[Line]()
        self.silent: Callable[[], bool] = lambda: False
        self.now_us: Callable[[], int] = lambda: 0

    def say(self, what: str, **more: Any) -> None:
        if self.silent():
            return
        line = {"what": what, **more}
        if self._path is None:
            self._lines.append(json.loads(json.dumps(line)))
        else:
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def lines(self, what: str = "") -> list[Line]:
        if self._path is not None:
            text = self._path.read_text() if self._path.exists() else ""
            self._lines = [json.loads(line) for line in text.splitlines()]
        return [line for line in self._lines if what in ("", line["what"])]

    def once(self, what: str) -> bool:
        """Whether this is the first time."""
        first = not self.lines(what)
        self.say(what)
        return first

    def did(self, ctx: Any, **given: Any) -> None:
        """A callback has been called, and with what."""
        self.say(
            "did",
            execution=ctx.execution_id,
            task=ctx.task,
            round=ctx.round,
            phase=ctx.phase,
            attempt=ctx.attempt,
            key=ctx.idempotency_key,
            quota=ctx.quota is not None,
            aborted=ctx.signal.aborted,
            given=given,
        )

    async def pay(self, ctx: Any, fee: Usage = FEE, name: str = "fee") -> None:
        """Announced, paid, reported: nothing of it may be lost or counted twice."""
        receipt = f"{ctx.idempotency_key}:{name}:{ctx.attempt}"
        if await ctx.intend(receipt, fee):
            self.say("paid", receipt=receipt, usd=str(fee.cost_usd), requests=fee.requests)
            await anyio.lowlevel.checkpoint()
            ctx.report_usage_once(receipt, fee)
            ctx.report_usage_once(receipt, fee)  # a duplicate is silent


class Desk:
    """Where a person sits: looks at an execution that rests, and says what is to be done. True: go on with it."""

    def __init__(self, runtime: WorkflowRuntime, state: WorkflowState, world: World) -> None:
        self.runtime, self.state, self.world = runtime, state, world
        self.how = Reopening()
        self.status, self.code = standing(state)

    @property
    def asked(self) -> list[Any]:
        return [question for key in self.state.asking for question in self.state.active[key].questions]

    async def answer(self, request_id: str, decision: str = "approve", text: str = "fine", actor: str = "ada") -> None:
        said = Answer(request_id=request_id, decision=decision, text=text, actor=actor)  # type: ignore[arg-type]
        await self.runtime.steer(RUN, [said])
        self.world.say("answered", request=request_id, text=text)

    async def refused(self, request_id: str, **said: Any) -> None:
        try:
            await self.answer(request_id, **said)
        except AnswerRefused:
            return
        raise AssertionError(f"{request_id} was answered with {said}")


async def obliging(desk: Desk) -> bool:
    """Answers what is asked."""
    for question in desk.asked:
        if question.kind == "question":
            await desk.answer(question.id, "answer", "blue")
        else:
            await desk.answer(question.id)
    return desk.status == "waiting-input"


@dataclass(frozen=True)
class Ended:
    """How it came to its end."""

    status: str
    code: str
    outputs: dict[str, Any]
    state: WorkflowState
    document: dict[str, Any]
    events: tuple[Any, ...]
    executions: int
    world: World
    deaths: int


@dataclass(frozen=True, kw_only=True)
class Show:
    """One workflow, and who sits at the desk."""

    make: Callable[[World], Workflow]
    judge: Callable[[Ended], None]
    person: Callable[[Desk], Awaitable[bool]] = obliging
    quota_wait_s: float | None = None
    input: Any = None


# ---- values, rounds, verdicts


def rounds(world: World) -> Workflow:
    """Dependencies, conditions, a loop whose check changes the candidate, and what comes after it."""

    async def part(ctx: Any) -> str:
        world.did(ctx, input=ctx.input)
        return ctx.task

    async def attempt(ctx: Any, feedback: str | None) -> dict[str, Any]:
        world.did(ctx, feedback=feedback, values=[ctx.value(left), ctx.value(right)])
        return {"round": ctx.round, "seen": []}

    async def check(ctx: Any, candidate: dict[str, Any]) -> Any:
        world.did(ctx, candidate=candidate)
        candidate["seen"].append(ctx.round)
        return accept() if ctx.round == 3 else reject(f"round {ctx.round} is „no“\n")

    async def never(ctx: Any) -> bool:
        world.say("asked", task=ctx.task)
        return False

    async def always(ctx: Any) -> bool:
        return True

    async def last(ctx: Any) -> Any:
        world.did(ctx, value=ctx.value(loop))
        return ctx.value(loop)

    left, right = Task("left", part), Task("right", part, condition=always)
    loop = LoopTask("loop", attempt, check, max_rounds=4, after=(left, right))
    not_run = Task("not-run", part, after=(left,), condition=never)
    return Workflow(
        "rounds",
        [left, right, loop, not_run, Task("for-it", part, after=(not_run,)), Task("last", last, after=(loop,))],
    )


def judge_rounds(end: Ended) -> None:
    assert (end.status, end.code) == ("done", "accepted")
    accepted = {"round": 3, "seen": [3]}  # kept of the check that accepted, dropped of those that did not
    assert end.outputs == {"left": "left", "right": "right", "loop": accepted, "last": accepted}
    assert dict(end.state.skipped.items()) == {"not-run": "", "for-it": "not-run"}
    for line in end.world.lines("did"):
        number, given = line["round"], line["given"]
        if line["task"] == "loop" and line["phase"] == "attempt":
            feedback = None if number == 1 else f"round {number - 1} is „no“\n"
            assert given == {"feedback": feedback, "values": ["left", "right"]}
        elif line["task"] == "loop":
            assert given == {"candidate": {"round": number, "seen": []}}, "as saved before the check"
    order = [line["task"] for line in end.world.lines("did")]
    assert max(i for i, t in enumerate(order) if t in ("left", "right")) < order.index("loop") < order.index("last")


# ---- charges and budgets


def accounts(world: World) -> Workflow:
    """Charges side by side, each announced, and reports that are only made durable now and then."""

    async def paying(ctx: Any) -> str:
        world.did(ctx)
        await world.pay(ctx, name="one")
        await world.pay(ctx, name="two")
        return ctx.task

    async def reporting(ctx: Any, feedback: str | None) -> int:
        world.did(ctx)
        for number in (1, 2):
            world.say("reported", requests=1)
            ctx.report_usage(FEE)
            if number == 1:
                await ctx.checkpoint()
                world.say("saved", requests=1)
        return ctx.round

    async def check(ctx: Any, candidate: int) -> Any:
        world.did(ctx)
        world.say("reported", requests=1)
        ctx.report_usage(FEE)
        return accept() if candidate == 2 else reject("more")

    tasks = [Task(key, paying) for key in "abc"]
    return Workflow("accounts", [*tasks, LoopTask("loop", reporting, check, max_rounds=2)], concurrency=3)


def judge_accounts(end: Ended) -> None:
    assert (end.status, end.outputs) == ("done", {"a": "a", "b": "b", "c": "c", "loop": 2})
    counted, doubt = end.state.total.usage.requests, end.state.total.in_doubt.requests
    paid, told = len(end.world.lines("paid")), len(end.world.lines("reported"))
    saved = len(end.world.lines("saved"))
    assert counted <= paid + told
    assert paid + saved <= counted + doubt, "a charge that was announced or checkpointed is never lost"
    assert doubt <= 3 * end.deaths
    if not end.deaths:
        assert (counted, doubt) == (6 + 6, 0)


CAP = Decimal("0.05")


def budget(world: World) -> Workflow:
    """Four tasks side by side want more than there is; a person gives more."""

    async def paying(ctx: Any) -> str:
        world.did(ctx)
        await world.pay(ctx, Usage(requests=1, input_tokens=1, cost_usd=Decimal("0.02")))
        return ctx.task

    return Workflow("budget", [Task(key, paying) for key in "abcd"], budget=Budget(max_cost_usd=CAP, max_attempts=40))


async def generous(desk: Desk) -> bool:
    """Extends it once it has stopped at its limit."""
    if (desk.status, desk.code) != ("stopped", "limit"):
        return False
    cap = desk.state.settings.budget.max_cost_usd
    spent = (desk.state.total.usage + desk.state.total.in_doubt).cost_usd
    assert cap is not None
    assert spent >= cap
    desk.world.say("stopped", cap=str(cap + CAP))
    await desk.runtime.extend(RUN, Budget(max_cost_usd=cap + CAP), actor="ada")
    return True


def judge_budget(end: Ended) -> None:
    assert (end.status, end.code, sorted(end.outputs)) == ("done", "accepted", ["a", "b", "c", "d"])
    assert end.world.lines("stopped"), "the limit was never reached"
    spent, cap = Decimal(0), CAP
    for line in end.world.lines():
        if line["what"] == "paid":
            spent += Decimal(line["usd"])
            assert spent <= cap + Decimal("0.01"), "side by side they have spent the same dollar"
        elif line["what"] == "stopped":
            cap = Decimal(line["cap"])
    assert end.state.total.attempts <= 8 + 4 * end.deaths + 4


# ---- people


def people(world: World) -> Workflow:
    """Questions with state, from a task and from both phases of a loop; gates; a pause."""

    async def asking(ctx: Any) -> str:
        world.did(ctx)
        answer, state = ctx.interaction.answer, ctx.interaction.state
        if answer is None:
            await ctx.interaction.save({"step": 1})
            try:
                await ctx.interaction.suspend("Which?", {"step": 2}, choices=("blue", "red"))
            except Exception:  # noqa: BLE001 - what user code writes: it must not catch the suspension
                raise AssertionError from None
        world.say("used", text=answer.text, actor=answer.actor, state=state)
        return answer.text

    async def attempt(ctx: Any, feedback: str | None) -> str:
        world.did(ctx, feedback=feedback)
        answer = ctx.interaction.answer
        if ctx.round == 1 and answer is None:
            await ctx.interaction.suspend("Begin?", {"n": 1})
        return "begun" if answer is not None else "told"

    async def check(ctx: Any, candidate: str) -> Any:
        world.did(ctx, candidate=candidate)
        answer = ctx.interaction.answer
        if answer is None:
            await ctx.interaction.suspend(f"Good, {candidate}?")
        return accept() if ctx.round == 2 else reject(answer.text)

    async def ship(ctx: Any) -> str:
        world.did(ctx)
        return ctx.value(gate)["actor"]

    gate = ApprovalTask("gate", "Ship it?", after=("loop", "nap", "halt"), actors=("ada",))
    return Workflow(
        "people",
        [
            Task("asking", asking, interaction=Asks(actors=("ada",))),
            LoopTask("loop", attempt, check, max_rounds=3, interaction=Asks()),
            PauseTask("nap", for_s=30, after=("asking",)),
            PauseTask("halt", prompt="Go on?", after=("asking",)),
            gate,
            Task("ship", ship, after=(gate,)),
        ],
    )


async def careful(desk: Desk) -> bool:
    """First says everything that must be refused; then answers."""
    if desk.status != "waiting-input":
        return False
    first = desk.asked[0]
    if first.kind == "question":
        await desk.refused(first.id, decision="answer", text=" ")
        await desk.refused(first.id, decision="approve")
        if first.choices:
            await desk.refused(first.id, decision="answer", text="green")
        text = "blue"
    else:
        await desk.refused(first.id, decision="reject", text="")
        await desk.refused(first.id, decision="answer", text="blue")
        text = "fine"
    if first.actors:
        await desk.refused(first.id, decision="answer" if first.kind == "question" else "approve", actor="eve")
    for line in desk.world.lines("answered"):
        await desk.refused(line["request"], decision="answer", text="blue")  # it never answers a later one
    await desk.answer(first.id, "answer" if first.kind == "question" else "approve", text)
    return True


def judge_people(end: Ended) -> None:
    assert (end.status, end.outputs["asking"], end.outputs["loop"]) == ("done", "blue", "told")
    assert (end.outputs["gate"]["actor"], end.outputs["gate"]["text"], end.outputs["ship"]) == ("ada", "fine", "ada")
    used = [{k: v for k, v in line.items() if k != "what"} for line in end.world.lines("used")]
    assert used
    assert all(line == {"text": "blue", "actor": "ada", "state": {"step": 2}} for line in used)
    answers = [event.id for event in end.events if type(event).__name__ == "TaskAnswered"]
    assert len(answers) == len(set(answers)) == 6, "a question is answered once"
    feedback = [line["given"]["feedback"] for line in end.world.lines("did") if "feedback" in line["given"]]
    assert set(feedback) == {None, "blue"}


# ---- endings


def endings(world: World) -> Workflow:
    """Everything that can go wrong, side by side, while the rest goes on."""

    async def fine(ctx: Any) -> str:
        world.did(ctx)
        return "fine"

    async def broken(ctx: Any) -> str:
        world.did(ctx)
        if not world.lines("mended"):
            raise ValueError("broken")
        return "mended"

    async def attempt(ctx: Any, feedback: str | None) -> int:
        world.did(ctx)
        return ctx.round

    async def refuse(ctx: Any, candidate: int) -> Any:
        world.did(ctx)
        return reject(f"not {candidate}")

    async def nonsense(ctx: Any, candidate: int) -> Any:
        world.did(ctx)
        return "yes" if not world.lines("mended") else accept()

    async def late(ctx: Any, feedback: str | None) -> None:
        world.did(ctx)
        await anyio.sleep_forever()

    async def yes(ctx: Any, candidate: Any) -> Any:
        world.did(ctx)
        return accept()

    return Workflow(
        "endings",
        [
            Task("fine", fine),
            Task("broken", broken),
            LoopTask("exhausted", attempt, refuse, max_rounds=2),
            LoopTask("nonsense", attempt, nonsense, max_rounds=2),
            LoopTask("late", late, yes, max_rounds=2, timeout_s=0.002),
            Task("after-broken", fine, after=("fine", "broken")),
            Task("after-exhausted", fine, after=("exhausted",)),
        ],
        on_error="continue",
        concurrency=3,
    )


async def mending(desk: Desk) -> bool:
    """Mends what is broken, and says that what failed is to be tried again: once."""
    if desk.status != "failed" or "broken" not in desk.state.failed:
        return False
    if not desk.world.lines("mended"):
        failed = {key: task.code for key, task in desk.state.failed.items()}
        assert failed == {"broken": "failed", "exhausted": "exhausted", "nonsense": "failed", "late": "timeout"}
        assert dict(desk.state.skipped.items()) == {"after-broken": "broken", "after-exhausted": "exhausted"}
        assert desk.runtime.resting(desk.state, Reopening()), "what failed goes on only when somebody says so"
        desk.world.say("mended")
    desk.how = Reopening(retry_incomplete=True)
    return True


def judge_endings(end: Ended) -> None:
    assert (end.status, end.code) == ("failed", "exhausted")
    wanted = {"fine": "fine", "broken": "mended", "after-broken": "fine", "nonsense": 1}
    assert end.outputs == wanted
    failed = [(key, task.code, task.feedback) for key, task in end.state.failed.items()]
    assert failed == [("exhausted", "exhausted", "not 2"), ("late", "timeout", None)]
    calls = [line for line in end.world.lines("did") if line["task"] == "exhausted"]
    assert max(line["round"] for line in calls) == 2
    assert len(calls) <= 4 + end.deaths
    assert not any(line["aborted"] for line in end.world.lines("did")), "the timer starts anew on replay"


SHOWS = {
    "rounds": Show(make=rounds, judge=judge_rounds, input={"day": "Monday"}),
    "accounts": Show(make=accounts, judge=judge_accounts),
    "budget": Show(make=budget, judge=judge_budget, person=generous),
    "people": Show(make=people, judge=judge_people, person=careful),
    "endings": Show(make=endings, judge=judge_endings, person=mending),
}
