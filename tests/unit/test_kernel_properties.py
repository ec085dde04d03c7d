"""Whatever the outside does, the machine keeps its promises: driven by Hypothesis, with no I/O at all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.machine import FEE, RESERVE, Machine, call, finish, refold, results, verdict
from support.machine import settings as loop_settings
from treadle.core import events as ev
from treadle.core.codec import decode, encode
from treadle.core.messages import ModelResponded, Prompted, ToolsFinished
from treadle.core.settings import AgentSettings, Guards, Limits, LoopSettings, Policy
from treadle.core.usage import NO_USAGE
from treadle.kernel import actions as act
from treadle.kernel.continuation import frame_of, identity_of
from treadle.kernel.frame import dump_frame, load_frame
from treadle.kernel.snapshot import SNAPSHOT_VERSION, freeze, thaw

KINDS = ("read", "read", "mutating", "idempotent", "invalid", "ask", "finish", "verdict")
CALL = st.builds(
    lambda kind, n: call(kind, kind, f"{kind}-{n}", accept=True), st.sampled_from(KINDS), st.integers(0, 3)
)
TURN = st.one_of(st.just("words"), st.lists(CALL, min_size=1, max_size=4), st.just([finish()]))


@st.composite
def loops(draw: st.DrawFn) -> LoopSettings:
    own = AgentSettings(
        max_turns_per_act=draw(st.integers(1, 8)),
        on_invalid=draw(st.sampled_from(["stop_batch", "run_valid"])),
        history=draw(st.sampled_from(["continue", "fresh"])),
        ladder=draw(st.sampled_from([(), ("test:m", "test:n", "test:o")])),
        escalate_after=draw(st.integers(0, 2)),
        provider_attempts=draw(st.integers(1, 3)),
    )
    return loop_settings(
        max_rounds=draw(st.integers(1, 4)),
        act=draw(st.sampled_from(["agent", "agent", "callback"])),
        evaluate=draw(st.sampled_from(["agent", "callback", "person"])),
        act_agent=own,
        evaluate_agent=own,
        act_policy=draw(st.builds(Policy, max_turns=st.none() | st.integers(1, 9))),
        limits=draw(
            st.builds(
                Limits,
                max_turns=st.none() | st.integers(1, 20),
                max_cost_usd=st.none() | st.sampled_from([Decimal("0.05"), Decimal("0.2")]),
            )
        ),
        baseline=draw(st.booleans()),
        must_change=draw(st.booleans()),
        guards=draw(
            st.builds(Guards, recovery=st.integers(1, 4), repeat=st.integers(0, 3), read_only=st.integers(1, 4))
        ),
    )


class Outside:
    """An outside that answers as it likes, fails, dies and comes back; it keeps its own bill."""

    def __init__(self, draw: Any, machine: Machine) -> None:
        self.draw, self.machine = draw, machine
        self.requests = 0

    def step(self) -> bool:
        """One action performed somehow; False when there is nothing left to do."""
        machine = self.machine
        action = machine.action()
        if isinstance(action, act.Finish):
            return self.go_on(machine.state.status)
        if isinstance(action, act.Wait):
            self.wait_over(action)
            return True
        in_flight = not isinstance(action, act.Record)
        if in_flight and self.draw(st.integers(0, 9)) == 0:
            self.die(action)
            return True
        machine.emit(self.outcome(action))
        return True

    def go_on(self, status: str) -> bool:
        if self.draw(st.booleans()):
            return False
        if status == "failed" and self.machine.state.code in ("thrash", "provider", "failed", "timeout"):
            self.machine.emit(ev.Reopened(actor="ada"))
            return True
        if status == "stopped":
            self.machine.emit(ev.Extended(actor="ada", max_turns=40, max_cost_usd=Decimal(9)))
            return True
        return False

    def die(self, action: act.Action) -> None:
        if isinstance(action, act.CallModel):
            self.requests += self.draw(st.integers(0, 1))
        if isinstance(action, act.RunCheck | act.RunActor) and self.draw(st.booleans()):
            self.machine.emit(ev.ChargeIntended(receipt="r", reserve=RESERVE))
            self.requests += self.draw(st.integers(0, 1))
        self.machine.emit(ev.Interrupted(epoch=self.machine.state.epoch + 1, reason="taken-over"))

    def wait_over(self, action: act.Wait) -> None:
        machine = self.machine
        if action.kind in ("quota", "back-off"):
            machine.emit(ev.WaitEnded(at_us=9))
            return
        decision = "answer" if action.kind == "question" else self.draw(st.sampled_from(["approve", "reject"]))
        machine.emit(ev.Answered(id=action.id, decision=decision, text="t", actor="ada", at_us=9))

    def outcome(self, action: act.Action) -> Any:
        machine = self.machine
        match action:
            case act.CallModel():
                if self.draw(st.integers(0, 6)) == 0:
                    kind = self.draw(st.sampled_from(["overload", "quota", "auth", "network"]))
                    charged = kind == "network" and self.draw(st.booleans())
                    self.requests += charged
                    at = 5 if kind in ("overload", "network", "quota") else None
                    return ev.ModelFailed(
                        call=action.call, kind=kind, message="m", us=1, maybe_charged=kind == "network", retry_at_us=at
                    )
                self.requests += 1
                turn = self.draw(TURN)
                if machine.state.phase == "evaluate" and self.draw(st.booleans()):
                    turn = [verdict(self.draw(st.booleans()), "again")]
                machine.turns = [turn]
            case act.RunTools():
                status = self.draw(st.sampled_from(["ok", "ok", "error"]))
                return results(machine.state, action.calls, status, us=3)
            case act.RunCheck():
                machine.verdicts = [self.draw(st.sampled_from([True, "again", "again"]))]
            case act.ProbeTool():
                return ev.ToolProbed(
                    call=action.key, found=self.draw(st.sampled_from(["done", "not-started", "unknown"]))
                )
        return machine.outcome(action)


def check_accounts(machine: Machine, outside: Outside) -> None:
    total, own = machine.state.total, machine.state.act
    counted = total.usage.requests
    assert counted <= outside.requests <= counted + total.in_doubt.requests
    assert counted == len(machine.seen(ModelResponded))
    assert total.turns >= own.turns
    assert total.us >= own.us
    assert total.usage.cost_usd == counted * FEE.cost_usd


def check_pairs(machine: Machine) -> None:
    """On every branch each call is answered, in order, before the next response (AG-21)."""
    message = {
        i: e for i, e in enumerate(machine.events, 1) if isinstance(e, Prompted | ModelResponded | ToolsFinished)
    }
    for leaf, event in message.items():
        if not isinstance(event, ModelResponded):
            continue
        answered: list[str] = []
        at = event.parent
        while isinstance(message[at], ToolsFinished):
            answered = [*(r.id for r in message[at].results), *answered]
            at = message[at].parent
        while not isinstance(message[at], ModelResponded) and message[at].parent is not None:
            at = message[at].parent
            assert not isinstance(message[at], ToolsFinished) or answered == []
            if isinstance(message[at], ToolsFinished):
                break
        if answered and isinstance(message[at], ModelResponded):
            assert answered == [c.id for c in message[at].calls], leaf


@pytest.mark.req("FR-04", "FR-08", "FR-24", "LG-01", "LG-03", "LG-04", "AG-21")
@given(data=st.data(), chosen=loops())
def test_accounts_pairs_and_frames_hold_whatever_happens(data: st.DataObject, chosen: LoopSettings) -> None:
    machine = Machine(usage=FEE)
    machine.emit(
        ev.LoopStarted(settings=chosen, step_exec_id="x1", input_json='"t"', task="t", fingerprint={}, at_us=1)
    )
    outside = Outside(data.draw, machine)
    before = machine.state
    for _ in range(60):
        if not outside.step():
            break
        state = machine.state
        assert state.iteration < chosen.max_rounds
        assert state.iteration - before.iteration in (0, 1)
        assert state.total.turns >= before.total.turns
        frame = frame_of(state)
        stored = dump_frame(frame, max_iterations=chosen.max_rounds)
        assert load_frame(stored, max_iterations=chosen.max_rounds, identity=identity_of(state)) == frame
        before = state
    check_accounts(machine, outside)
    check_pairs(machine)
    assert refold(machine.events) == machine.state
    assert thaw(freeze(machine.state), SNAPSHOT_VERSION) == machine.state
    assert [decode(*encode(event)) for event in machine.events] == machine.events


@pytest.mark.req("LG-02")
@given(turns=st.integers(50, 200))
@settings(max_examples=5)
def test_the_states_size_does_not_grow_with_turns(turns: int) -> None:
    machine = Machine(turns=["plan", *([[call("r")], [call("w", "mutating")]] * turns)])
    machine.start(act_agent=AgentSettings(max_turns_per_act=10_000, bands=()))
    sizes = []
    for _ in range(turns):
        machine.to(act.IntendModel)
        machine.perform(machine.action())
        sizes.append(len(freeze(machine.state)))
    assert max(sizes) - min(sizes) < 120


def test_no_usage_is_shared_and_adds_nothing() -> None:
    assert NO_USAGE + FEE == FEE
