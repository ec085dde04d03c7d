"""An export vouches for itself: whoever alters a part of it, and seals the rest anew, is found out all the same (FR-27)."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from support.driving import DONE, FEE, PLAN, runtime, scripted
from support.machine import call, settings
from treadle import Agent, Loop, accept, tool
from treadle.app.carry import as_it_is, export, import_family, is_there, read_export, seal
from treadle.core.codec import encode
from treadle.core.errors import (
    BrokenInvariant,
    DanglingMessage,
    DigestMismatch,
    FrameError,
    InputError,
    MalformedFrame,
    UnfoundedLease,
)
from treadle.core.events import Answered, LeaseChanged
from treadle.core.values import replace
from treadle.kernel.agent import call_key
from treadle.kernel.grants import advance_proven, unfounded
from treadle.kernel.states import AgentState, LoopState
from treadle.testing import Turn


@tool(kind="read")
def long() -> str:
    """Says much."""
    return "word " * 20_000


def loop() -> Loop:
    """Its one tool leaves a blob; then it waits for a person."""
    ask = Turn(calls=[("ask_person", {"question": "Go?"})], usage=FEE)
    model = scripted(PLAN, Turn(calls=[("long", {})], usage=FEE), ask, DONE)
    return Loop(name="test", act=Agent(model=model, tools=(long,)), evaluate=lambda ctx, output: accept())


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    async def main() -> bytes:
        async with runtime("memory:", tmp_path_factory.mktemp("carry")) as made:
            session = await made.start(loop(), "Do it.", execution_id="one")
            await session.run()
            await session.close()
            return await export(made.ledger, "one", session.state)

    return anyio.run(main)


def altered(data: bytes, change: Any) -> bytes:
    """With this part of it changed and all of it sealed anew."""
    frame = msgspec.json.decode(data)["frame"]
    change(frame)
    return seal(msgspec.json.encode(frame))


def other_cost(frame: dict[str, Any]) -> None:
    inner = frame["loop"].replace('"turnsTaken":3', '"turnsTaken":2').replace('"actTurnsTaken":3', '"actTurnsTaken":2')
    assert inner != frame["loop"]
    stored = inner[inner.index('"frame":') + 8 : -1]
    old = inner[inner.index("sha256:") : inner.index('"', inner.index("sha256:"))]
    frame["loop"] = inner.replace(old, f"sha256:{hashlib.sha256(stored.encode()).hexdigest()}")


def a_gap(frame: dict[str, Any]) -> None:
    frame["records"][2][0] += 1


def a_lease_of_nobodys(frame: dict[str, Any]) -> None:
    kind, version, body = encode(granted(by="policy"))
    frame["records"].append([len(frame["records"]) + 1, kind, version, None, 1, msgspec.json.decode(body)])


def no_blob(frame: dict[str, Any]) -> None:
    frame["blobs"].clear()


def other_blob(frame: dict[str, Any]) -> None:
    (address,) = frame["blobs"]
    frame["blobs"][address] = base64.b64encode(b"other").decode()


@pytest.mark.req("FR-23", "FR-27")
@pytest.mark.parametrize(
    ("change", "error"),
    [
        (other_cost, BrokenInvariant),
        (a_gap, BrokenInvariant),
        (a_lease_of_nobodys, UnfoundedLease),
        (no_blob, DanglingMessage),
        (other_blob, DigestMismatch),
    ],
)
def test_a_part_that_does_not_fit_the_rest_is_found(change: Any, error: type[FrameError], exported: bytes) -> None:
    read_export(exported)
    with pytest.raises(error):
        read_export(altered(exported, change))


def granted(**changes: Any) -> LeaseChanged:
    facts: dict[str, Any] = {
        "id": "grant.9",
        "op": "grant",
        "capability": "fs.write:docs/**",
        "actor": "ann",
        "at_us": 5,
    }
    return LeaseChanged(**{**facts, **changes})


@pytest.mark.req("FR-12", "SE-02")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"expires_at_us": 6}, ""),
        ({"op": "revoke", "id": "revoke.9", "capability": "process.spawn"}, ""),
        ({"id": "grant.8"}, "would be 9"),
        ({"capability": "fs.write:etc/**"}, "beyond the ceiling"),
        ({"capability": "fs.write:../x"}, "leads out of the workspace"),
        ({"expires_at_us": 5}, "ends before it begins"),
        ({"by": "policy"}, "at the start alone"),
        ({"by": "gate", "id": "k"}, "nobody has said yes"),
    ],
)
def test_a_grant_is_founded_on_what_came_before_it(change: dict[str, Any], said: str) -> None:
    state = LoopState(settings=settings(ceiling=("fs.write:docs/**",)), seq=8, status="running")
    why = unfounded(state, granted(**change))
    assert said in why
    assert bool(said) is bool(why)
    if why:
        with pytest.raises(UnfoundedLease, match=r"records\[8\]"):
            advance_proven(state, granted(**change))
    else:
        assert advance_proven(state, granted(**change)).carried.leases[-1].record == 9


@pytest.mark.req("FR-12", "SE-02")
@pytest.mark.parametrize(
    ("change", "founded"),
    [
        ({}, True),
        ({"capability": "fs.write:docs/b"}, False),
        ({"actor": "eve"}, False),
        ({"at_us": 6}, False),
        ({"op": "revoke"}, False),
        ({"id": "r1.act.t1.7"}, False),
    ],
)
def test_a_grant_of_a_gate_is_what_was_asked_for_and_answered_there(change: dict[str, Any], founded: bool) -> None:
    asks = call("request_permission", capability="fs.write:docs/**", reason="r")
    agent = AgentState(step="tools", calls=(asks,))
    for decision in ("approve", "reject"):
        answer = Answered(id="k.lease", decision=decision, text="", actor="ann", at_us=5)
        state = LoopState(settings=settings(), agent=agent, answer=answer)
        event = granted(**{"by": "gate", "id": call_key(state, 0), **change})
        assert (not unfounded(state, event)) is (founded and decision == "approve")
    other = replace(
        state,
        answer=replace(answer, decision="approve"),
        agent=replace(agent, calls=(call("read_file", capability="fs.write:docs/**"),)),
    )
    assert unfounded(other, granted(by="gate", id=call_key(other, 0)))


@pytest.mark.req("FR-23", "FR-27")
def test_an_export_has_one_spelling(exported: bytes) -> None:
    with pytest.raises(MalformedFrame):
        read_export(exported.replace(b'{"schema"', b'{ "schema"', 1))


@pytest.mark.req("FR-27", "LG-09")
def test_what_is_carried_has_its_question_and_its_blobs_and_no_other_of_that_name_is_touched(
    exported: bytes, tmp_path: Path
) -> None:
    async def main() -> None:
        carried = read_export(exported)
        async with runtime("memory:", tmp_path) as there:
            await import_family(there.ledger, carried, as_it_is, owner=there.owner, at_us=1)
            assert [await there.ledger.blob(address) for address, _ in carried.blobs] == [b for _, b in carried.blobs]
            assert carried.state.pending is not None
            opened = [(name, answer) for name, _, _, answer in await there.ledger.suspensions("one")]
            assert opened == [(carried.state.pending.id, None)]
            assert await is_there(there.ledger, "one", carried.records)
            other = (carried.records[0]._replace(body=b"{}"), *carried.records[1:])
            with pytest.raises(InputError, match="another execution"):
                await is_there(there.ledger, "one", other)
            with pytest.raises(InputError):
                await import_family(there.ledger, carried, as_it_is, owner=there.owner, at_us=1)

    anyio.run(main)
