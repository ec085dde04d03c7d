"""What people change of a running loop through the API: plan, marks, window, bands, pins and forks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.studio import Served, in_studio
from treadle.testing import Turn

PLAN = Turn(
    calls=(("write_plan", {"steps": [{"title": "Look", "check": "true"}, {"title": "Write it down"}]}),),
)
LOOK = Turn(calls=(("list_dir", {}),))
RUN = Turn(calls=(("run_command", {"command": "true"}),))
LONG = Turn(calls=(("run_command", {"command": "seq 1 9000"}),))
ASK = Turn(calls=(("ask_person", {"question": "which?", "choices": ["a", "b"]}),))
DONE = Turn(text="done", calls=(("finish", {"summary": "did it"}),))
GATED = "verify: {check: 'true'}\ncontrol: {plan: true}\n"
CHECKED = "verify: {check: 'true'}\n"


async def _waiting(it: Served, more: str = CHECKED) -> tuple[str, dict[str, Any]]:
    name = await it.start(it.loop(more))
    found = await it.rest(name)
    assert found["live"]["status"] == "waiting-input"
    return name, found


@pytest.mark.req("CV-07", "CV-08", "AG-08")
def test_a_plan_is_shown_approved_and_marked_by_a_person_apart_from_what_is_verified(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name, found = await _waiting(it, GATED)
        plan = found["plan"]
        assert (plan["needs_approval"], plan["approved"]) == (True, False)
        assert [(one["text"], one["check"]) for one in plan["steps"]] == [("Look", "true"), ("Write it down", "")]
        body = {"seen": found["head"], "request_id": plan["request_id"], "reason": ""}
        assert (await it.post(f"/api/executions/{name}/approve", body)).status_code == 200
        asked = await it.rest(name)
        assert (asked["plan"]["approved"], asked["plan"]["approved_by"]) == (True, "ada")
        assert (asked["plan"]["done"], asked["plan"]["verified"]) == (1, 1)
        bare = {"seen": asked["head"], "status": "done", "reason": " "}
        assert (await it.post(f"/api/executions/{name}/plan/steps/2", bare)).status_code == 422
        mark = {"seen": asked["head"], "status": "done", "reason": "I wrote it"}
        assert (await it.post(f"/api/executions/{name}/plan/steps/2", mark)).status_code == 200
        marked = (await it.get(f"/api/executions/{name}"))["plan"]
        assert (marked["done"], marked["verified"]) == (2, 1)
        assert (marked["steps"][1]["by_person"], marked["steps"][1]["reason"]) == (True, "I wrote it")

    in_studio(tmp_path, [PLAN, RUN, ASK, DONE], test)


@pytest.mark.req("CV-06")
def test_a_changed_plan_is_another_one_and_a_stale_edit_is_refused(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name, found = await _waiting(it, GATED)
        edit = {"seen": found["head"], "digest": found["plan"]["digest"], "steps": ["Write it down", {"title": "Look"}]}
        assert (await it.post(f"/api/executions/{name}/plan", {**edit, "digest": "0" * 16})).status_code == 422
        assert (await it.post(f"/api/executions/{name}/plan", edit)).status_code == 200
        changed = await it.rest(name)
        assert [one["text"] for one in changed["plan"]["steps"]] == ["Write it down", "Look"]
        assert changed["plan"]["request_id"] not in ("", found["plan"]["request_id"])
        assert (await it.post(f"/api/executions/{name}/plan", edit)).status_code == 409
        empty = {"seen": changed["head"], "digest": "", "steps": []}
        assert (await it.post(f"/api/executions/{name}/plan", empty)).status_code == 422

    in_studio(tmp_path, [PLAN, DONE], test)


@pytest.mark.req("CV-12", "CV-14")
def test_the_window_is_shown_and_compacted(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name, found = await _waiting(it)
        window = await it.get(f"/api/executions/{name}/window")
        assert window["used"] == sum(window["kinds"].values())
        assert (window["static_tokens"] > 0, window["breaker"], window["compact_at"]) == (True, "closed", 80)
        wish = {"seen": found["head"], "depth": "micro"}
        assert (await it.post(f"/api/executions/{name}/compact", {**wish, "depth": "deep"})).status_code == 422
        assert (await it.post(f"/api/executions/{name}/compact", wish)).status_code == 200
        assert (await it.get(f"/api/executions/{name}/window"))["requested"] == "micro"

    in_studio(tmp_path, [LONG, ASK, DONE], test)


@pytest.mark.req("CV-04", "CV-11", "CV-13")
def test_bands_ratio_and_guards_are_retuned(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name, found = await _waiting(it)
        tuned = {"seen": found["head"], "warn_at": [90, 50], "compact_at": 60, "guards": {"repeat": 9}}
        for wrong in ({"warn_at": [0]}, {"compact_at": 101}, {"guards": {"nothing": 1}}):
            assert (await it.post(f"/api/executions/{name}/extend", {**tuned, **wrong})).status_code == 422
        assert (await it.post(f"/api/executions/{name}/extend", tuned)).status_code == 200
        found = await it.get(f"/api/executions/{name}")
        act = found["settings"]["act_agent"]
        assert (act["bands"], act["compact_at"]) == ([50, 90], 60)
        assert {one["name"]: one["threshold"] for one in found["guards"]}["repeat"] == 9

    in_studio(tmp_path, [ASK, DONE], test)


@pytest.mark.req("CV-05")
def test_the_map_is_that_of_the_workspace(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        (it.studio.workspace / "kit.py").write_text("def read():\n    return 1\n")
        name, _ = await _waiting(it)
        found = await it.get(f"/api/executions/{name}/map", params={"budget": 500})
        assert (found["on"], [one["path"] for one in found["entries"]]) == (False, ["kit.py"])
        assert found["entries"][0]["level"] in ("skeleton", "full")

    in_studio(tmp_path, [ASK, DONE], test)


@pytest.mark.req("CV-10", "CV-23")
def test_a_pin_is_a_record_and_an_execution_forks_there(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name, found = await _waiting(it)
        said = await it.post(f"/api/executions/{name}/pins", {"seen": found["head"]})
        pin = said.json()["seq"]
        last = (await it.get(f"/api/executions/{name}/log", params={"tail": 1}))["events"][0]
        assert (last["seq"], last["kind"], last["data"]["actor"]) == (pin, "pinned", "ada")
        answer = {"seen": found["head"], "request_id": found["execution"]["pending"]["request_id"], "text": "a"}
        assert (await it.post(f"/api/executions/{name}/answer", answer)).status_code == 200, "a pin makes nothing stale"
        whole = await it.rest(name)
        assert whole["execution"]["status"] == "done"
        key = "fork-1"
        fork = (await it.post(f"/api/executions/{name}/forks", {"seen": 0, "at": pin}, key=key)).json()["execution_id"]
        again = (await it.post(f"/api/executions/{name}/forks", {"seen": 0, "at": pin}, key=key)).json()["execution_id"]
        assert fork == again != name
        forked = await it.get(f"/api/executions/{fork}")
        assert (forked["live"]["status"], forked["head"]) == ("waiting-input", pin + 1)
        other = {"seen": forked["head"], "request_id": forked["execution"]["pending"]["request_id"], "text": "b"}
        assert (await it.post(f"/api/executions/{fork}/answer", other)).status_code == 200
        assert (await it.rest(fork))["execution"]["status"] == "done"
        assert (await it.get(f"/api/executions/{name}"))["head"] == whole["head"]
        gone = await it.post(f"/api/executions/{name}/forks", {"seen": 0, "at": 10_000})
        assert gone.status_code == 422

    in_studio(tmp_path, [LOOK, ASK, DONE], test)


@pytest.mark.req("CV-23", "FR-12")
def test_a_capability_is_granted_and_revoked_by_hand(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name, found = await _waiting(it)
        assert (await it.get(f"/api/executions/{name}/leases"))["leases"] == []
        wish = {"seen": found["head"], "op": "revoke", "capability": "fs.write:**", "scope": "loop", "for_s": 90}
        for wrong in ({"capability": "nothing at all"}, {"op": "lend"}, {"for_s": -1}):
            assert (await it.post(f"/api/executions/{name}/leases", {**wish, **wrong})).status_code == 422
        assert (await it.post(f"/api/executions/{name}/leases", wish)).status_code == 200
        (lease,) = (await it.get(f"/api/executions/{name}/leases"))["leases"]
        assert (lease["op"], lease["capability"], lease["by"], lease["expired"]) == (
            "revoke",
            "fs.write:**",
            "ada",
            False,
        )
        assert lease["expires_at"]

    in_studio(tmp_path, [ASK, DONE], test)


@pytest.mark.req("CV-25")
def test_two_are_compared_by_where_they_part_and_what_they_left(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        names: list[str] = []
        for text in ("one\n", "two\n"):
            (it.studio.workspace / "note.txt").write_text(text)
            names.append(await it.start(it.loop("verify: {check: 'true'}\n"), text, key=text))
            assert (await it.rest(names[-1]))["live"]["status"] == "done"
        found = await it.get(f"/api/executions/{names[0]}/compare/{names[1]}")
        assert found["parted_at"] == 1
        assert ("-one\n+two\n" in found["diff"], found["cut"], found["note"]) == (True, False, "")
        assert (await it.client.get(f"/api/executions/{names[0]}/compare/{names[0]}")).status_code == 422
        assert (await it.client.get(f"/api/executions/{names[0]}/compare/none")).status_code == 404

    in_studio(tmp_path, [DONE, DONE], test)
