"""An agent of the installed command that forks children, as a loop file says: parked, answered, gone on with, shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.commandline import InProcess
from treadle.testing import ScriptedEndpoint, Turn

FILE = """
treadle: 1
name: family
control: {max_turns: 20, max_cost: 0.5}
foundation: {model: "openai:scripted", price: "1,2"}
act:
  children:
    scout: {about: Finds out what is there.}
    writer: {about: Writes answer.txt., check: grep -q 42 answer.txt, max_turns: 5}
verify: {check: grep -q 42 answer.txt}
"""


def fork(child: str) -> Turn:
    return Turn(calls=[("fork", {"child": child, "task": f"Task of {child}."})])


def script(body: dict[str, Any]) -> Turn:
    """Three conversations on one endpoint, told apart by their task."""
    messages = body["messages"]
    task = next(message["content"] for message in messages if message["role"] == "user")
    done = sum(message["role"] == "assistant" for message in messages)
    if "Task of writer" in task:
        heard = [message["content"] for message in messages if message["role"] == "tool"]
        return (
            Turn(calls=[("ask_person", {"question": "Which?", "choices": ["41", "42"]})]),
            Turn(calls=[("write_file", {"path": "answer.txt", "text": f"{heard[-1] if heard else ''}\n"})]),
            Turn(calls=[("finish", {"summary": "wrote it"})]),
        )[done]
    if "Task of scout" in task:
        return (Turn(calls=[("list_dir", {})]), Turn(calls=[("finish", {"summary": "nothing yet"})]))[done]
    return (fork("scout"), fork("writer"), Turn(calls=[("finish", {"summary": "done"})]))[done]


@pytest.mark.req("FR-22")
def test_a_childs_question_is_answered_at_the_child_and_both_go_on(tmp_path: Path) -> None:
    cli = InProcess(tmp_path).git()
    cli.write("loop.yaml", FILE)
    with ScriptedEndpoint(script) as endpoint:
        ran = cli("run", "--loop", "loop.yaml", "--base-url", endpoint.url, "Make it", "--json")
        assert ran.code == 3, ran.err
        parent, writer = ran.document["execution_id"], ran.document["pending"]["child"]
        assert ran.document["children"][1] == {
            "execution_id": writer, "name": "writer", "open": True, "waits_for": "question", "reserved_usd": 0,
        }  # fmt: skip
        refused = cli("resume", writer)
        assert refused.code == 2
        assert f"treadle resume {parent}" in refused.err
        listed = cli("ls", "--json").document
        assert {one["execution_id"]: one.get("parent") for one in listed}[writer] == parent
        assert f"{writer}  writer  waiting-input, question, 1 turn, at most $" in cli("show", parent).out
        assert cli("answer", writer, "42", "--as", "eve").code == 0
        store = f"sqlite:///{cli.store_file}"
        shown = " ".join(cli("show", writer, "--store", store).out.split())
        assert f"Answered by eve, to the one that forked it; treadle resume {parent} --store {store} goes on" in shown
        ended = cli("resume", parent, "--json")
    assert (ended.code, ended.document["code"]) == (0, "accepted")
    assert ended.document["turns_taken"] == 8
    assert ended.document["usage"]["requests"] == len(endpoint.requests) == 8
    assert (cli.workspace / "answer.txt").read_text() == "42\n"
    log = cli("log", parent).out
    assert "child.intended" in log
    assert "writer ended done, accepted, after 1 round." in log
