"""Performs the actions of one loop: hands each to the effect that knows how."""

from __future__ import annotations

from contextlib import AsyncExitStack

from treadle.core.errors import ScopeError
from treadle.core.events import BaselineTaken, Event, Judged, WorkspaceChanged, WorkspaceMeasured
from treadle.kernel import actions as act
from treadle.kernel.states import LoopState
from treadle.ports.callback import Actor, Check
from treadle.ports.clock import Clock, CrashPoints
from treadle.tools.process import kill_recorded

from .acceptance import ScopeEffect
from .changes import changed_since
from .children import ChildEffect
from .host import Host
from .lessons import LessonEffect
from .map import MapEffect
from .model import ModelEffect
from .parts import AgentParts, LoopParts
from .rounds import RoundEffect
from .tools import ToolEffect, output_room


class LoopEffects:
    """The I/O of one loop."""

    def __init__(self, parts: LoopParts, clock: Clock, points: CrashPoints) -> None:
        self.parts, self.clock, self.points = parts, clock, points
        agents = {"act": parts.act, "evaluate": parts.evaluate}
        self.models = {
            phase: ModelEffect(agent, parts.redact, parts.redact_known, clock, points)
            for phase, agent in agents.items()
            if isinstance(agent, AgentParts)
        }
        self.tools = {
            phase: ToolEffect(
                agent.toolset,
                parts.redact,
                output_room(agent.models(), parts.output_limit),
                clock,
                points,
                agent.ceiling,
                parts.above if phase == "act" else None,
            )
            for phase, agent in agents.items()
            if isinstance(agent, AgentParts)
        }
        self.map = (
            MapEffect(parts.act, parts.scope, parts.redact, parts.map_cache, clock)
            if isinstance(parts.act, AgentParts)
            else None
        )
        self.children = ChildEffect(parts.children, parts.redact, parts.output_limit, clock, points)
        self.scopes = ScopeEffect(parts.isolated, points)
        self.lessons = LessonEffect(parts.lessons, parts.redact, clock, points)
        self.rounds = RoundEffect(
            parts.act if isinstance(parts.act, Actor) else None,
            parts.evaluate if isinstance(parts.evaluate, Check) else None,
            parts.scope,
            clock,
            points,
        )

    async def perform(self, action: act.Action, host: Host) -> Event:
        """The one outcome of an action. LedgerError passes; what tool machinery raises passes, too."""
        phase = host.state.phase
        match action:
            case act.Perceive() if self.map is not None:
                return await self.map.perceive(action)
            case act.IntendModel() | act.CallModel() | act.IntendCompaction() | act.Compact():
                return await self.models[phase].perform(action, host)
            case act.IntendTool() | act.RunTools() | act.ProbeTool():
                return await self.tools[phase].perform(action, host)
            case act.FinishAct():
                return await self.rounds.finish(action, host)
            case act.RunActor():
                return await self.rounds.act(action, host)
            case act.RunCheck() | act.Conclude() | act.CloseScope():
                return await self._ended(action, host)
            case act.RecallLessons() | act.RunGates() | act.VoteLessons() | act.DistilLessons():
                return await self.lessons.perform(action, host)
            case act.RunChild() | act.EndChild():
                return await self.children.perform(action, host)
            case act.TakeBaseline():
                return await self._baseline(action, host)
            case act.MeasureWorkspace():
                return await self._measured(action)
            case _:
                raise AssertionError(f"no effect performs {action}")

    async def _ended(self, action: act.RunCheck | act.Conclude | act.CloseScope, host: Host) -> Event:
        match action:
            case act.RunCheck():
                return await self.scopes.concluded(await self.rounds.evaluate(action, host), host)
            case act.Conclude():
                return await self.scopes.concluded(Judged(accept=True, feedback=action.feedback, us=0), host)
            case act.CloseScope():
                return await self.scopes.close(host.state)

    async def _baseline(self, action: act.TakeBaseline, host: Host) -> BaselineTaken:
        if self.parts.scope is None:
            return BaselineTaken(tree="", note="there is no workspace")
        if action.onto:
            await self.scopes.bring_in(action.onto)
        self.points.reach("before-baseline")
        tree, note = await self.parts.scope.baseline(host.execution_id, action.round)
        self.points.reach("after-baseline")
        return BaselineTaken(tree=tree, note=note)

    async def _measured(self, action: act.MeasureWorkspace) -> WorkspaceMeasured:
        """The workspace as a tree; where it cannot be looked at, the guard decides without."""
        if self.parts.scope is None:
            return WorkspaceMeasured(tree="", note="there is no workspace")
        try:
            return WorkspaceMeasured(tree=(await self.parts.scope.receipt(action.tree)).head)
        except ScopeError as error:
            return WorkspaceMeasured(tree="", note=str(error))

    async def clean_up(self, state: LoopState) -> None:
        """Children of a process that died are stopped before anything else runs (AG-23)."""
        for pgid, birth in state.processes:
            kill_recorded(pgid, birth)

    async def workspace_changed(self, state: LoopState, since_us: int) -> WorkspaceChanged | None:
        """What somebody changed in the workspace after the last record (AG-28)."""
        scope = self.parts.scope
        if scope is None or not state.baseline or state.accepted:
            return None
        receipt = await scope.receipt(state.baseline)
        paths = changed_since(scope.root, receipt.paths, since_us)
        return WorkspaceChanged(paths=paths) if paths else None

    async def open(self) -> None:
        """Connects what the tools need. ConfigurationError where it is not there; nothing is left open then."""
        async with AsyncExitStack() as stack:
            for agent in (self.parts.act, self.parts.evaluate):
                if isinstance(agent, AgentParts):
                    await agent.toolset.open()
                    stack.push_async_callback(agent.toolset.close)
            stack.pop_all()

    async def close(self) -> None:
        """Gives connections and children back."""
        for agent in (self.parts.act, self.parts.evaluate):
            if isinstance(agent, AgentParts):
                await agent.toolset.close()
                for model in agent.models():
                    await model.close()
