"""`treadle run --agent NAME`: a coding agent by name, here a script that prints what the real one has printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.commandline import CommandLine

RECORDED = Path(__file__).parent.parent / "fixtures" / "agents"


@pytest.mark.req("AG-26")
def test_usage_cost_and_ending_of_a_named_agent_are_in_the_accounts(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path).git()
    programs = tmp_path / "bin"
    programs.mkdir()
    agent = programs / "claude"
    agent.write_text(
        f'#!/bin/sh\ncat > prompt.txt\necho "$*" > arguments.txt\n[ -f again ] && f=claude.json || f=claude-max-turns.json\n'
        f"touch again\ncat {RECORDED}/$f\n"
    )
    agent.chmod(0o755)
    path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    ran = cli("run", "Fix it", "--agent", "claude --model opus", "--check", "grep -q Fix prompt.txt && grep -q rejected prompt.txt",
              "--json", environ=path)  # fmt: skip
    document = ran.document
    assert document["code"] == "accepted", ran.err
    assert document["rounds"] == 2
    assert document["cost_usd"] == pytest.approx(0.03455 + 0.017275)
    assert document["usage"]["requests"] == 4
    assert document["usage"]["input_tokens"] == 63_060
    assert document["output"]["said"] == "The test passes now."
    assert "-p --output-format json" in (cli.workspace / "arguments.txt").read_text()
    assert "--model opus" in (cli.workspace / "arguments.txt").read_text()
    assert "error_max_turns" in cli("log", "last", "--json").out
    assert document["usage"]["in_doubt_requests"] == 0


@pytest.mark.req("AG-26")
def test_a_named_agent_that_ends_without_telling_its_usage_leaves_a_request_in_doubt(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path).git()
    programs = tmp_path / "bin"
    programs.mkdir()
    agent = programs / "codex"
    agent.write_text(f"#!/bin/sh\ncat {RECORDED}/codex-failed.jsonl; exit 1\n")
    agent.chmod(0o755)
    path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    ran = cli("run", "Fix it", "--agent", "codex", "--check", "false", "--max-rounds", "1", "--json", environ=path)
    assert ran.document["usage"]["in_doubt_requests"] == 1
    assert "codex: You've hit your usage limit.; the command failed: exit code 1" in ran.err


def test_an_unknown_agent_and_one_that_is_not_installed_are_usage_errors(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    unknown = cli("run", "x", "--agent", "nobody", "--check", "true")
    assert unknown.code == 2
    assert "claude, codex, gemini" in unknown.err
    assert cli("run", "x", "--agent", "opencode", "--check", "true", environ={"PATH": "/nowhere"}).code == 2
    assert cli("run", "x", "--agent", "claude", "--agent-command", "true", "--check", "true").code == 2
