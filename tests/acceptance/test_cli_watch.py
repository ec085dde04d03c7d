"""`treadle watch` and `treadle log` from another process than the owner's, while it works and after."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from support.commandline import InProcess, finish
from support.loops import run
from treadle.testing import ScriptedEndpoint, Turn

WAITS = ("--check", "while [ ! -e go ]; do sleep 0.05; done")


@pytest.fixture
def cli(tmp_path: Any) -> InProcess:
    return InProcess(tmp_path)


@pytest.mark.req("AG-19")
def test_another_process_sees_a_running_loop_and_where_it_is(cli: InProcess) -> None:
    with cli.running("Mend the parser", "--agent-command", "echo x > made", *WAITS, "--max-rounds", "3") as process:
        watching = cli.start("watch", "last", "--json")
        assert watching.stdout is not None
        while (seen := json.loads(watching.stdout.readline()))["in_flight"] is None:
            pass
        assert seen["status"] == "running"
        assert seen["owner_alive"]
        drawn = cli("watch", "last", "--once").out
        assert "Mend the parser" in drawn
        assert "round 1 of 3" in drawn
        why = cli("why", "last").out
        assert "now      round 1 of 3, evaluate: waits for the check" in why
        assert "treadle watch" in why
        assert "treadle resume" not in why, "somebody works on it"
        fleet = cli("watch", "--once").out
        assert "1 at work" in fleet
        cli.write("go", "")
        process.wait()
        rest = finish(watching)
    lines = [json.loads(line) for line in rest.out.splitlines()]
    assert rest.code == 0, "it ends with the execution"
    assert lines[-1]["status"] == "done"
    assert lines[-1]["seq"] > seen["seq"]


@pytest.mark.req("AG-19")
@pytest.mark.parametrize("width", [80, 120])
def test_the_page_has_plan_budgets_window_and_what_came_of_the_last_calls(width: int, cli: InProcess) -> None:
    cli.write("kit.py", "x = 1\n")
    cli.environ["COLUMNS"] = str(width)
    steps = [{"title": "Look", "check": "grep x kit.py"}, {"title": "Change", "check": "grep y kit.py"}]
    turns = [
        Turn(text="I plan.", calls=[("write_plan", {"steps": steps})]),
        Turn(calls=[("run_command", {"command": "grep x kit.py"})]),
        Turn(calls=[("run_command", {"command": "grep y kit.py"}), ("read_file", {"path": "nowhere.py"})]),
    ]
    with ScriptedEndpoint(turns) as endpoint:
        run(cli, endpoint, "--max-turns", "3", "--window", "32k")
    lines = [line.strip("│ ") for line in cli("watch", "last", "--once").out.splitlines()]
    assert max(map(len, lines)) <= width
    drawn = "\n".join(lines)
    for wanted in (
        "Plan  1 of 2 done, 1 verified",
        "✓ 1. Look",
        "✗ 2. Change",
        "[exit code 1,",
        "┄ 1 of 10",
        "turns  ━━━━━━━━━━━━━━━━━━━━ 3 of 3",
        "! run_command grep y kit.py  exit code 1",
        "✗ read_file nowhere.py  not-found error: nowhere.py does not exist",
    ):
        assert wanted in drawn
    assert re.search(r"window ━+┄+ \d,\d{3} of \d\d,\d{3} tokens", drawn)


@pytest.mark.req("AG-19")
def test_what_waits_for_a_person_is_shown_with_the_command_that_answers(cli: InProcess) -> None:
    execution_id = cli("run", "Write it", "--agent-command", "true", "--json").document["execution_id"]
    drawn = cli("watch", execution_id, "--once").out
    assert f"treadle approve {execution_id}" in drawn
    lines = cli.start("watch")
    assert lines.stdout is not None
    first = lines.stdout.readline()
    lines.terminate()
    lines.communicate()
    assert f"{execution_id} waiting-input" in first
    assert f"treadle approve {execution_id}" in first


def test_an_owner_that_is_gone_is_noticed(cli: InProcess) -> None:
    with cli.running("Do it", "--agent-command", "true", *WAITS) as process:
        process.kill()
        process.wait()
    drawn = cli("watch", "last", "--once").out
    assert "owner gone" in drawn
    assert "treadle resume" in drawn


def test_foreign_text_can_neither_mark_up_nor_steer_the_terminal(cli: InProcess) -> None:
    cli(
        "run",
        "[red]Do[/red] \x1b]0;owned\x07it [/]",
        "--agent-command",
        "true",
        "--check",
        "echo '[bold]no[/]'; false",
        "--max-rounds",
        "1",
    )
    for drawn in (cli("watch", "last", "--once").out, cli("watch", "--once").out, cli("ls").out):
        assert "[red]Do[/red] ]0;ownedit [/]" in drawn
        assert "\x1b" not in drawn
    assert "[bold]no[/]" in cli("log", "last", "--kind", "judged").out


@pytest.mark.req("AG-20")
def test_a_log_is_filtered_tailed_and_followed(cli: InProcess) -> None:
    check = "test -f again || { touch again; exit 1; }"
    cli("run", "Do it", "--agent-command", "true", "--check", check)
    everything = [json.loads(line) for line in cli("log", "last", "--json").out.splitlines()]

    def seqs(*flags: str) -> list[int]:
        return [json.loads(line)["seq"] for line in cli("log", "last", "--json", *flags).out.splitlines()]

    assert seqs("--round", "2") == [one["seq"] for one in everything if one["round"] == 2]
    assert seqs("--kind", "act.finished", "--kind", "judged") == [
        one["seq"] for one in everything if one["kind"] in ("act.finished", "judged")
    ]
    assert seqs("--since", "5", "--tail", "3") == [one["seq"] for one in everything][-3:]
    assert seqs("--since", str(everything[-1]["seq"])) == []
    words = cli("log", "last").out
    assert "Do it (at most 10 rounds)" in words
    assert "settings=" not in words
    assert cli("log", "last", "--whole").code == 2


@pytest.mark.req("AG-20")
def test_a_later_run_is_told_how_an_earlier_one_went(cli: InProcess) -> None:
    first = cli(
        "run",
        "Mend the parser",
        "--agent-command",
        "true",
        "--check",
        "echo because of line 7; false",
        "--max-rounds",
        "1",
        "--json",
    )
    second = cli("run", "Try again", "--agent-command", "cat > told", "--check", "true", "--after", "last")
    assert second.code == 0
    told = (cli.workspace / "told").read_text()
    assert told.startswith("Try again")
    assert f"{first.document['execution_id']} (failed, exhausted)" in told
    assert "because of line 7" in told
    missing = cli("run", "Try again", "--agent-command", "true", "--check", "true", "--after", "nowhere0")
    assert missing.code == 2
    assert len(cli.documents()) == 2, "nothing was started"


def test_a_watcher_that_is_stopped_by_ctrl_c_says_nothing(cli: InProcess) -> None:
    cli("run", "Do it", "--agent-command", "true")
    watching = cli.start("watch", "last", stderr=subprocess.PIPE)
    assert watching.stdout is not None
    watching.stdout.readline()
    watching.send_signal(2)
    ran = finish(watching)
    assert (ran.code, ran.err) == (0, "")
