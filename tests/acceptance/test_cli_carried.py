"""Skills, scoped rules and observed effects in a real run, through a kill, as `treadle frame show` tells them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.commandline import CommandLine
from treadle.testing import ScriptedEndpoint, Turn

SKILL = "---\nname: answers\ndescription: How answers are written here.\n---\nAlways end with a full stop.\n"


def texts(body: Any) -> str:
    return "\n".join(str(message.get("content")) for message in body["messages"])


@pytest.mark.req("FR-13", "FR-14", "FR-15", "AG-25")
@pytest.mark.parametrize("crash", ["", "after-tool", "before-model"])
def test_skills_rules_and_effects_are_in_the_frame_and_survive_a_kill(tmp_path: Path, crash: str) -> None:
    cli = CommandLine(tmp_path).git()
    (cli.workspace / ".claude" / "skills" / "answers").mkdir(parents=True)
    cli.write(".claude/skills/answers/SKILL.md", SKILL)
    cli.write("AGENTS.md", "Write British English.")
    cli.write("old.txt", "old\n")
    script = [
        Turn(text="Skill first.", calls=[("activate_skill", {"name": "answers"})]),
        Turn(calls=[("write_file", {"path": "answer.txt", "text": "41"})]),
        Turn(calls=[("run_command", {"command": "rm old.txt; echo 42. > answer.txt"})]),
        Turn(calls=[("read_file", {"path": "missing.txt"})]),
        Turn(calls=[("finish", {"summary": "42."})]),
    ]
    with ScriptedEndpoint(script) as endpoint:
        environ = {"TREADLE_CRASH_AT": f"{crash}:2"} if crash else {}
        ran = cli(
            "run", "Answer", "--check", "grep -q 42 answer.txt", "--model", "openai:scripted", "--base-url", endpoint.url,
            "--json", environ=environ,
        )  # fmt: skip
        if crash:
            assert ran.code == -9
            ran = cli("resume", "last", "--json")
    assert ran.document["code"] == "accepted", ran.err
    frame = cli("frame", "show", "last", "--json").document
    frame = frame.get("frame", frame)
    effects = {(effect["kind"], effect["target"]) for effect in frame["observedEffects"]}
    assert {("fs.write", "answer.txt"), ("fs.delete", "old.txt"), ("fs.read", "missing.txt")} <= effects
    assert any(kind == "process.spawn" for kind, _ in effects)
    assert frame["activeSkillIds"] == ["answers"]
    assert frame["activeSkillActivations"]["answers"]["messageId"].isdigit()
    assert frame["injectedScopedRuleIds"] == ["AGENTS.md"]
    last = texts(endpoint.requests[-1])
    assert last.count("Always end with a full stop.") == 1
    assert last.count("Write British English.") == 1
    assert "Write British English." not in texts(endpoint.requests[0])
    assert "How answers are written here." in texts(endpoint.requests[0])


@pytest.mark.req("FR-13")
def test_a_malformed_skill_is_a_usage_error_with_its_line(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    (cli.workspace / "skills" / "x").mkdir(parents=True)
    cli.write("skills/x/SKILL.md", "---\nname: x\ndescription: [\n---\nb")
    with ScriptedEndpoint([]) as endpoint:
        ran = cli(
            "run", "x", "--check", "true", "--model", "openai:scripted", "--base-url", endpoint.url, "--skills", "skills"
        )  # fmt: skip
    assert ran.code == 2
    assert "SKILL.md:3:" in ran.err
