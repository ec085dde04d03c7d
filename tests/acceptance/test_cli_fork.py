"""Time travel as a person does it: a new execution from any record of an old one, and two executions compared (FR-22, LG-01)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.commandline import CommandLine
from support.workspaces import contents, git, repository

ACT = "echo round >> log.txt; wc -l < log.txt > count.txt"


def home(tmp_path: Path) -> CommandLine:
    cli = CommandLine(tmp_path)
    repository(cli.workspace)
    return cli


def run(cli: CommandLine, lines: int = 3) -> dict[str, Any]:
    check = f"test $(wc -l < log.txt) -ge {lines}"
    return cli("run", "Count", "--agent-command", ACT, "--check", check, "--json", "-q").document


def records(cli: CommandLine, execution: str) -> list[dict[str, Any]]:
    import json

    return [json.loads(line) for line in cli("log", execution, "--json").out.splitlines()]


def at_round(cli: CommandLine, execution: str, number: int) -> int:
    """The record with which that round's act begins."""
    begun = [one["seq"] for one in records(cli, execution) if one["kind"] == "baseline.taken"]
    return begun[number - 1]


@pytest.mark.req("FR-22", "LG-01", "FR-08")
def test_a_fork_goes_on_from_its_record_with_the_files_and_counters_of_then(tmp_path: Path) -> None:
    cli = home(tmp_path)
    source = run(cli)
    before = contents(cli.workspace)
    at = at_round(cli, source["execution_id"], 2)
    made = cli("fork", source["execution_id"], "--at", str(at), "--json").document
    assert (made["source"], made["at"], made["isolated"]) == (source["execution_id"], at, True)
    assert (Path(made["workspace"]) / "log.txt").read_text() == "round\n"
    begun = cli("show", made["execution_id"], "--json").document
    assert (begun["status"], begun["rounds"]) == ("paused", 2)
    assert 0 < begun["act_elapsed_ms"] < source["act_elapsed_ms"]
    ended = cli("resume", made["execution_id"], "--json").document
    assert (ended["code"], ended["rounds"], ended["scope"]["closed"]) == ("accepted", 3, "branch")
    assert ended["act_elapsed_ms"] > begun["act_elapsed_ms"]
    assert contents(cli.workspace) == before, "the source's files are left alone"
    assert cli("show", source["execution_id"], "--json").document == source
    assert git(cli.workspace, "show", f"{ended['scope']['branch']}:log.txt") == "round\n" * 3


@pytest.mark.req("FR-22", "CV-25")
def test_two_executions_are_compared_from_where_they_part(tmp_path: Path) -> None:
    cli = home(tmp_path)
    source = run(cli)["execution_id"]
    at = at_round(cli, source, 2)
    other = cli("fork", source, "--at", str(at), "--json").document["execution_id"]
    found = cli("diff", source, other, "--json").document
    assert found["parted_at"] == at + 1
    assert [side["rounds"] for side in found["sides"]] == [3, 2]
    assert found["sides"][1]["forked"] == f"{source}@{at}"
    assert "-round" in found["diff"]
    assert f"part at record {at + 1}" in cli("diff", source, other).out
    assert cli("diff", other, other).code == 2, "one alone is no pair"


@pytest.mark.req("FR-22")
def test_a_question_is_answered_in_each_by_itself(tmp_path: Path) -> None:
    cli = home(tmp_path)
    source = cli("run", "Do", "--agent-command", ACT, "--json", "-q").document["execution_id"]
    other = cli("fork", source, "--json").document["execution_id"]
    assert cli("approve", other).code == 0
    assert cli("resume", other, "--json").document["code"] == "accepted"
    assert cli("show", source, "--json").document["status"] == "waiting-input"
    assert cli("reject", source, "--reason", "no").code == 0
    assert cli("approve", other).code == 2


@pytest.mark.req("FR-22", "SV-02")
def test_a_record_that_is_not_there_or_ended_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    cli = home(tmp_path)
    source = run(cli, 1)["execution_id"]
    last = records(cli, source)[-1]["seq"]
    for at, told in ((last + 1, "has no record"), (last, "had ended")):
        refused = cli("fork", source, "--at", str(at))
        assert (refused.code, told in refused.err) == (2, True), refused.err
    assert cli("scope", "ls", "--json").document == []
    assert len(cli("ls", "--json").document) == 1


def test_without_a_repository_the_files_stay_as_they_are_and_that_is_said(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    source = run(cli, 2)["execution_id"]
    made = cli("fork", source)
    assert (made.code, "left as they are" in made.err) == (0, True), made.err
    assert cli("resume", "last", "--json").document["code"] in ("accepted", "no-change")


@pytest.mark.req("FR-22")
@pytest.mark.parametrize("point", ["ledger.before-commit:2", "ledger.in-transaction:2", "ledger.after-commit:2"])
def test_a_kill_while_forking_leaves_a_whole_fork_or_none(tmp_path: Path, point: str) -> None:
    cli = home(tmp_path)
    source = run(cli, 2)["execution_id"]
    assert cli("fork", source, environ={"TREADLE_CRASH_AT": point}).code == -9
    assert cli("ledger", "verify").code == 0
    forks = [one for one in cli("ls", "--json").document if one["execution_id"] != source]
    for one in forks:
        assert cli("resume", one["execution_id"], "--json").document["code"] == "accepted"
    assert cli("show", source, "--json").document["code"] == "accepted"
