"""`treadle run` and what can be asked of an execution afterwards, with a scripted model behind a real endpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from support.commandline import CommandLine, Ran
from treadle.models.prices import parse_price
from treadle.testing import Fault, ScriptedEndpoint, Turn

KEYS = {
    "execution_id", "status", "code", "pending", "rounds", "turns_taken", "act_turns_taken", "cost_usd", "in_doubt_usd",
    "usage", "output", "outcome", "started_at", "elapsed_ms", "act_elapsed_ms",
}  # fmt: skip
SCRIPT = [
    Turn(text="I look first.", calls=[("list_dir", {})]),
    Turn(calls=[("write_file", {"path": "answer.txt", "text": "41\n"}), ("run_command", {"command": "seq 1 9000"})]),
    Turn(calls=[("finish", {"summary": "wrote 41"})]),
    Turn(text="42, then.", calls=[("write_file", {"path": "answer.txt", "text": "42\n"})]),
    Turn(calls=[("finish", {"summary": "wrote 42"})]),
]


class Finished(NamedTuple):
    """A run that was accepted in its second round, and where."""

    cli: CommandLine
    endpoint: ScriptedEndpoint
    ran: Ran
    asked: int  # requests that the run itself made


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    cli = CommandLine(tmp_path_factory.mktemp("finished")).git()
    with ScriptedEndpoint(SCRIPT, price=parse_price("1,2")) as endpoint:
        ran = cli(
            "run", "Write the answer", "--check", "grep -q 42 answer.txt", "--model", "openai:scripted",
            "--base-url", endpoint.url, "--price", "1,2", "--max-cost", "3", "--json",
        )  # fmt: skip
    return Finished(cli, endpoint, ran, len(endpoint.requests))  # the endpoint is gone: whoever needs it now fails


@pytest.mark.req("SV-01", "SV-02", "SV-03", "AG-18")
def test_an_accepted_run_prints_one_document_on_stdout_and_nothing_else_there(finished: Finished) -> None:
    ran, document = finished.ran, finished.ran.document
    assert ran.code == 0
    assert ran.out.count("\n") == 1
    assert set(document) >= KEYS
    assert (document["status"], document["code"], document["pending"]) == ("done", "accepted", None)
    assert (document["rounds"], document["turns_taken"], document["act_turns_taken"]) == (2, 5, 5)
    assert document["output"] == "wrote 42"
    assert document["usage"]["requests"] == finished.asked == 5
    assert document["cost_usd"] == pytest.approx(float(finished.endpoint.bill.total_usd))
    assert document["started_at"].endswith("Z")
    assert (finished.cli.workspace / "answer.txt").read_text() == "42\n"


@pytest.mark.req("AG-17", "AG-18")
def test_progress_and_one_banner_line_with_the_next_command_are_on_stderr(finished: Finished) -> None:
    lines = finished.ran.err.splitlines()
    assert [line for line in lines if line.startswith("round ")] == ["round 1 of 10", "round 2 of 10"]
    assert any("rejected: " in line for line in lines)
    banner = lines[-1]
    execution_id = finished.ran.document["execution_id"]
    assert banner.startswith(f"{execution_id} done, accepted · ")
    assert "2 rounds · 5 turns" in banner
    assert banner.endswith(f"next: treadle diff {execution_id}")


@pytest.mark.req("AG-17")
def test_the_ending_is_written_down_as_an_artifact_which_why_names(finished: Finished) -> None:
    why = finished.cli("why", "last", "--json").document
    page = Path(why["artifact"])
    text = page.read_text()
    assert "Round 1: rejected" in text
    assert "cost    $" in text
    assert "5 requests" in text
    assert "round 2 judged: accepted" in text, "the end of the session log"
    assert text.rstrip().endswith(f"Next: {why['next']}")
    ending = json.loads(page.with_suffix(".json").read_text())
    assert (ending["is_success"], ending["is_nonfailure"], ending["colour"]) == (True, True, "green")
    assert ending["outcome"]["kind"] == why["outcome"]["kind"] == "accepted"
    assert [one["verdict"] for one in ending["round_records"]] == ["rejected", "accepted"]


@pytest.mark.req("FR-26", "SV-03")
def test_resume_show_and_ls_give_the_stored_document_and_call_nothing(finished: Finished) -> None:
    document = finished.ran.document
    resumed = finished.cli("resume", document["execution_id"][:6], "--json", "-q")
    assert (resumed.code, resumed.document, resumed.err) == (0, document, "")
    assert finished.cli("show", "last", "--json").document == document
    assert finished.cli("ls", "--json").document == [document]
    assert len(finished.endpoint.requests) == finished.asked


@pytest.mark.req("AG-27")
def test_a_turn_can_be_looked_at_whole(finished: Finished) -> None:
    turn = finished.cli("show", "last", "--turn", "2", "--json").document
    assert (turn["turn"], turn["round"], turn["phase"], turn["model"]) == (2, 1, "act", "openai:scripted")
    assert turn["request"]["digest"]
    assert turn["response"]["digest"]
    assert turn["response"]["finish"] == "tool_call"
    write, command = turn["calls"]
    assert (write["name"], write["args"]["path"], write["result"]["status"]) == ("write_file", "answer.txt", "ok")
    assert command["result"]["whole_output"], "an output that was clipped is kept whole"
    assert turn["usage"]["output_tokens"] > 0
    assert turn["changed"] == ["answer.txt"]
    assert "2 of 2 calls succeeded" in turn["decision"]
    first = finished.cli("show", "last", "--turn", "1").out
    assert "list_dir" in first
    assert "planning → executing" in first or "1 of 1 calls succeeded" in first
    assert finished.cli("show", "last", "--turn", "6").code == 2


@pytest.mark.req("AG-16")
def test_last_gives_a_whole_output(finished: Finished) -> None:
    whole = finished.cli("last", "last", "--call", "call_1_1").out
    assert "\n1\n2\n" in whole
    assert "\n8999\n9000\n" in whole
    assert finished.cli("last", "last").out.startswith("Wrote answer.txt")


@pytest.mark.req("AG-28")
def test_diff_tells_what_a_round_changed_and_what_all_did(finished: Finished) -> None:
    second = finished.cli("diff", "last", "--round", "2").out
    assert "-41" in second
    assert "+42" in second
    whole = finished.cli("diff", "last").out
    assert "+42" in whole
    assert "41" not in whole


@pytest.mark.req("SV-01")
def test_the_log_is_one_record_a_line_for_people_and_json_lines_for_programs(finished: Finished) -> None:
    records = [json.loads(line) for line in finished.cli("log", "last", "--json").out.splitlines()]
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    assert records[0]["kind"] == "loop.started"
    assert records[-1]["body"]["code"] == "accepted"
    lines = finished.cli("log", "last", "-f").out.splitlines()
    assert len(lines) == len(records)
    assert "rejected: " in next(line for line in lines if "judged" in line)


@pytest.mark.req("SV-01")
def test_show_is_a_page_for_people(finished: Finished) -> None:
    page = finished.cli("show", "last").out
    for expected in (
        "Write the answer",
        "done, accepted",
        "Accounts",
        "Limits",
        "✗ round 1: rejected",
        "✓ round 2: accepted",
    ):
        assert expected in page
    listed = finished.cli("ls").out
    assert "done, accepted" in listed
    assert "Write the answer" in listed


@pytest.mark.req("SV-02", "FR-26")
def test_a_limit_stops_with_4_and_only_an_extension_goes_on(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    with ScriptedEndpoint(SCRIPT) as endpoint:
        flags = ("--check", "grep -q 42 answer.txt", "--model", "openai:scripted", "--base-url", endpoint.url)
        stopped = cli("run", "Write the answer", *flags, "--max-turns", "2", "--json")
        assert (stopped.code, stopped.document["status"], stopped.document["code"]) == (4, "stopped", "limit")
        assert "treadle extend" in stopped.err
        asked = len(endpoint.requests)
        again = cli("resume", "last", "--json")
        assert (again.code, again.document["execution_id"]) == (4, stopped.document["execution_id"])
        assert len(endpoint.requests) == asked
        assert cli("extend", "last", "--max-turns", "1").code == 2
        assert cli("extend", "last", "--max-turns", "20").code == 0
        assert cli("resume", "last", "--json").document["code"] == "accepted"


@pytest.mark.req("SV-02")
def test_a_refused_provider_fails_and_retry_incomplete_tries_again(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    with ScriptedEndpoint([Fault(status=401), *SCRIPT[3:]]) as endpoint:
        flags = ("--check", "grep -q 42 answer.txt", "--model", "openai:scripted", "--base-url", endpoint.url)
        failed = cli("run", "Write the answer", *flags, "--json")
        assert (failed.code, failed.document["status"], failed.document["code"]) == (1, "failed", "provider")
        assert "treadle resume --retry-incomplete" in failed.err
        assert cli("resume", "last", "-q").code == 1
        assert len(endpoint.requests) == 1
        assert cli("resume", "last", "--retry-incomplete", "-q").code == 0


@pytest.mark.req("SV-02", "TC-21")
def test_an_unknown_price_under_a_cap_stops_until_one_is_given(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    with ScriptedEndpoint(SCRIPT[3:], price=parse_price("1,2")) as endpoint:
        flags = ("--check", "grep -q 42 answer.txt", "--model", "openai:scripted", "--base-url", endpoint.url)
        stopped = cli("run", "Write the answer", *flags, "--max-cost", "1", "--json")
        assert (stopped.code, stopped.document["code"]) == (4, "usage-unavailable")
        assert endpoint.requests == []
        done = cli("resume", "last", "--price", "1,2", "--json")
        assert (done.code, done.document["code"]) == (0, "accepted")
        assert done.document["cost_usd"] == pytest.approx(float(endpoint.bill.total_usd))


@pytest.mark.req("TC-23", "SV-01", "SV-02")
def test_a_question_waits_with_3_and_takes_one_of_its_choices_once(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    script = [
        Turn(calls=[("ask_person", {"question": "Which colour?", "choices": ["red", "blue"]})]),
        Turn(calls=[("finish", {"summary": "chose"})]),
    ]
    with ScriptedEndpoint(script) as endpoint:
        flags = ("--check", "true", "--model", "openai:scripted", "--base-url", endpoint.url)
        waiting = cli("run", "Choose a colour", *flags, "--json")
        assert (waiting.code, waiting.document["status"], waiting.document["code"]) == (3, "waiting-input", "question")
        assert waiting.document["pending"]["choices"] == ["red", "blue"]
        assert cli("resume", "last", "-q").code == 3
        assert cli("answer", "last", "green").code == 2
        assert cli("answer", "last", "red", "--request", "r9.other").code == 2
        assert cli("approve", "last").code == 2
        assert cli("answer", "last", "red").code == 0
        assert cli("answer", "last", "blue").code == 2
        assert cli("resume", "last", "-q").code == 0
        said = json.dumps(endpoint.requests[-1]["messages"])
        assert "red" in said.split("ask_person")[-1]


@pytest.mark.req("TC-24", "SV-07")
def test_a_quota_that_comes_back_is_waited_for_and_told(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    told = tmp_path / "told"
    with ScriptedEndpoint([Fault(status=429, headers={"retry-after": "1"}), *SCRIPT[3:]]) as endpoint:
        flags = ("--check", "grep -q 42 answer.txt", "--model", "openai:scripted", "--base-url", endpoint.url)
        ran = cli(
            "run", "Write the answer", *flags, "--notify", f'echo "$TREADLE_STATUS $TREADLE_CODE" >> {told}', "--json"
        )
    assert (ran.code, ran.document["code"]) == (0, "accepted")
    assert told.read_text().splitlines() == ["paused quota", "done accepted"]
