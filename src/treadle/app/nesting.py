"""Executions inside executions: a Loop or a Workflow that a task's callback runs, in the same store and process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from treadle.core.endings import is_final
from treadle.core.errors import DefinitionError, UnknownExecution
from treadle.core.workflow_events import Question, QuestionKind
from treadle.effects.candidates import let_go
from treadle.kernel.states import LoopState
from treadle.kernel.steering import Answer as Answering
from treadle.kernel.steering import Cancel, Extend
from treadle.kernel.workflow_budget import standing
from treadle.kernel.workflow_states import WorkflowState
from treadle.ports.speculation import Candidate, Select, Speculated, Validate
from treadle.ports.task import Answer, ChildState, Nest, TaskContext
from treadle.spec.definitions import Loop
from treadle.spec.workflows import Budget, Workflow

from .build import Built, build
from .runtime import Reopening, Runtime, resting, retuned
from .speculation import Speculation, folder_of
from .taking import taken
from .workflow_build import provider_fault

if TYPE_CHECKING:
    from .workflow_runtime import WorkflowRuntime

NEXT_NAME = "0"  # appended where an execution was killed before its first record


class Nesting(Nest):
    """Runs children for the executions of one workflow runtime."""

    def __init__(
        self,
        home: WorkflowRuntime,
        guards: Mapping[str, int] | None = None,
        quota_wait_s: float | None = None,
        *,
        adopt: bool = False,
    ) -> None:
        self.home, self.guards, self.adopt = home, guards or {}, adopt
        self.loops = Runtime(
            home.ledger,
            home.settings,
            clock=home.clock,
            points=home.points,
            observers=tuple(one for one in home.observers if one.hears_children),
            quota_wait_s=quota_wait_s,
        )

    def under(self, guards: Mapping[str, int], quota_wait_s: float | None, *, adopt: bool) -> Nesting:
        """For the children of a workflow with these thresholds of guards: what a child says itself comes on top.

        `quota_wait_s`: how long its loops wait in this process for a known reset, as it does itself. `adopt`: a person has taken
        its changed definition on, and with it those of its children.
        """
        return Nesting(self.home, guards, quota_wait_s, adopt=adopt)

    def check(self, what: Any, *, capped: bool) -> Decimal | None:
        """See the port."""
        if isinstance(what, Loop):
            if capped and (unpriced := self._built(what).unpriced):
                raise DefinitionError(f"The price of {unpriced} is unknown, and the workflow has max_cost_usd.")
            return what.max_cost_usd
        if isinstance(what, Workflow):
            return what.budget.max_cost_usd
        raise DefinitionError(f"Only a Loop or a Workflow can be run, not {what!r:.100}.")

    def _built(self, loop: Loop) -> Built:
        return build(loop, self.home.settings, self.home.clock, store=self.home.ledger.url)

    async def run(
        self,
        what: Any,
        input: Any,
        child: str,
        *,
        answers: tuple[tuple[str, Answer], ...],
        max_cost_usd: Decimal | None,
        max_tokens: int | None,
        retry: bool,
    ) -> ChildState:
        """See the port."""
        name, kind = await self._named(child)
        answering = [Answering(request_id=r, decision=a.decision, text=a.text, actor=a.actor) for r, a in answers]
        if isinstance(what, Loop):
            capped = replace(
                what,
                guards={**self.guards, **what.guards},
                max_cost_usd=_least(what.max_cost_usd, max_cost_usd),
                max_tokens=_least(what.max_tokens, max_tokens),
            )
            await self._run_loop(capped, input, name, answering, new=not kind, retry=retry)
        else:
            budget = replace(
                what.budget,
                max_cost_usd=_least(what.budget.max_cost_usd, max_cost_usd),
                max_tokens=_least(what.budget.max_tokens, max_tokens),
            )
            inherited = replace(what, budget=budget, guards={**self.guards, **what.guards})
            await self._run_workflow(inherited, input, name, answering, new=not kind, retry=retry)
        found = await self.state(child)
        assert found is not None
        return found

    async def _named(self, child: str) -> tuple[str, str]:
        """(id, kind) of the child; no kind where it is still to be started."""
        name = child
        while True:
            try:
                row = await self.home.ledger.row(name)
            except UnknownExecution:
                return name, ""
            if row.execution_id != name:  # only a prefix of it
                return name, ""
            if row.head:
                return name, row.kind
            name += NEXT_NAME

    async def _run_loop(
        self, loop: Loop, input: Any, name: str, answers: list[Answering], *, new: bool, retry: bool
    ) -> None:
        if new:
            session = await self.loops.start(loop, input, execution_id=name)
        else:
            state = await self.loops.state(name)
            for answer in answers:
                if state.pending is not None and state.pending.id == answer.request_id:
                    state = await self.loops.steer(name, answer)
            if (extend := _loop_extension(state, loop)) is not None:
                state = await self.loops.steer(name, extend)
            how = Reopening(
                retry_incomplete=retry,
                adopt=self.adopt,
                actor="parent",
                guards=retuned(state, loop.guards),
                price=state.code == "usage-unavailable" and not self._built(loop).unpriced,
            )
            if resting(state, how):
                return
            session = await taken(partial(self.loops.resume, name, loop), how)
        try:
            await session.run()
        finally:
            with anyio.CancelScope(shield=True):
                await session.close()

    async def _run_workflow(
        self, workflow: Workflow, input: Any, name: str, answers: list[Answering], *, new: bool, retry: bool
    ) -> None:
        home = self.home
        if new:
            session = await home.start(workflow, input, execution_id=name)
        else:
            state = await home.state(name)
            asked = {question.id for key in state.asking for question in state.active[key].questions}
            if given := [answer for answer in answers if answer.request_id in asked]:
                state = await home.steer(name, given)
            if (extend := _workflow_extension(state, workflow.budget)) is not None:
                state = await home.steer(name, [extend])
            how = Reopening(retry_incomplete=retry, adopt=self.adopt, actor="parent")
            if home.resting(state, how, priced=workflow.price is not None):
                return
            session = await taken(partial(home.resume, name, workflow), how)
        try:
            await session.run()
        finally:
            with anyio.CancelScope(shield=True):
                await session.close()

    async def speculate(
        self,
        ctx: TaskContext,
        candidates: Sequence[Candidate | Any],
        validate: Validate,
        *,
        select: Select,
        workspace: str | Path | None,
        input: Any,
        key: str,
        child: str,
    ) -> Speculated:
        """See the port."""
        home = self.home
        speculation = Speculation(
            self,
            home.ledger,
            home.settings,
            candidates,
            validate,
            select=select,
            workspace=workspace,
            child=(await self._named(child))[0],
            kept=child,
            fault=provider_fault(home.clock.wall_us),
            redact=home.redact,
            points=home.points,
        )
        return await speculation.run(ctx, input, key)

    async def state(self, child: str) -> ChildState | None:
        """See the port."""
        name, kind = await self._named(child)
        if not kind:
            return None
        if kind == "loop":
            return _of_loop(await self.loops.state(name))
        state = await self.home.state(name)
        return _of_workflow(state, await self.home.outputs(name, state))

    async def cancel(self, child: str, actor: str) -> None:
        """See the port."""
        name, kind = await self._named(child)
        if not kind:
            return
        if kind == "loop":
            state = await self.loops.state(name)
            if not is_final(state.status, state.code):
                await self.loops.steer(name, Cancel(actor=actor))
        elif not is_final((found := await self.home.state(name)).status, found.code):
            await self.home.steer(name, [Cancel(actor=actor)])
        await let_go(folder_of(self.home.settings, child), self.home.settings.state_dir / "trees")


def _least(own: Any, given: Any) -> Any:
    return own if given is None else given if own is None else min(own, given)


def _loop_extension(state: LoopState, loop: Loop) -> Extend | None:
    """What a child that its parent's budget had stopped may use now."""
    limits = state.settings.limits
    usd, tokens = _more(limits.max_cost_usd, loop.max_cost_usd), _more(limits.max_tokens, loop.max_tokens)
    if is_final(state.status, state.code) or (usd is None and tokens is None):
        return None
    return Extend(actor="parent", max_cost_usd=usd, max_tokens=tokens)


def _workflow_extension(state: WorkflowState, budget: Budget) -> Extend | None:
    limits = state.settings.budget
    usd, tokens = _more(limits.max_cost_usd, budget.max_cost_usd), _more(limits.max_tokens, budget.max_tokens)
    if is_final(state.status, state.code) or (usd is None and tokens is None):
        return None
    return Extend(actor="parent", max_cost_usd=usd, max_tokens=tokens)


def _more(old: Any, new: Any) -> Any:
    return new if old is not None and new is not None and new > old else None


def _of_loop(state: LoopState) -> ChildState:
    pending = state.pending
    asked: tuple[Question, ...] = ()
    if pending is not None and pending.kind != "quota":
        kind: QuestionKind = pending.kind
        asked = (Question(id=pending.id, kind=kind, prompt=pending.prompt, choices=pending.choices),)
    return ChildState(
        state.status,
        state.code,
        pending.prompt if pending is not None else state.evidence,
        msgspec.json.decode(state.last_output_json) if state.last_output_json else None,
        state.total.usage,
        state.total.in_doubt,
        asked,
        None if pending is None else pending.until_us,
    )


def _of_workflow(state: WorkflowState, outputs: dict[str, Any]) -> ChildState:
    status, code = standing(state)
    asked = tuple(question for key in state.asking for question in state.active[key].questions)
    return ChildState(
        status,
        code,
        state.quota.message if state.quota is not None else state.evidence,
        outputs,
        state.total.usage,
        state.total.in_doubt,
        asked if status == "waiting-input" else (),
        None if state.quota is None else state.quota.reset_at_us,
    )
