"""The studio's API: reading, steering, loop files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from fastapi import FastAPI

from support.studio import Served, in_studio
from treadle.cli.studio import parser
from treadle.kernel.states import AGENT_TRANSITIONS
from treadle.server.asgi import openapi
from treadle.server.problems import install
from treadle.server.security import is_loopback
from treadle.testing import Fault, Turn

LOOK = Turn(text="looking", calls=(("list_dir", {}),))
ASK = Turn(text="asking", calls=(("ask_person", {"question": "which?", "choices": ["a", "b"]}),))
LONG = Turn(calls=(("run_command", {"command": "seq 1 20000"}),))
DONE = Turn(text="done", calls=(("finish", {"summary": "did it"}),))
CHECKED = "verify: {check: 'true'}\n"


@pytest.mark.req("SV-04", "CV-22")
def test_a_loop_that_is_started_is_seen_whole_afterwards(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name = await it.start(it.loop(CHECKED), "look around")
        found = await it.rest(name)
        assert (found["execution"]["status"], found["execution"]["code"]) == ("done", "no-change")
        assert found["execution"]["task"] == "look around"
        assert found["live"]["turns"] == 3
        budgets = {one["name"]: (one["used"], one["limit"]) for one in found["budgets"]}
        assert (budgets["rounds"], budgets["turns of act"]) == ((1, 10), (3, None))
        turns = await it.get(f"/api/executions/{name}/turns")
        assert [one["calls"] for one in turns] == [["list_dir"], ["run_command"], ["finish"]]
        (first,) = await it.get(f"/api/executions/{name}/rounds")
        assert (first["round"], first["verdict"], first["turns"]) == (1, "accepted", 3)
        assert (await it.get(f"/api/executions/{name}/turns/2"))["calls"][0]["name"] == "run_command"
        assert (await it.get(f"/api/executions/{name}/frame"))["frame"]["kind"] == "loop-frame"
        fleet = await it.get("/api/executions", params={"text": "LOOK"})
        assert [one["execution_id"] for one in fleet["executions"]] == [name]
        assert fleet["counts"] == {"done": 1}
        assert (await it.get("/api/executions", params={"text": "elsewhere"}))["executions"] == []

    in_studio(tmp_path, [LOOK, LONG, DONE], test)


@pytest.mark.req("SV-04")
def test_the_log_is_paged_by_sequence_without_a_hole(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name = await it.start(it.loop(CHECKED))
        head = (await it.rest(name))["head"]
        seen: list[int] = []
        while page := (await it.get(f"/api/executions/{name}/log", params={"after": len(seen), "limit": 5}))["events"]:
            seen += [one["seq"] for one in page]
        assert seen == list(range(1, head + 1))
        tail = (await it.get(f"/api/executions/{name}/log", params={"tail": 2}))["events"]
        assert [one["seq"] for one in tail] == [head - 1, head]

    in_studio(tmp_path, [LOOK, DONE], test)


@pytest.mark.req("AG-16", "CV-16")
def test_a_stored_output_is_read_in_ranges(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name = await it.start(it.loop(CHECKED))
        await it.rest(name)
        (call,) = (await it.get(f"/api/executions/{name}/turns/1"))["calls"]
        address = f"/api/executions/{name}/outputs/{call['id']}"
        part = await it.get(address, params={"start": 0, "end": 50})
        assert part["bytes"] > 100_000 > part["preview_bytes"]
        assert (part["start"], part["end"], len(part["text"])) == (0, 50, 50)
        end = await it.get(address, params={"start": part["bytes"] - 60})
        assert (end["end"], "20000" in end["text"]) == (part["bytes"], True)
        past = await it.get(address, params={"start": 10**9})
        assert (past["text"], past["start"]) == ("", part["bytes"])
        assert (await it.client.get(f"/api/executions/{name}/outputs/nothing")).status_code == 404

    in_studio(tmp_path, [LONG, DONE], test)


@pytest.mark.req("CV-23")
def test_a_question_is_answered_and_the_loop_goes_on_by_itself(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name = await it.start(it.loop(CHECKED))
        waiting = await it.rest(name)
        assert waiting["can"][0] == "answer"
        body = {"seen": waiting["head"], "request_id": waiting["execution"]["pending"]["request_id"], "text": "b"}
        said = await it.post(f"/api/executions/{name}/answer", body)
        assert (said.status_code, said.json()["given"]) == (200, False)
        ended = await it.rest(name)
        assert ended["execution"]["status"] == "done"
        assert [(one["text"], one["actor"]) for one in ended["suspensions"]] == [("b", "ada")]

    in_studio(tmp_path, [ASK, DONE], test)


@pytest.mark.req("CV-23", "SV-04")
def test_of_two_who_steer_at_once_the_second_is_told_that_it_is_stale(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name = await it.start(it.loop())
        waiting = await it.rest(name)
        assert waiting["can"][:2] == ["approve", "reject"]
        wish = {"seen": waiting["head"], "request_id": waiting["execution"]["pending"]["request_id"], "reason": "so"}
        ada = await it.post(f"/api/executions/{name}/approve", {**wish, "actor": "ada"})
        bob = await it.post(f"/api/executions/{name}/reject", {**wish, "actor": "bob"})
        assert (ada.status_code, bob.status_code) == (200, 409)
        assert bob.json()["type"] == "urn:treadle:stale"
        assert bob.json()["head"] > waiting["head"]
        assert (await it.rest(name))["execution"]["status"] == "done"

    in_studio(tmp_path, [DONE], test)


@pytest.mark.req("SV-04")
def test_a_write_that_is_sent_twice_is_done_once(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        first = await it.start(it.loop(CHECKED), key="one")
        assert await it.start(it.loop(CHECKED), key="one") == first
        await it.rest(first)
        assert len((await it.get("/api/executions"))["executions"]) == 1
        other = await it.post("/api/executions", {"text": it.loop(CHECKED), "task": "another"}, key="one")
        assert other.json()["type"] == "urn:treadle:key-reused"

    in_studio(tmp_path, [DONE], test)


@pytest.mark.req("SV-04")
def test_a_write_that_is_sent_again_over_a_restart_of_the_service_is_done_once(tmp_path: Path) -> None:
    wishes: dict[str, Any] = {}
    answers: list[Any] = []

    async def before(it: Served) -> None:
        wishes["start"] = it.loop()
        name = wishes["name"] = await it.start(wishes["start"], key="start")
        wishes["pin"] = {"seen": (await it.rest(name))["head"]}
        answers.append((await it.post(f"/api/executions/{name}/pins", wishes["pin"], key="pin")).json())

    async def after(it: Served) -> None:
        name = wishes["name"]
        assert await it.start(wishes["start"], key="start") == name
        answers.append((await it.post(f"/api/executions/{name}/pins", wishes["pin"], key="pin")).json())
        log = (await it.get(f"/api/executions/{name}/log"))["events"]
        assert sum(one["kind"] == "pinned" for one in log) == 1

    in_studio(tmp_path, [DONE], before)
    in_studio(tmp_path, [DONE], after)
    assert answers[0] == answers[1]
    assert answers[0]["execution_id"] == wishes["name"]


@pytest.mark.req("CV-23")
def test_a_running_loop_is_paused_and_resumed(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name = await it.start(it.loop(CHECKED))
        with anyio.fail_after(30):
            while not it.endpoint.requests:  # noqa: ASYNC110 - it is asked over HTTP
                await anyio.sleep(0.01)
        running = await it.get(f"/api/executions/{name}")
        assert "pause" in running["can"]
        paused = await it.post(f"/api/executions/{name}/pause", {"seen": running["head"]})
        assert paused.json()["given"] is True
        found = await it.rest(name)
        assert (found["execution"]["status"], found["execution"]["code"]) == ("paused", "interrupted")
        again = await it.post(f"/api/executions/{name}/resume", {"seen": found["head"]})
        assert again.status_code == 200
        assert (await it.rest(name))["execution"]["status"] == "done"

    in_studio(tmp_path, [Fault(hang=True), DONE], test)


@pytest.mark.req("CV-23", "CV-11")
def test_limits_and_guards_are_retuned(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name = await it.start(it.loop("control: {max_turns: 1}\n" + CHECKED))
        stopped = await it.rest(name)
        assert (stopped["execution"]["code"], stopped["execution"]["colour"]) == ("limit", "amber")
        less = await it.post(f"/api/executions/{name}/extend", {"seen": stopped["head"], "max_turns": 1})
        assert less.status_code == 422
        wish = {"seen": stopped["head"], "max_turns": 9, "guards": {"repeat": 7}}
        assert (await it.post(f"/api/executions/{name}/extend", wish)).status_code == 200
        ended = await it.rest(name)
        assert ended["execution"]["status"] == "done"
        assert {one["name"]: one["threshold"] for one in ended["guards"]}["repeat"] == 7

    in_studio(tmp_path, [LOOK, DONE], test)


@pytest.mark.req("CV-02", "AG-02")
def test_an_edge_is_legal_where_the_one_table_has_it(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        for source in AGENT_TRANSITIONS:
            for target in AGENT_TRANSITIONS:
                found = (await it.client.post("/api/machine/check", json={"source": source, "target": target})).json()
                assert found["legal"] is (target in AGENT_TRANSITIONS[source])
                assert bool(found["reason"]) is not found["legal"]
        assert (await it.client.post("/api/machine/check", json={"source": "x", "target": "y"})).status_code == 422

    in_studio(tmp_path, [], test)


@pytest.mark.req("CV-21")
def test_validation_checks_the_patterns_and_names_an_input_that_nothing_produces(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        text = "treadle: 1\nact:\n  agent_command: ./agent\n  on_invalid: stop_batch\n"
        found = (await it.client.post("/api/loops/validate", json={"text": text})).json()
        wrong = [one for one in found["findings"] if one["severity"] == "error"]
        assert [(one["line"], one["path"]) for one in wrong] == [(4, "act.on_invalid")]
        assert ("control", "warning") in [(one["path"], one["severity"]) for one in found["findings"]]
        assert found["spec"]["act"]["agent_command"] == "./agent"
        sound = {"treadle": 1, "task": "t", "foundation": {"model": "a:b"}, "verify": {"check": "make"}}
        found = (await it.client.post("/api/loops/validate", json={"spec": sound})).json()["findings"]
        assert {one["severity"] for one in found} <= {"warning"}

    in_studio(tmp_path, [], test)


@pytest.mark.req("CV-21")
def test_loop_files_are_saved_inside_the_workspace_only_and_never_over_a_newer_one(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        made = await it.client.put("/api/loops/mine", json={"text": "# kept\ntreadle: 1\nname: mine\n"})
        assert made.status_code == 200
        digest = made.json()["digest"]
        spec = {"treadle": 1, "name": "mine", "control": {"max_rounds": 3}}
        changed = await it.client.put("/api/loops/mine", json={"spec": spec, "digest": digest})
        assert changed.json()["text"].startswith("# kept\n")
        stale = await it.client.put("/api/loops/mine", json={"text": "treadle: 1\n", "digest": digest})
        assert (stale.status_code, stale.json()["type"]) == (409, "urn:treadle:stale")
        assert [one["name"] for one in (await it.get("/api/loops"))["loops"]] == ["mine"]
        for name in ("..%2Fx", "a.b", "%2e%2e", "x" * 101):
            assert (await it.client.put(f"/api/loops/{name}", json={"text": "treadle: 1\n"})).status_code in (
                404,
                405,
                422,
            )
        (it.studio.workspace / ".treadle" / "loops" / "out.yaml").symlink_to(tmp_path / "elsewhere.yaml")
        assert (await it.client.put("/api/loops/out", json={"text": "treadle: 1\n"})).status_code == 422
        assert not (tmp_path / "elsewhere.yaml").exists()
        broken = await it.client.put("/api/loops/bad", json={"text": "treadle: 1\nfoo: 1\n"})
        assert (broken.status_code, broken.json()["findings"][0]["line"]) == (422, 2)

    in_studio(tmp_path, [], test)


REFUSED = {
    "no token": ({"authorization": ""}, 401),
    "a wrong token": ({"authorization": "Bearer nonsense"}, 401),
    "another site's page": ({"origin": "http://evil.example"}, 403),
    "another port's page": ({"origin": "http://127.0.0.1:1"}, 403),
    "no origin at all": ({"origin": "null"}, 403),
    "a name that was bound to this address": ({"host": "evil.example:8765"}, 421),
    "the right name at another port": ({"host": "127.0.0.1:80"}, 421),
    "no cookie of ours": ({"authorization": "", "cookie": "treadle_studio_8765=guess"}, 401),
}


@pytest.mark.req("SV-05")
@pytest.mark.parametrize("case", REFUSED)
def test_whoever_is_not_the_page_is_refused(tmp_path: Path, case: str) -> None:
    headers, status = REFUSED[case]

    async def test(it: Served) -> None:
        found = await it.client.get("/api/executions", headers=headers)
        assert found.status_code == status
        assert found.headers["content-type"] == "application/problem+json"
        assert "access-control-allow-origin" not in found.headers

    in_studio(tmp_path, [], test)


@pytest.mark.req("SV-05")
def test_the_link_sets_a_cookie_that_scripts_cannot_read_and_leads_away_from_the_token(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        del it.client.headers["authorization"]
        wrong = await it.client.get("/open", params={"token": "nonsense"})
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
        opened = await it.client.get(it.access.link)
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert it.access.token not in cookie
        assert (await it.client.get("/api/executions")).status_code == 200
        page = await it.client.get("/")
        assert page.headers["content-security-policy"].startswith("default-src 'self'")
        assert it.access.token not in page.text

    in_studio(tmp_path, [], test)


@pytest.mark.req("SV-04")
def test_every_error_is_a_problem(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        answers = [
            (await it.client.get("/api/executions/none"), 404),
            (await it.client.get("/api/nothing"), 404),
            (await it.client.delete("/api/executions"), 405),
            (await it.client.get("/api/executions", params={"limit": "many"}), 422),
            (await it.client.post("/api/executions/x/pause", json={"seen": 1}), 428),
            (await it.post("/api/executions/x/pause", {"seen": 1}), 404),
            (await it.post("/api/executions/x/pause", {"seen": -1}), 422),
            (await it.post("/api/executions/x/pause", {"seen": 1, "more": 2}), 422),
            (await it.post("/api/executions", {"text": "treadle: 1\nfoo: 2\n"}), 422),
            (await it.post("/api/executions", {}), 422),
            (await it.client.post("/api/machine/check", content=b"{"), 422),
            (await it.client.post("/api/loops/validate", content=b"x" * 5_000_000), 413),
        ]
        for answer, status in answers:
            assert answer.status_code == status, answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json().keys() >= {"type", "title", "status", "detail"}

    in_studio(tmp_path, [], test)


def test_the_description_that_the_pages_types_are_made_of_is_todays() -> None:
    stored = Path(__file__).parents[2] / "web" / "openapi.json"
    assert json.loads(stored.read_text()) == json.loads(json.dumps(openapi())), "run python tools/openapi.py"


@pytest.mark.req("SV-05")
def test_without_a_word_only_this_machine_is_listened_to() -> None:
    given = parser("studio").parse_args([])
    assert is_loopback(given.host)


@pytest.mark.req("SV-04")
def test_a_fault_of_our_own_is_a_problem_without_its_words() -> None:
    app = FastAPI()
    install(app)

    @app.get("/boom")
    async def boom() -> None:
        raise RuntimeError("the inside of it")

    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://studio") as client:
            return await client.get("/boom")

    answer = anyio.run(main)
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["type"] == "urn:treadle:fault"
    assert "the inside of it" not in answer.text


@pytest.mark.req("SV-04", "CV-22")
def test_an_execution_that_is_deleted_while_it_is_watched_is_told_as_unknown_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    async def test(it: Served) -> None:
        name = await it.start(it.loop(CHECKED))
        head = (await it.rest(name))["head"]
        await it.studio.ledger.remove(name)
        for path in ("", "/log", "/turns", "/rounds", "/frame", "/window"):
            gone = await it.client.get(f"/api/executions/{name}{path}")
            assert (gone.status_code, gone.json()["type"]) == (404, "urn:treadle:unknown-execution"), path
        late = await it.post(f"/api/executions/{name}/pins", {"seen": head})
        assert late.status_code == 404
        other = await it.start(it.loop(CHECKED))
        await it.rest(other)
        assert [one["execution_id"] for one in (await it.get("/api/executions"))["executions"]] == [other]

    in_studio(tmp_path, [DONE], test)
