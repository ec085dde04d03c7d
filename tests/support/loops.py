"""Loops of the installed command on a scripted endpoint, and what must hold of whatever an endpoint was asked."""

from __future__ import annotations

from typing import Any

from support.commandline import CommandLine, Ran
from treadle.testing import ScriptedEndpoint, Turn

FIRST = Turn(text="I look first.")
LOOK = Turn(calls=[("list_dir", {})])
WRITE = Turn(calls=[("write_file", {"path": "answer.txt", "text": "42\n"})])
DONE = Turn(calls=[("finish", {"summary": "wrote 42"})])
CHECK = "grep -q 42 answer.txt"
GOOD = (FIRST, WRITE, DONE)


def run(
    cli: CommandLine,
    endpoint: ScriptedEndpoint,
    *more: str,
    task: str = "Write the answer",
    check: str = CHECK,
    **options: Any,
) -> Ran:
    """`treadle run` on the endpoint, at 1 and 2 dollars per million tokens."""
    model = ("--model", "openai:scripted", "--base-url", endpoint.url, "--price", "1,2")
    return cli("run", task, "--check", check, *model, "--json", *more, **options)


def unpaired(body: dict[str, Any]) -> list[str]:
    """Calls of a request without exactly one result right behind them, and results without a call."""
    wrong: list[str] = []
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                wrong.append(f"a result without a call: {message['tool_call_id']}")
            continue
        wrong += [f"a call without a result: {one}" for one in waiting]
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return wrong + [f"a call without a result: {one}" for one in waiting]
