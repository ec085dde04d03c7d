"""A scripted loop in whose run every field of the frame changes, for the library and, as a script of an endpoint, for the command line.

Round 1 activates a skill, writes a file that a scoped rule is about, asks for a lease, and leaves what a gate refuses. Round 2, by the
next model of the ladder, mends it, and the judge rejects. Round 3 is accepted, and the judge says what the recalled lesson did.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from treadle import Agent, Judge, Loop, Usage
from treadle.models.prices import parse_price
from treadle.ports.lessons import Candidate
from treadle.testing import ScriptedModel, Turn

TASK = "Write the right answer into the answer document"
LESSON = "L0123456789"
CONSTANT = ("kind", "loopId", "stepExecId", "roleKey", "loopInputJson")  # what a frame is of, and for what
GATE = "grep -q 42 src/answer.txt"
FEE = Usage(input_tokens=100, output_tokens=10)
DATES = {"GIT_AUTHOR_DATE": "@1 +0000", "GIT_COMMITTER_DATE": "@1 +0000"}  # the same commit whenever it is made
LEASES = ("fs.read", "fs.write:src/**", "process.spawn:grep*")


def _turn(*calls: tuple[str, dict[str, Any]]) -> Turn:
    return Turn(calls=list(calls), usage=FEE)


ACT = (
    Turn(text="I look first.", usage=FEE),
    _turn(("activate_skill", {"name": "answers"}), ("read_file", {"path": "README.md"})),
    _turn(("request_permission", {"capability": "fs.write:docs/note.md", "reason": "a note"})),
    _turn(("write_file", {"path": "src/answer.txt", "text": "41\n"})),
    _turn(("write_file", {"path": "docs/note.md", "text": "noted\n"})),
    _turn(("finish", {"summary": "wrote 41"})),
    _turn(("write_file", {"path": "src/answer.txt", "text": "42\n"})),
    _turn(("finish", {"summary": "wrote 42"})),
    _turn(("write_file", {"path": "src/more.txt", "text": "because\n"})),
    _turn(("finish", {"summary": "wrote 42, and why"})),
)


def judge(body: dict[str, Any]) -> Turn:
    """Accepts what says why."""
    asked = next(message["content"] for message in body["messages"] if message["role"] == "user")
    verdict = {"accept": "and why" in asked, "feedback": "" if "and why" in asked else "say why"}
    return _turn(("verdict", {**verdict, "lessons": {LESSON: "helpful: it named the file"}}))


def endpoint_script(body: dict[str, Any]) -> Turn:
    """Both conversations on one endpoint."""
    if any(tool["function"]["name"] == "verdict" for tool in body.get("tools", ())):
        return judge(body)
    return ACT[sum(message["role"] == "assistant" for message in body["messages"])]


def prepare(workspace: Path) -> None:
    """A repository with a commit, a skill and scoped rules."""
    (workspace / "src").mkdir(parents=True)
    (workspace / "src" / "AGENTS.md").write_text("Answers end with a line break.\n")
    (workspace / ".treadle" / "skills" / "answers").mkdir(parents=True)
    skill = "---\nname: answers\ndescription: How answers are written here.\n---\nIn digits.\n"
    (workspace / ".treadle" / "skills" / "answers" / "SKILL.md").write_text(skill)
    (workspace / "README.md").write_text("# Answers\n")
    environ = {**os.environ, **DATES, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    for command in (("init", "-q", "-b", "main", "."), ("add", "-A"), (*who, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *command], cwd=workspace, check=True, env=environ, capture_output=True)


def lesson(role: str, workspace: Path) -> Candidate:
    """What an earlier loop has taught."""
    return Candidate(
        id=LESSON,
        text="The answer document is src/answer.txt.",
        role=role,
        workspace=str(workspace.resolve()),
        source="loop",
        task=TASK,
        step_exec_id="earlier",
        at_us=1,
    )


def whole_loop(workspace: Path, act: tuple[Turn, ...] = ACT) -> Loop:
    """The loop for the library."""
    price = parse_price("10,20")
    first, second = (ScriptedModel(list(act), name=f"scripted:{name}", price=price) for name in ("first", "second"))
    return Loop(
        name="whole",
        act=Agent(model=first, escalate_to=(second,), escalate_after=1, allow=LEASES, may_ask=("fs.write:docs/**",)),
        evaluate=Judge(model=ScriptedModel(judge, name="scripted:judge", price=price)),
        workspace=workspace,
        isolate=True,
        gates={"answer": GATE},
        max_rounds=5,
    )
