"""`treadle recover` goes on with what died and leaves alone what a person stopped."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from support.commandline import CommandLine, wait_for
from treadle.models.prices import parse_price
from treadle.testing import ScriptedEndpoint, Turn

SCRIPT = [
    Turn(text="I look first."),
    Turn(calls=[("write_file", {"path": "answer.txt", "text": "42\n"})]),
    Turn(calls=[("run_command", {"command": "sleep 0.2"})]),
    Turn(calls=[("finish", {"summary": "wrote 42"})]),
]


@pytest.mark.req("SV-07", "TC-26", "LG-03")
def test_killed_executions_are_recovered_and_the_accounts_hold(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path).git()
    with ScriptedEndpoint(SCRIPT, price=parse_price("1,2")) as endpoint:
        flags = [
            "--check",
            "grep -q 42 answer.txt",
            "--model",
            "openai:scripted",
            "--base-url",
            endpoint.url,
            "--price",
            "1,2",
        ]
        for crash in ("after-model:2", "before-tool:2"):
            killed = cli("run", "Write the answer", *flags, environ={"TREADLE_CRASH_AT": crash})
            assert killed.code == -signal.SIGKILL
        left = cli.documents()
        assert [(d["status"], d["owner_alive"]) for d in left] == [("running", False)] * 2
        recovered = cli("recover")
        assert recovered.code == 0
        documents = cli.documents()
        assert [d["code"] for d in documents] == ["accepted"] * 2
        counted = sum(d["usage"]["requests"] for d in documents)
        doubt = sum(d["usage"]["in_doubt_requests"] for d in documents)
        billed = len(endpoint.bill.charges)
        assert counted <= billed <= counted + doubt
        assert (counted, doubt) == (8, 1)
        assert cli("recover").err == ""
        assert len(endpoint.bill.charges) == billed


@pytest.mark.req("SV-07")
def test_what_a_person_stopped_is_left_alone(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path).git()
    slow = [Turn(text="I look first."), Turn(calls=[("run_command", {"command": "touch begun && sleep 60"})])]
    with ScriptedEndpoint(slow) as endpoint:
        process = cli.start("run", "x", "--check", "true", "--model", "openai:s", "--base-url", endpoint.url)
        wait_for(process, "round 1 of")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
        asked = len(endpoint.requests)
        assert cli("recover").code == 0
        assert [d["code"] for d in cli.documents()] == ["interrupted"]
        assert len(endpoint.requests) == asked
