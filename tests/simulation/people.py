"""What people do meanwhile: start, answer, cancel, pause, extend, go on; from processes of their own, and not always sensibly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from treadle.app.claiming import standing as goes_on
from treadle.app.definition import defined, workflow_of
from treadle.app.listing import document_of, listing, state_of
from treadle.app.runtime import Reopening, Runtime, resting
from treadle.app.workflow_runtime import WorkflowRuntime, workflows_of
from treadle.core.endings import is_final
from treadle.core.errors import InputError, LedgerError
from treadle.kernel.states import LoopState
from treadle.kernel.steering import Answer, Cancel, Compact, Extend, Pause, Pin, Steering
from treadle.spec.definitions import Loop
from treadle.spec.workflows import Budget

from .registry import DEFINITIONS
from .world import World


class Person:
    """At one terminal."""

    def __init__(self, world: World, runtime: Runtime) -> None:
        self.world, self.runtime = world, runtime
        self.workflows: WorkflowRuntime = workflows_of(runtime)

    async def start(self, name: str) -> None:
        """`treadle run`: starts it and drives it until it rests."""
        what, definition = DEFINITIONS[name], f"simulation.registry:{name}"
        runtime = self.runtime if isinstance(what, Loop) else self.workflows
        session = await runtime.start(what, "the task", definition=definition)
        try:
            await session.run()
        finally:
            await session.close()

    async def meddle(self) -> None:
        """Does something to some execution; what is refused is refused by a typed error."""
        found = await self._open()
        if not found:
            return
        entry = self.world.chance.choice(found)
        name = entry["execution_id"]
        try:
            await self._one(name, entry)
        except InputError as refusal:
            self.world.note("refused", type(refusal).__name__)
        except LedgerError as error:
            self.world.note("store failed", type(error).__name__)

    async def _open(self) -> list[dict[str, Any]]:
        """Executions that have not ended, but for those inside others."""
        rows = await listing(self.runtime.ledger)
        return [
            row.document
            for row in rows
            if not row.parent and not is_final(row.document["status"], row.document["code"])
        ]

    async def _one(self, name: str, entry: dict[str, Any]) -> None:
        chance, is_loop = self.world.chance, entry.get("kind") != "workflow"
        if entry["pending"] is not None and entry["pending"]["kind"] != "quota" and chance.random() < 0.8:
            await self._answer(name, entry["pending"], is_loop=is_loop)
            return
        choices: list[Steering] = [Pin(actor="ada"), Compact(actor="ada", depth="auto"), Pause(actor="ada")]
        choices += [Extend(actor="ada", max_rounds=9), Cancel(actor="ada")]
        one = chance.choice(choices)
        if isinstance(one, Cancel) and chance.random() < 0.7:
            return
        self.world.note("person", type(one).__name__, name)
        if is_loop:
            await self.runtime.steer(name, one)
        elif isinstance(one, Cancel):
            await self.workflows.steer(name, [one])

    async def _answer(self, name: str, pending: dict[str, Any], *, is_loop: bool, sensible: bool = False) -> None:
        chance = self.world.chance
        request_id, kind = pending["request_id"], pending["kind"]
        if not sensible and chance.random() < 0.2:
            request_id = "r0.none"
        text, decision = (pending["choices"] or ["blue"])[0], "answer"
        if kind != "question":
            decision = "approve" if sensible or chance.random() < 0.7 else "reject"
            text = "" if decision == "approve" else "not so"
        answer = Answer(request_id=request_id, decision=decision, text=text, actor="ada")  # type: ignore[arg-type]
        self.world.note("person", decision, name, request_id)
        if is_loop:
            await self.runtime.steer(name, answer)
        else:
            await self.workflows.steer(name, [answer])

    # ---- when all faults are over: everything must come to its end

    async def settle(self) -> bool:
        """One look at everything; whether nothing is left that a person, a timer or a worker could still do."""
        left = False
        for entry in await self._open():
            name = entry["execution_id"]
            if entry["pending"] is not None and entry["pending"]["kind"] != "quota":
                await self._tried(self._answer(name, entry["pending"], is_loop="kind" not in entry, sensible=True))
                left = True
            elif goes_on(entry) == "goes on":
                left = True  # a worker's
            else:
                left = await self._go_on(name) or left
        return not left

    async def _tried(self, doing: Awaitable[Any]) -> None:
        try:
            await doing
        except (InputError, LedgerError) as refusal:
            self.world.note("refused", type(refusal).__name__, refusal)

    async def _go_on(self, name: str) -> bool:
        """`treadle resume`, once a failure; whether it did."""
        runtime = self.runtime
        row = await runtime.ledger.row(name)
        if row.owner_alive:
            return True
        state = await state_of(runtime.ledger, row)
        again = self.world.again.get(name, 0)
        if state.status != "paused" and again >= 3:
            return False
        self.world.again[name] = again + 1
        how = Reopening(retry_incomplete=True, actor="ada")
        self.world.note("person", "resumes", name, state.status, state.code)
        session: Any
        if isinstance(state, LoopState):
            if state.status == "stopped":
                await self._tried(runtime.steer(name, extension(state)))
                return True
            if resting(state, how):
                return False
            session = await runtime.resume(name, defined(state.definition, None)[0], how)
        else:
            if state.status == "stopped":
                cap = state.settings.budget.max_cost_usd
                await self._tried(self.workflows.extend(name, Budget(max_cost_usd=(cap or 1) * 2), actor="ada"))
                return True
            if self.workflows.resting(state, how):
                return False
            session = await self.workflows.resume(name, workflow_of(state.definition, name), how)
        try:
            await session.run()
        finally:
            await session.close()
        return True


def extension(state: LoopState) -> Extend:
    """Twice of every limit that it has."""
    limits, turns = state.settings.limits, state.settings.act_policy.max_turns
    duration = limits.max_duration_us
    return Extend(
        actor="ada",
        max_turns=turns and turns * 2,
        max_cost_usd=limits.max_cost_usd and limits.max_cost_usd * 2,
        max_duration_us=duration and max(duration, state.total.us) * 2,
        max_tokens=limits.max_tokens and limits.max_tokens * 4,
    )


def describe(name: str, state: Any) -> str:
    """For a report."""
    entry = document_of(name, state)
    return f"{name}: {entry['status']}, {entry['code']}, pending {entry['pending']}"


Doing = Callable[[], Awaitable[None]]
