"""Leases as pure rules: what a capability covers, what the last word is, and what ends when."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.machine import Machine, call, finish
from treadle.core.errors import InputError, ToolError
from treadle.core.events import Answered, LeaseChanged, Suspended
from treadle.core.lease_events import Held
from treadle.core.messages import ToolCall
from treadle.core.values import replace
from treadle.effects.leasing import LeaseGate
from treadle.kernel import actions as act
from treadle.kernel.continuation import frame_of
from treadle.kernel.guard_state import Failure, GuardCounters
from treadle.kernel.leases import Lease, allowed, initial, matches, parse, refusal, with_lease, without_scope
from treadle.kernel.permission import ask_for_leave, lease_changed
from treadle.kernel.states import LoopState
from treadle.testing import VirtualClock
from treadle.tools.builtin import WorkspaceTools

NOW = 1_000_000


def lease(op: str, capability: str, scope: str = "loop", expires: int | None = None) -> Lease:
    return Lease(id=f"{op} {capability}", op=op, capability=capability, scope=scope, expires_at_us=expires)


@pytest.mark.req("FR-12")
@pytest.mark.parametrize(
    ("capability", "target", "covered"),
    [
        ("fs.write:src/**", "fs.write src/a/b.py", True),
        ("fs.write:src/**", "fs.write srcx/a.py", False),
        ("fs.write:src/*", "fs.write src/a/b.py", False),
        ("fs.write:**/*.md", "fs.write README.md", True),
        ("fs.write", "fs.write any/where", True),
        ("fs.write:**", "fs.read any", False),
        ("fs.write:src/**", "fs.write ../src/a", False),
        ("fs.write:*a", "fs.write /a", False),
        ("process.spawn:pytest*", "process.spawn pytest -q", True),
        ("process.spawn:pytest*", "process.spawn pytest; rm -rf /", False),
        ("process.spawn:pytest*", "process.spawn pytest $(rm x)", False),
        ("process.spawn:pytest*", "process.spawn pytest\nrm x", False),
        ("process.spawn", "process.spawn a; b", True),
        ("mcp.github:*", "mcp.github delete_repo", True),
        ("mcp.github:get_*", "mcp.github delete_repo", False),
        ("*", "anything at all", True),
    ],
)
def test_what_a_capability_covers(capability: str, target: str, covered: bool) -> None:
    assert matches(capability, target) is covered


@pytest.mark.req("FR-12")
@pytest.mark.parametrize(
    "wrong",
    [
        "",
        ":x",
        "fs write",
        "fs.write:../x",
        "fs.write:a/../../x",
        "fs.write:/etc/**",
        "fs.write:~/x",
        "fs.write:a\\b",
        "x:\0",
        "x" * 300,
        "fs.wirte:**",
        "proces.spawn",
        "fs",
    ],
)
def test_a_glob_that_escapes_or_is_none_is_refused_and_covers_nothing(wrong: str) -> None:
    with pytest.raises(InputError):
        parse(wrong)
    assert not matches(wrong, "fs.write x")


@pytest.mark.req("FR-12")
def test_the_ceiling_cuts_what_is_granted_and_the_last_word_counts() -> None:
    ceiling = ("fs.write:src/**",)
    forged = (lease("grant", "*"),)
    assert allowed(ceiling, forged, "fs.write src/a", NOW)
    assert not allowed(ceiling, forged, "fs.write etc/a", NOW)  # whatever a lease says
    assert not allowed(ceiling, (), "fs.write src/a", NOW)  # nothing is granted by a ceiling alone
    assert allowed(None, (), "fs.write src/a", NOW)  # no ceilings: as ever
    leases = (lease("grant", "fs.write:src/**"), lease("revoke", "fs.write:src/secret/**"))
    assert allowed(ceiling, leases, "fs.write src/a", NOW)
    assert not allowed(ceiling, leases, "fs.write src/secret/a", NOW)
    assert not allowed(None, (lease("revoke", "process.spawn"),), "process.spawn ls", NOW)


@pytest.mark.req("FR-12")
def test_leases_expire_and_end_with_their_scope() -> None:
    leases = (
        lease("grant", "a", expires=NOW),
        lease("grant", "b", "turn"),
        lease("grant", "c", "step"),
        lease("grant", "d"),
    )
    assert not allowed((), leases[:1], "a x", NOW)
    assert not allowed(("a",), leases[:1], "a x", NOW)
    assert allowed(("a",), leases[:1], "a x", NOW - 1)
    assert [one.capability for one in without_scope(leases, "turn")] == ["a", "c", "d"]
    assert [one.capability for one in without_scope(leases, "turn", "step")] == ["a", "d"]
    assert without_scope(leases[3:], "turn") is not None


def test_a_later_lease_of_the_same_capability_replaces_the_earlier() -> None:
    leases = with_lease(initial(["fs.write"]), lease("revoke", "fs.write"))
    assert [one.op for one in leases] == ["revoke"]
    many: tuple[Lease, ...] = ()
    for number in range(500):
        many = with_lease(many, lease("grant", f"n{number}"))
    assert len(many) == 200


@pytest.mark.req("FR-12")
def test_reading_is_free_unless_somebody_speaks_of_it() -> None:
    read = ToolCall(id="1", name="read_file", args={"path": "a"})
    assert refusal(("fs.write:src/**",), (), read, ("fs.read a",), NOW) is None
    assert refusal(("fs.read:src/**",), initial(["fs.read:src/**"]), read, ("fs.read a",), NOW) == ("fs.read a", False)
    run = ToolCall(id="1", name="run_command", args={"command": "rm x && ls"}, kind="mutating")
    assert refusal(("process.spawn:rm*",), initial(["process.spawn:rm*"]), run, ("process.spawn rm",), NOW) is not None
    assert refusal(None, (), run, ("process.spawn rm",), NOW) is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_breaks_the_rules(capability: str, target: str) -> None:
    assert matches(capability, target) in (True, False)


@pytest.mark.req("FR-12")
def test_a_link_inside_the_workspace_is_no_way_around_a_lease(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "src" / "way").symlink_to(tmp_path / "docs")
    tools = WorkspaceTools(tmp_path)
    write = ToolCall(id="1", name="write_file", args={"path": "src/way/a.md", "text": ""}, kind="mutating")
    assert tools.touches(write) == ("fs.write docs/a.md",)
    dots = ToolCall(id="1", name="write_file", args={"path": "src/../docs/a.md", "text": ""}, kind="mutating")
    for one in (write, dots):
        assert refusal(("fs.write:src/**",), initial(["fs.write:src/**"]), one, tools.touches(one), NOW) is not None
    nul = ToolCall(id="1", name="read_file", args={"path": "a\0b"})
    assert tools.touches(nul) == ("fs.read .",)


@pytest.mark.req("FR-12")
@pytest.mark.parametrize("turn", [[call("read_file", path="a")], "only words"])
def test_a_lease_of_the_turn_ends_with_it_and_one_of_the_step_with_the_act(turn: list[ToolCall] | str) -> None:
    machine = Machine(turns=[[call("read_file", path="a")], turn, [finish()]], verdicts=["no", True]).start()
    machine.to(act.CallModel)
    machine.perform(machine.action())
    machine.to(act.CallModel)
    for number, scope in enumerate(("turn", "step", "loop")):
        machine.emit(LeaseChanged(id=f"l{number}", op="grant", capability=f"c{number}", scope=scope))
    assert len(machine.state.carried.leases) == 3
    machine.perform(machine.action())
    while machine.state.agent.step == "tools":
        machine.perform(machine.action())
    assert [lease.scope for lease in machine.state.carried.leases] == ["step", "loop"]
    machine.to(act.RunCheck)
    assert [lease.scope for lease in machine.state.carried.leases] == ["loop"]
    assert [lease.capability for lease in frame_of(machine.state).granted_loop_leases] == ["c2"]


@pytest.mark.req("FR-12")
def test_at_dispatch_todays_ceiling_counts_a_revocation_bites_at_once_and_evaluate_has_no_leases(
    tmp_path: Path,
) -> None:
    tools, clock = WorkspaceTools(tmp_path), VirtualClock()
    machine = Machine(turns=[[finish()]], verdicts=[True]).start(ceiling=("fs.write:**",), granted=("fs.write:**",))
    one = ToolCall(id="1", name="write_file", args={"path": "src/a", "text": ""}, kind="mutating")
    LeaseGate(tools, ("fs.write:**",), clock).check(machine.state, one)
    with pytest.raises(ToolError, match=r"no lease covers fs\.write:src/a"):
        LeaseGate(tools, ("fs.write:docs/**",), clock).check(machine.state, one)  # whatever was stored
    gate = LeaseGate(tools, ("fs.write:**",), clock)
    machine.emit(LeaseChanged(id="no", op="revoke", capability="fs.write:src/**"))
    with pytest.raises(ToolError, match=r"no lease covers fs\.write:src/a"):
        gate.check(machine.state, one)
    machine.to(act.RunCheck)
    gate.check(machine.state, one)  # neither act's leases nor what was revoked from it


@pytest.mark.req("FR-12")
def test_a_call_is_refused_once_its_lease_has_expired(tmp_path: Path) -> None:
    clock = VirtualClock()
    machine = Machine().start(ceiling=("fs.write",))
    until = clock.wall_us() + 5_000_000
    machine.emit(LeaseChanged(id="l", op="grant", capability="fs.write", expires_at_us=until))
    one = ToolCall(id="1", name="write_file", args={"path": "a", "text": ""}, kind="mutating")
    gate = LeaseGate(WorkspaceTools(tmp_path), ("fs.write",), clock)
    gate.check(machine.state, one)
    clock.advance(5)
    with pytest.raises(ToolError):
        gate.check(machine.state, one)


@pytest.mark.req("FR-12")
@pytest.mark.parametrize("scope", ["turn", "step", "loop"])
def test_leave_is_given_for_the_scope_that_was_asked_for(scope: str) -> None:
    answer = Answered(id="k.lease", decision="approve", text="", actor="ann", at_us=7)
    asks = call("request_permission", capability="fs.write:docs/**", reason="r", scope=scope)
    action = ask_for_leave(LoopState(answer=answer), asks, "k")
    assert isinstance(action, act.Record)
    assert isinstance(action.event, LeaseChanged)
    assert (action.event.scope, action.event.capability, action.event.actor) == (scope, "fs.write:docs/**", "ann")


@pytest.mark.req("FR-12", "FR-22")
def test_a_child_is_refused_what_those_above_it_lack_without_asking_anybody() -> None:
    asks = call("request_permission", capability="fs.write:docs/**", reason="r")
    above = Held(ceiling=("fs.write:**",), leases=initial(["fs.write:src/**"]))
    refused = ask_for_leave(LoopState(above=(above,)), asks, "k")
    assert isinstance(refused, act.Record)
    assert "beyond what anybody may grant" in str(refused.event)
    asked = ask_for_leave(LoopState(above=(replace(above, leases=initial(["fs.write:docs/**"])),)), asks, "k")
    assert isinstance(asked, act.Record)
    assert isinstance(asked.event, Suspended)


@pytest.mark.req("FR-12")
def test_what_was_refused_before_may_be_tried_again_with_a_new_lease() -> None:
    machine = Machine(turns=[[call("read_file", path="a")]], verdicts=[True]).start()
    guards = GuardCounters(failures=(Failure(mark="m", kind="permission", said="no lease"),))
    state = replace(machine.state, agent=replace(machine.state.agent, guards=guards))
    assert lease_changed(state, LeaseChanged(id="l", op="grant", capability="fs.write")).agent.guards.failures == ()
