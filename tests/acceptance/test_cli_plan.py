"""Plan mode as a person uses it: nothing is changed before they approve, whatever is killed in between."""

from __future__ import annotations

import json
import os
import pty
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.commandline import PATIENCE_S, InProcess, Ran
from support.terminal import typed
from treadle.testing import ScriptedEndpoint, Turn

STEPS = [{"title": "write 41", "check": "test -s answer.txt"}]
BETTER = [{"title": "write 42", "check": "grep -q 42 answer.txt"}]
WRITE = ("write_file", {"path": "answer.txt", "text": "42\n"})


def model(body: dict[str, Any]) -> Turn:
    """Plans, plans better when it is rejected, works when it is approved, and tries to work before that."""
    said = [str(message.get("content")) for message in body["messages"]]
    calls = [call["function"]["name"] for m in body["messages"] for call in m.get("tool_calls") or ()]
    if not any("Carry it out, step by step" in text for text in said):
        rejected = any("has rejected the plan" in text for text in said)
        if calls.count("write_plan") <= rejected:
            return Turn(calls=[WRITE, ("write_plan", {"steps": BETTER if rejected else STEPS})])
        return Turn(text="I wait.", calls=[("list_dir", {})])
    if calls.count("run_command"):
        return Turn(calls=[("finish", {"summary": "wrote 42"})])
    check = BETTER[0]["check"] if any("write 42" in text for text in said) else STEPS[0]["check"]
    return Turn(calls=[WRITE, ("run_command", {"command": check})])


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(model) as scripted:
        yield scripted


def planned(tmp_path: Path, endpoint: ScriptedEndpoint, **options: Any) -> tuple[InProcess, Ran]:
    cli = InProcess(tmp_path).git()
    arguments = ("--plan", "--check", "grep -q 42 answer.txt", "--model", "openai:scripted", "--base-url", endpoint.url)
    return cli, cli("run", "Write the answer", *arguments, "--json", **options)


@pytest.mark.req("AG-07", "SV-01")
def test_a_run_with_plan_waits_for_an_approval_and_has_changed_nothing(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    cli, ran = planned(tmp_path, endpoint)
    document = ran.document
    assert (ran.code, document["status"], document["code"], document["pending"]["kind"]) == (
        3,
        "waiting-input",
        "approval",
        "plan",
    )
    assert f"treadle plan approve {document['execution_id']}" in ran.err
    assert list(cli.workspace.glob("*.txt")) == []
    shown = cli("plan", "show", "last")
    assert "1. write 41 (check: test -s answer.txt)" in shown.out
    assert "0 of 1 done, 0 verified · not approved" in shown.out
    assert cli("resume", "last", "-q").code == 3
    assert cli("approve", "last", "--as", "ada").code == 0, "the plain word does as well"
    assert cli("plan", "approve", "last").code == 2, "nothing waits any more"
    assert cli("resume", "last", "-q").code == 0
    assert cli("plan", "show", "last", "--json").document["plan"]["verified"] == 1
    page = cli("show", "last").out
    assert "1 of 1 done, 1 verified · approved by ada" in page
    log = cli("log", "last").out
    assert "by model: 1. write 41" in log
    assert "1 done, by check" in log
    assert cli("show", "last", "--json").document["plan"]["approved_by"] == "ada"


@pytest.mark.req("AG-07")
def test_a_rejected_plan_goes_back_or_ends_it_as_told(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    cli, _ = planned(tmp_path, endpoint)
    assert cli("plan", "reject", "last").code == 2
    assert cli("plan", "reject", "last", "--reason", "the answer is 42").code == 0
    again = cli("resume", "last", "--json")
    assert (again.code, "write 42" in again.document["pending"]["prompt"]) == (3, True)
    ended = cli("plan", "reject", "last", "--end", "--reason", "never mind", "--json").document
    assert (ended["status"], ended["code"], ended["exit_code"]) == ("rejected", "rejected", 1)
    assert "never mind" in ended["outcome"]["evidence"]
    assert cli("resume", "last", "-q").code == 1
    assert not (cli.workspace / "answer.txt").exists()


@pytest.mark.req("AG-06", "AG-07")
def test_a_person_edits_the_plan_and_approves_that_one(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    cli, ran = planned(tmp_path, endpoint)
    first = ran.document["pending"]["request_id"]
    file = cli.write("steps.yaml", "- title: write 42\n  check: grep -q 42 answer.txt  # not 41\n")
    edited = cli("plan", "edit", "last", str(file), "--json").document
    assert (edited["status"], "write 42" in edited["pending"]["prompt"]) == ("waiting-input", True)
    assert cli("plan", "approve", "last", "--request", first).code == 2, "that was another plan"
    editor = cli.write("editor", '#!/bin/sh\nsed -i "s/write 42/write 42 twice/" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    assert cli("plan", "edit", "last", environ={"EDITOR": str(editor)}).code == 0
    assert "write 42 twice" in cli("plan", "show", "last").out
    assert cli("plan", "approve", "last").code == 0
    assert "nobody works on it, and nothing is in flight" in cli("why", "last").out
    assert cli("resume", "last", "-q").code == 0


@pytest.mark.req("AG-08")
def test_a_mark_ends_a_step_on_a_persons_word(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    cli, _ = planned(tmp_path, endpoint)
    assert cli("plan", "mark", "last", "1", "done").code == 2, "it needs a reason"
    assert cli("plan", "mark", "last", "1", "done", "--reason", "did it by hand", "--as", "ada").code == 0
    plan = cli("plan", "show", "last", "--json").document["plan"]
    assert (plan["done"], plan["verified"], plan["complete"]) == (1, 0, True)
    assert "marked by ada: did it by hand" in cli("plan", "show", "last").out


@pytest.mark.req("AG-06", "SV-02")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- title: a\n  after: [1]\n", "wait for one another"),
        ("[]", "at least one step"),
        ("- title: [\n", "is no YAML"),
        ("- titel: a\n", "titel"),
        ("- !!python/object/apply:os.system ['true']\n", "is no YAML"),
    ],
)
def test_a_plan_that_cannot_be_read_changes_nothing(
    tmp_path: Path, endpoint: ScriptedEndpoint, text: str, told: str
) -> None:
    cli, _ = planned(tmp_path, endpoint)
    before = cli("plan", "show", "last").out
    refused = cli("plan", "edit", "last", str(cli.write("steps.yaml", text)))
    assert (refused.code, told in refused.err) == (2, True)
    assert cli("plan", "edit", "last", "nowhere.yaml").code == 2
    assert cli("plan", "edit", "last").code == 2, "no editor"
    assert cli("plan", "edit", "last", environ={"EDITOR": "false"}).code == 2
    assert cli("plan", "show", "last").out == before


def test_a_command_that_acts_cannot_be_held_back(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    refused = cli("run", "Do it", "--plan", "--agent-command", "true", "--check", "true")
    assert (refused.code, "cannot be held back" in refused.err) == (2, True)


@pytest.mark.req("AG-07", "SV-01")
def test_at_a_terminal_the_person_is_asked_for_the_plan(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    cli = InProcess(tmp_path).git()
    master, slave = pty.openpty()
    arguments = ("--plan", "--check", "grep -q 42 answer.txt", "--model", "openai:scripted", "--base-url", endpoint.url)
    process = cli.start("run", "Write the answer", *arguments, "--json", stdin=slave, stderr=slave)
    os.close(slave)
    screen = typed(master, [("Approve it?", "n\n"), ("wrong with it?", "42, please\n"), ("Approve it?", "y\n")])
    out, _ = process.communicate(timeout=PATIENCE_S)
    os.close(master)
    assert (process.returncode, json.loads(out)["status"]) == (0, "done")
    assert "1. write 42" in screen


# ---- kills


def slow(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


@pytest.mark.req("AG-07", "LG-03")
@pytest.mark.parametrize(
    "point", [slow("ledger.in-acquire"), slow("ledger.before-commit"), "ledger.in-transaction", "ledger.after-commit"]
)
def test_an_approval_that_is_killed_counts_or_is_asked_for_again(
    tmp_path: Path, endpoint: ScriptedEndpoint, point: str
) -> None:
    cli, _ = planned(tmp_path, endpoint)
    assert cli("plan", "approve", "last", environ={"TREADLE_CRASH_AT": f"{point}:1"}).code < 0
    approved = cli("plan", "show", "last", "--json").document["plan"]["approved"]
    assert not (approved and point == "ledger.in-transaction")
    assert not (cli.workspace / "answer.txt").exists()
    if not approved:
        assert cli("resume", "last", "-q").code == 3
        assert cli("plan", "approve", "last", "-q").code == 0
    assert cli("resume", "last", "-q").code == 0


@pytest.mark.req("AG-07", "LG-03")
@pytest.mark.parametrize("number", [3, slow(4), slow(5)])
def test_a_run_that_is_killed_before_a_commit_still_asks_before_it_changes_anything(
    tmp_path: Path, endpoint: ScriptedEndpoint, number: int
) -> None:
    cli = InProcess(tmp_path).git()
    arguments = ("--plan", "--check", "grep -q 42 answer.txt", "--model", "openai:scripted", "--base-url", endpoint.url)
    died = cli("run", "Write the answer", *arguments, environ={"TREADLE_CRASH_AT": f"ledger.before-commit:{number}"})
    assert died.code < 0
    assert cli("resume", "last", "-q").code == 3
    assert not (cli.workspace / "answer.txt").exists()
    assert cli("plan", "approve", "last", "-q").code == 0
    assert cli("resume", "last", "-q").code == 0
    assert cli("plan", "show", "last", "--json").document["plan"]["verified"] == 1


@pytest.mark.req("AG-08", "LG-03")
@pytest.mark.parametrize("point", [slow("before-tool:1"), "after-tool:1", slow("ledger.after-commit:3")])
def test_a_plan_that_is_carried_out_goes_on_after_a_kill(
    tmp_path: Path, endpoint: ScriptedEndpoint, point: str
) -> None:
    cli, _ = planned(tmp_path, endpoint)
    assert cli("plan", "approve", "last", "-q").code == 0
    assert cli("resume", "last", "-q", environ={"TREADLE_CRASH_AT": point}).code < 0
    document = cli("plan", "show", "last", "--json").document["plan"]
    assert (document["approved"], len(document["steps"])) == (True, 1)
    ran = cli("resume", "last", "-q")
    plan = cli("plan", "show", "last", "--json").document["plan"]
    assert (ran.code, plan["verified"], plan["done"]) == (0, 1, 1)
