"""A loop machine driven by hand: no I/O, no clock. `play` performs its actions with scripted outcomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from treadle.core import events as ev
from treadle.core.messages import ModelResponded, ToolCall, ToolResult, ToolsFinished
from treadle.core.settings import LoopSettings
from treadle.core.usage import Usage
from treadle.kernel import actions as act
from treadle.kernel.loop import advance, next_actions
from treadle.kernel.states import LoopState

FEE = Usage(input_tokens=10, output_tokens=5, requests=1, cost_usd=Decimal("0.01"))
RESERVE = Usage(input_tokens=100, output_tokens=50, requests=1, cost_usd=Decimal("0.05"))


def call(name: str, kind: str = "read", id: str = "", **args: Any) -> ToolCall:
    return ToolCall(id=id or f"{name}-id", name=name, args=args, kind=kind, problem="no" if kind == "invalid" else "")


def finish(summary: str = "done") -> ToolCall:
    return call("finish", "finish", summary=summary)


def verdict(accept: bool, feedback: str = "") -> ToolCall:
    return call("verdict", "verdict", accept=accept, feedback=feedback)


def settings(**changes: Any) -> LoopSettings:
    return LoopSettings(**({"loop_id": "test", "role_key": "test.act", "baseline": False} | changes))


def started(chosen: LoopSettings | None = None, task: str = "the task") -> ev.LoopStarted:
    return ev.LoopStarted(
        settings=chosen or settings(),
        step_exec_id="x1",
        input_json=f'"{task}"',
        task=task,
        fingerprint={"check": "1"},
        at_us=1,
    )


Turn = list[ToolCall] | str
OK = "ok"


@dataclass
class Machine:
    """The state, all events so far, and what the outside answers."""

    turns: list[Turn] = field(default_factory=list)  # calls, or text without a call, for each response
    verdicts: list[Any] = field(default_factory=list)  # True, or feedback, for each check
    state: LoopState = field(default_factory=LoopState)
    events: list[Any] = field(default_factory=list)
    usage: Usage = FEE
    us: int = 1000
    changed: tuple[str, ...] = ()

    def emit(self, *events: Any) -> Machine:
        for event in events:
            self.state = advance(self.state, event)
            self.events.append(event)
        return self

    def start(self, **changes: Any) -> Machine:
        return self.emit(started(settings(**changes)))

    def action(self) -> act.Action:
        (action,) = next_actions(self.state)
        return action

    def to(self, *kinds: type[act.Action]) -> act.Action:
        """Plays on until the next action is one of these."""
        for _ in range(5000):
            action = self.action()
            if isinstance(action, kinds):
                return action
            assert not isinstance(action, act.Finish | act.Wait), f"rests at {action} in {self.state.status}"
            self.perform(action)
        raise AssertionError("does not get there")

    def rest(self) -> LoopState:
        """Plays on until it rests."""
        self.to(act.Finish, act.Wait)
        return self.state

    def perform(self, action: act.Action) -> None:
        self.emit(self.outcome(action))

    def outcome(self, action: act.Action) -> Any:
        leaf = self.state.agent.leaf
        match action:
            case act.Record():
                return action.event
            case act.TakeBaseline() | act.MeasureWorkspace():
                taken = isinstance(action, act.TakeBaseline)
                return ev.BaselineTaken(tree="t1") if taken else ev.WorkspaceMeasured(tree="t1")
            case act.IntendModel() | act.IntendCompaction():
                return intent(action)
            case act.CallModel():
                turn = self.turns.pop(0)
                calls = () if isinstance(turn, str) else tuple(turn)
                text = turn if isinstance(turn, str) else "working"
                return ModelResponded(
                    parent=leaf or 0,
                    call=action.call,
                    text=text,
                    calls=calls,
                    usage=self.usage,
                    finish="stop",
                    us=self.us,
                )
            case act.IntendTool():
                return ev.ToolIntended(call=action.key)
            case act.RunTools():
                return results(self.state, action.calls, us=self.us)
            case act.ProbeTool():
                return ev.ToolProbed(call=action.key, found="unknown")
            case act.FinishAct():
                if action.failure:
                    return ev.ActFailed(
                        reason=action.failure,
                        output_json=action.output_json,
                        scope_receipt_json="null",
                        changed=self.changed,
                    )
                return ev.ActFinished(output_json=action.output_json, scope_receipt_json="null", changed=self.changed)
            case act.RunActor():
                return ev.ActFinished(output_json='"acted"', scope_receipt_json="null", changed=self.changed, us=5)
            case act.RunCheck():
                answer = self.verdicts.pop(0)
                return ev.Judged(accept=answer is True, feedback="" if answer is True else answer, us=self.us)
        raise AssertionError(action)

    def seen(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def intent(action: act.IntendModel | act.IntendCompaction) -> Any:
    """A request is intended; there is never anything to compact."""
    if isinstance(action, act.IntendModel):
        return ev.ModelIntended(call=action.call, reserve=RESERVE, request="d", model="test:m")
    return ev.CompactionFailed(call=action.call, depth=action.depth, by=action.by, reason="nothing")


def results(state: LoopState, calls: Iterable[ToolCall], status: str = OK, us: int = 0) -> ToolsFinished:
    return ToolsFinished(
        parent=state.agent.leaf or 0,
        results=tuple(ToolResult(id=c.id, content=f"{c.name} {status}", status=status) for c in calls),
        us=us,
    )


def refold(events: Iterable[Any]) -> LoopState:
    state = LoopState()
    for event in events:
        state = advance(state, event)
    return state
