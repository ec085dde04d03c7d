"""The children of one loop: executions of their own in its store, run in its process under its limits and leases (FR-22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import CancelScope

from treadle.core.child_events import ParentSaid
from treadle.core.endings import is_final
from treadle.core.errors import AnswerRefused, InputError, UnknownExecution
from treadle.core.lease_events import Held
from treadle.kernel.actions import Allowance
from treadle.kernel.states import LoopState
from treadle.kernel.steering import Answer, Cancel
from treadle.ports.children import Above, Answers, Children, Rested, Waiting, Word
from treadle.spec.definitions import Agent, Child, Loop

from .forked import inside
from .taking import taken

if TYPE_CHECKING:
    from pathlib import Path

    from .build import Built
    from .runtime import Runtime, Session


@dataclass(frozen=True, slots=True)
class Parent:
    """Who has forked an execution, and what holds for its calls at each of them."""

    execution_id: str
    above: Above

    def said(self, limits: Allowance, used_us: int) -> ParentSaid:
        """What is recorded of it with the child."""
        return ParentSaid(
            forked_by=self.execution_id,
            above=self.above.held(),
            max_turns=limits.turns,
            max_cost_usd=limits.usd,
            max_tokens=limits.tokens,
            max_duration_us=None if limits.us is None else used_us + limits.us,
        )

    @property
    def held(self) -> tuple[Held, ...]:
        """What a new child is told at its start."""
        return self.above.held()


class Family(Children):
    """See the port. `parent` is the execution whose agent forks; `children` are as its definition has them."""

    def __init__(self, runtime: Runtime, parent: str, built: Built, workspace: Path | None) -> None:
        self._runtime, self._parent, self._loop, self._workspace = runtime, parent, built.loop, workspace
        act = built.loop.act
        self._children: Mapping[str, Child] = act.children if isinstance(act, Agent) else {}

    def answers(self, name: str) -> Answers:
        """See the port."""
        return self._children[name].answers if name in self._children else "person"

    async def run(
        self,
        name: str,
        task: str,
        child: str,
        *,
        allowance: Allowance,
        above: Above,
        guards: dict[str, int],
        word: Word | None,
    ) -> Rested:
        """See the port."""
        if name not in self._children:
            raise InputError(f"There is no child {name!r}.")
        known = self._children[name].loop
        loop = replace(
            inside(known, self._loop, self._workspace),
            guards={**guards, **known.guards},
            lessons=known.lessons if self._loop.lessons != "off" else "off",
        )
        parent = Parent(self._parent, above)
        session = await self._opened(loop, task, child, allowance, parent, word)
        if session is not None:
            try:
                await session.run()
            finally:
                with CancelScope(shield=True):
                    await session.close()
        return rested(await self._runtime.state(child))

    async def _opened(
        self, loop: Loop, task: str, child: str, allowance: Allowance, parent: Parent, word: Word | None
    ) -> Session | None:
        """Ready to run; None where it rests as it is."""
        runtime = self._runtime
        if (state := await self._state(child)) is None:
            limited = limited_by(loop, allowance)
            return await runtime.start(limited, task, execution_id=child, parent=parent)
        if word is not None and state.pending is not None and state.pending.id == word.request_id:
            said = Answer(request_id=word.request_id, decision=word.decision, text=word.text, actor=word.actor)
            try:
                state = await runtime.steer(child, said, routed=True)
            except AnswerRefused:
                if not word.actor.startswith("agent "):  # a person's word was checked when it was given
                    raise
        from .runtime import Reopening, resting, retuned

        said_limits = parent.said(_own(loop, allowance, state), state.total.us)
        how = Reopening(adopt=True, actor="parent", guards=retuned(state, loop.guards), parent_said=said_limits)
        if resting(state, how):
            return None
        return await taken(partial(runtime.resume, child, loop, parent=parent), how)

    async def _state(self, child: str) -> LoopState | None:
        try:
            row = await self._runtime.ledger.row(child)
        except UnknownExecution:
            return None
        return await self._runtime.state(child) if row.execution_id == child and row.head else None

    async def state(self, child: str) -> Rested | None:
        """See the port."""
        state = await self._state(child)
        return None if state is None else rested(state)

    async def end(self, child: str, why: str) -> Rested | None:
        """See the port."""
        return await ended(self._runtime, child, why)


async def ended(runtime: Runtime, child: str, why: str) -> Rested | None:
    """Cancels a child, and those below it with it; how it rests. None where it was never started."""
    try:
        row = await runtime.ledger.row(child)
    except UnknownExecution:
        return None
    if row.execution_id != child or not row.head:
        return None
    state = await runtime.state(child)
    if not is_final(state.status, state.code):
        state = await runtime.steer(child, Cancel(actor="parent", reason=why))
    return rested(state)


def limited_by(loop: Loop, allowance: Allowance) -> Loop:
    """The child's own limits, or what its parent can spare where that is less."""
    seconds = None if allowance.us is None else max(allowance.us, 1) / 1e6
    return replace(
        loop,
        max_turns=_least(loop.max_turns, allowance.turns),
        max_cost_usd=_least(loop.max_cost_usd, allowance.usd),
        max_tokens=_least(loop.max_tokens, allowance.tokens),
        max_time_s=_least(loop.max_time_s, seconds),
    )


def _own(loop: Loop, allowance: Allowance, state: LoopState) -> Allowance:
    """The same of a child that goes on."""
    us = None if loop.max_time_s is None else max(0, int(loop.max_time_s * 1e6) - state.total.us)
    return Allowance(
        turns=_least(loop.max_turns, allowance.turns),
        usd=_least(loop.max_cost_usd, allowance.usd),
        tokens=_least(loop.max_tokens, allowance.tokens),
        us=_least(us, allowance.us),
    )


def _least(own: Any, given: Any) -> Any:
    return own if given is None else given if own is None else min(own, given)


def rested(state: LoopState) -> Rested:
    """How a loop rests, as its parent sees it."""
    pending, scope = state.pending, state.scope
    here = scope is None or scope.closed == "merged"
    changes = [one.partition(" ") for one in state.carried.effects if one.startswith(("fs.write ", "fs.delete "))]
    return Rested(
        status=state.status,
        code=state.code,
        evidence=state.evidence or (pending.prompt if pending is not None else ""),
        output_json=state.last_output_json or "null",
        rounds=state.round,
        turns=state.total.turns,
        usage=state.total.usage,
        in_doubt=state.total.in_doubt,
        waiting=None
        if pending is None
        else Waiting(pending.id, pending.kind, pending.prompt, pending.choices, pending.until_us),
        changed=tuple(path for _, _, path in changes if "*" not in path) if here and state.changed is not False else (),
        effects=state.carried.effects,
    )
