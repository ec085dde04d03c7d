"""Who plays in a trial: a model with a mind of its own, tools that change the world, checks that pay, and what is built of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import anyio

from support.loops import unpaired
from treadle import Agent, Judge, Loop, Person, Usage, accept, reject
from treadle.core.errors import ProviderError, ToolError
from treadle.core.events import Probe
from treadle.core.messages import ModelResponded, ToolCall
from treadle.models.prices import Price, parse_price
from treadle.ports.model import Model, ModelRequest, OnDelta, RawCall, Reply, ToolDef
from treadle.ports.task import QuotaReached
from treadle.ports.toolset import Found, ToolContext, ToolOutput, Toolset
from treadle.spec.workflows import (
    ApprovalTask,
    Asks,
    Budget,
    LoopTask,
    OnQuota,
    PauseTask,
    Retry,
    RunTask,
    Task,
    Workflow,
)
from treadle.testing.model import chat_body
from treadle.tools.builtin.planning import PlanTools

from .machine import PROCESS, START_US
from .world import World

PRICE: Price = parse_price("10,20")
CHECK_FEE = Usage(input_tokens=100, output_tokens=10, requests=1, cost_usd=Decimal("0.0012"))
NUMBER: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


class SimulatedModel(Model):
    """Answers by chance, slowly or not at all, and bills on its own side."""

    def __init__(self, world: World, name: str, *, turns: int, window: int = 200_000, plans: bool = False) -> None:
        self.world, self.name, self.turns, self.plans = world, name, turns, plans
        self.context_window, self.max_output_tokens = window, 400

    async def request(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Reply:
        world = self.world
        execution, _, call = request.key.partition(":")
        world.ask(execution, call)
        if wrong := unpaired(chat_body(request)):
            world.fault(f"{request.key} was asked with {wrong[0]}")
        await anyio.sleep(world.span(2.0))
        size = request.view.size + len(request.static) + len(request.dynamic)
        await self._refused()
        usage = Usage(input_tokens=1 + size // 4, output_tokens=world.chance.randint(1, 300), requests=1)
        usage = replace_cost(usage)
        world.charge(execution, request.key, usage)
        await anyio.sleep(world.span(90.0 if world.hit("slow answer") else 3.0))
        if world.hit("answer lost"):
            raise ProviderError("network", "the connection was lost after sending", maybe_charged=True)
        if world.hit("answer garbled"):
            raise ProviderError("protocol", "the answer cannot be read", maybe_charged=True)
        if world.hit("answer never"):
            await anyio.sleep(3600)
            raise ProviderError("network", "timed out", maybe_charged=True)
        text, calls = self._says(request)
        known = not world.hit("usage unknown")
        return Reply(text=text, calls=calls, usage=usage, finish="tool_call" if calls else "stop", usage_known=known)

    async def _refused(self) -> None:
        world = self.world
        for kind in ("overload", "network", "context-too-long", "auth", "bad-request"):
            if world.hit(kind):
                raise ProviderError(kind, f"scripted {kind}")
        if world.hit("quota"):
            process = PROCESS.get()
            assert process is not None
            now_us = START_US + process.skew_us + round(world.loop.time() * 1e6)
            back = None if world.likely(0.2) else now_us + world.chance.randint(1, 120) * 1_000_000
            raise ProviderError("quota", "used up", retry_at_us=back)

    def _says(self, request: ModelRequest) -> tuple[str, tuple[RawCall, ...]]:
        world, chance = self.world, self.world.chance
        names = [tool.name for tool in request.tools]
        said = sum(isinstance(message, ModelResponded) for message in request.view.messages)
        if not names:
            return "A summary of what was done so far.", ()
        if "verdict" in names and (said >= 1 or world.likely(0.6)):
            good = world.likely(0.6)
            return "", (RawCall("v", "verdict", {"accept": good, "feedback": "" if good else "more"}),)
        if "finish" in names and said >= self.turns:
            return "", (RawCall("f", "finish", {"summary": "done"}),)
        if self.plans and said == 0:
            steps = [{"title": f"step {n}"} for n in range(chance.randint(1, 3))]
            return "", (RawCall("p", "write_plan", {"steps": steps}),)
        if world.likely(0.08):
            return "I think aloud.", ()
        return "", tuple(self._call(names, f"c{said}.{n}") for n in range(chance.choice((1, 1, 1, 2, 3))))

    def _call(self, names: list[str], name: str) -> RawCall:
        world, chance = self.world, self.world.chance
        if world.likely(0.03):
            return RawCall(name, "no_such_tool", {})
        if world.likely(0.03):
            return RawCall(name, "look", "{broken")
        if "ask_person" in names and world.likely(0.04):
            return RawCall(name, "ask_person", {"question": "Which?"})
        wanted = [one for one in ("look", "put", "note", "blind") if one in names] or names[:1]
        return RawCall(name, chance.choice(wanted), {"n": chance.randint(0, 999)})

    def price(self, usage: Usage) -> Decimal | None:
        return PRICE.cost(usage)


def replace_cost(usage: Usage) -> Usage:
    """The usage with what it costs."""
    return Usage(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, requests=1, cost_usd=PRICE.cost(usage)
    )


class SimulatedTools(Toolset):
    """Reads, an idempotent write, a write that can be looked up afterwards and one that cannot."""

    DEFS = (
        ToolDef("blind", "Changes something that nobody can look up.", NUMBER, "mutating"),
        ToolDef("look", "Looks.", NUMBER, "read"),
        ToolDef("note", "Changes something that can be looked up.", NUMBER, "mutating"),
        ToolDef("put", "Puts something; twice is as once.", NUMBER, "idempotent"),
    )

    def __init__(self, world: World) -> None:
        self.world = world

    def tools(self) -> tuple[ToolDef, ...]:
        return self.DEFS

    async def prepare(self, call: ToolCall) -> tuple[Probe, ...]:
        if self.world.hit("preparation refused"):
            raise ToolError("argument", "not so")
        if call.name != "note":
            return ()
        now = self.world.files.get(_path(call), 0)
        return (Probe(path=_path(call), before=str(now), after=str(now + 1)),)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        world = self.world
        execution = context.key.partition(":")[0]
        if call.kind == "read":
            await anyio.sleep(world.span(0.5))
        else:
            stale = world.ask(execution, context.key)
            await anyio.sleep(world.span(2.0))
            self._changed(call, context, execution, stale=stale)
            await anyio.sleep(world.span(2.0))
        if world.hit("tool failed"):
            kind = world.chance.choice(("not-found", "permission", "timeout", "rate-limit", "conflict", "execution"))
            raise ToolError(kind, "scripted")
        if world.hit("tool broken"):
            raise RuntimeError("a fault of the tool's own")
        return ToolOutput("x" * world.chance.choice((5, 50, 1500)), changed=("a.txt",) if call.kind != "read" else ())

    def _changed(self, call: ToolCall, context: ToolContext, execution: str, *, stale: bool) -> None:
        if call.name == "note":
            self.world.files[_path(call)] = self.world.files.get(_path(call), 0) + 1
        if call.kind == "mutating":
            self.world.change(context.key, execution, began_stale=stale)

    async def probe(self, call: ToolCall, probes: tuple[Probe, ...]) -> Found:
        """Only `note` can be looked up."""
        if not probes:
            return "unknown"
        now = str(self.world.files.get(_path(call), 0))
        return "done" if now == probes[0].after else "not-started" if now == probes[0].before else "unknown"


def _path(call: ToolCall) -> str:
    return f"note-{call.args['n'] if isinstance(call.args, dict) else 0}"


def checking(world: World, accepts: float) -> Callable[..., Any]:
    """A check that pays for itself, announces what it pays, and may break."""

    async def check(ctx: Any, output: Any) -> Any:
        await pay(world, ctx, ctx.execution_id, f"check.{ctx.round}.{ctx.attempt}")
        if world.hit("check broken"):
            raise RuntimeError("the check broke")
        return accept() if world.likely(accepts) else reject(f"not yet, round {ctx.round}")

    return check


def acting(world: World) -> Callable[..., Any]:
    """A function that acts, and pays as it goes."""

    async def act(ctx: Any, feedback: str | None) -> Any:
        for n in range(world.chance.randint(0, 3)):
            await pay(world, ctx, ctx.execution_id, f"act.{ctx.round}.{ctx.attempt}.{n}")
            await ctx.checkpoint()
        if world.hit("act broken"):
            raise RuntimeError("the act broke")
        return {"round": ctx.round}

    return act


async def pay(world: World, ctx: Any, execution: str, receipt: str) -> None:
    """A charge as the guide says to make one: announced, paid, reported."""
    if not await ctx.intend(receipt, CHECK_FEE):
        return
    world.ask(execution, receipt)
    await anyio.sleep(world.span(1.0))
    world.charge(execution, f"{execution}:{receipt}", CHECK_FEE)
    await anyio.sleep(world.span(1.0))
    ctx.report_usage_once(receipt, CHECK_FEE)


# ---- loops and workflows


def loop(world: World, name: str) -> Loop:
    """One by chance."""
    chance = world.chance
    rare = world.likely
    plan = rare(0.15)
    act: Any = acting(world) if rare(0.2) else _agent(world, plan=plan)
    made = Loop(
        name=name,
        act=act,
        evaluate=_evaluate(world),
        max_rounds=chance.randint(1, 4),
        lessons="off",
        plan=plan and isinstance(act, Agent),
        max_turns=chance.randint(2, 20) if rare(0.2) else None,
        max_cost_usd=Decimal(chance.randint(2, 40)) / 100 if rare(0.3) else None,
        max_time_s=float(chance.randint(5, 120)) if rare(0.2) else None,
        max_tokens=chance.randint(500, 20_000) if rare(0.15) else None,
    )
    if rare(0.15):
        made = replace(made, gates={"tidy": _gate(world)})
    return made


def _agent(world: World, *, plan: bool) -> Agent:
    chance, rare = world.chance, world.likely
    turns = chance.randint(1, 10)
    small = rare(0.2)
    model = SimulatedModel(world, "sim:small", turns=turns, window=4_000 if small else 200_000, plans=plan)
    tools: tuple[Toolset, ...] = (SimulatedTools(world), PlanTools()) if plan else (SimulatedTools(world),)
    return Agent(
        model=model,
        tools=tools,
        escalate_to=(SimulatedModel(world, "sim:large", turns=turns),) if rare(0.2) else (),
        escalate_after=1,
        max_turns=chance.randint(2, 12) if rare(0.2) else None,
        max_turns_per_act=chance.randint(2, 6) if rare(0.2) else 60,
        history="fresh" if rare(0.2) else "continue",
    )


def _evaluate(world: World) -> Any:
    what = world.chance.random()
    if what < 0.25:
        return Judge(model=SimulatedModel(world, "sim:judge", turns=2))
    if what < 0.4:
        return Person()
    return checking(world, world.chance.choice((0.3, 0.7, 1.0)))


def _gate(world: World) -> Callable[..., Any]:
    async def gate(ctx: Any, output: Any) -> Any:
        await anyio.sleep(world.span(0.5))
        return accept() if world.likely(0.8) else reject("untidy")

    return gate


def workflow(world: World, name: str) -> Workflow:
    """One by chance: a small graph of everything that a task can be."""
    chance = world.chance
    tasks: list[Any] = []
    for n in range(chance.randint(1, 5)):
        earlier = [task.key for task in tasks]
        after = tuple(chance.sample(earlier, chance.randint(0, min(2, len(earlier)))))
        tasks.append(_task(world, f"t{n}", after))
    capped = Budget(max_cost_usd=Decimal(chance.randint(2, 40)) / 100) if world.likely(0.25) else Budget()
    return Workflow(
        name,
        tasks,
        concurrency=chance.randint(1, 3),
        on_error=chance.choice(("stop", "continue")),
        budget=capped,
        on_quota=OnQuota(max_wait_s=None),
    )


def _task(world: World, key: str, after: tuple[str, ...]) -> Any:
    chance = world.chance
    match chance.randint(0, 5):
        case 0:
            return LoopTask(key, _attempting(world, key), _judging(world, key), chance.randint(1, 4), after=after)
        case 1:
            return RunTask(key, loop(world, f"{key}-loop"), "the task", after=after, retry=Retry(attempts=2))
        case 2:
            return ApprovalTask(key, "Go on?", after=after)
        case 3:
            return PauseTask(key, for_s=float(chance.randint(1, 60)), after=after)
        case 4:
            return Task(key, _asking(world, key), after=after, interaction=Asks())
        case _:
            return Task(key, _performing(world, key), after=after, retry=Retry(attempts=chance.randint(1, 3)))


def _began(world: World, ctx: Any, *phase: Any) -> None:
    """No attempt is begun twice by whoever owns it."""
    process = PROCESS.get()
    assert process is not None
    if not world.is_stale(process, ctx.execution_id):
        key = (ctx.execution_id, ctx.task, ctx.attempt, *phase)
        world.begun[key] += 1
        world.expect(world.begun[key] == 1, f"{key} was begun twice")


def _performing(world: World, key: str) -> Callable[..., Any]:
    async def perform(ctx: Any) -> Any:
        _began(world, ctx)
        for n in range(world.chance.randint(0, 2)):
            await pay(world, ctx, ctx.execution_id, f"{key}.{ctx.attempt}.{n}")
        if world.hit("task broken"):
            raise RuntimeError("the task broke")
        if world.hit("task out of quota"):
            raise QuotaReached("used up", reset_at_us=None if world.likely(0.3) else START_US + 90_000_000)
        return {"key": key}

    return perform


def _asking(world: World, key: str) -> Callable[..., Any]:
    async def ask(ctx: Any) -> Any:
        _began(world, ctx)
        await ctx.interaction.save({"seen": ctx.attempt})
        if ctx.interaction.answer is None:
            await pay(world, ctx, ctx.execution_id, f"{key}.{ctx.attempt}")
            await ctx.interaction.suspend("Which?", choices=("red", "blue"))
        return ctx.interaction.answer.text

    return ask


def _attempting(world: World, key: str) -> Callable[..., Any]:
    async def attempt(ctx: Any, feedback: str | None) -> Any:
        _began(world, ctx, ctx.phase, ctx.round)
        await pay(world, ctx, ctx.execution_id, f"{key}.a{ctx.attempt}")
        if world.hit("task broken"):
            raise RuntimeError("the attempt broke")
        return {"round": ctx.round}

    return attempt


def _judging(world: World, key: str) -> Callable[..., Any]:
    async def check(ctx: Any, candidate: Any) -> Any:
        _began(world, ctx, ctx.phase, ctx.round)
        world.expect(candidate == {"round": ctx.round}, f"{ctx.execution_id} {key}: another candidate was checked")
        await pay(world, ctx, ctx.execution_id, f"{key}.c{ctx.attempt}")
        return accept() if world.likely(0.6) else reject("more")

    return check
