"""`treadle run --mcp`: a real server beside the built-in tools, through a kill, and gone with the engine."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import pytest

from support.commandline import CommandLine
from treadle.testing import ScriptedEndpoint, Turn

SERVER = str(Path(__file__).parent.parent / "support" / "mcp_server.py")


def processes_with(text: str) -> list[int]:
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if text.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


@pytest.mark.req("AG-24", "AG-21")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_call_in_flight_is_in_doubt_after_a_kill_and_the_server_is_gone(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path).git()
    marker = tmp_path / "marker"
    servers = {"notes": {"command": sys.executable, "args": [SERVER, f"marker={marker}"]}}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    script = [
        Turn(text="A note first.", calls=[("notes__record", {"text": "one"})]),
        Turn(calls=[("notes__sleep", {"seconds": 600})]),
        Turn(calls=[("notes__record", {"text": "two"})]),
        Turn(calls=[("finish", {"summary": "noted"})]),
    ]
    with ScriptedEndpoint(script) as endpoint:
        arguments = (
            "Note it",
            "--check",
            f"grep -q two {marker}",
            "--model",
            "openai:scripted",
            "--base-url",
            endpoint.url,
        )
        with cli.running(*arguments, "--mcp-config", str(config), "--json") as process:
            deadline = time.monotonic() + 100
            while cli("log", "last", "--json").out.count('"tool.intended"') != 2:
                assert time.monotonic() < deadline
            assert processes_with(str(marker))
            process.send_signal(signal.SIGKILL)
            process.wait()
        while processes_with(str(marker)):
            assert time.monotonic() < deadline, "the server has outlived the engine"
        ran = cli("resume", "last", "--json")
    assert ran.document["status"] == "done", ran.err
    assert marker.read_text() == "start\nrecord one\nstart\nrecord two\n"
    log = cli("log", "last", "--json").out
    assert "Outcome unknown" in log
    tools = [tool["function"]["name"] for tool in endpoint.requests[0]["tools"]]
    assert "notes__record" in tools
    assert "read_file" in tools


def test_a_server_that_cannot_be_started_is_a_usage_error(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    given = ("run", "x", "--check", "true", "--model", "openai:scripted", "--base-url", "http://127.0.0.1:9/v1")
    with ScriptedEndpoint([]) as endpoint:
        ran = cli(*given[:-1], endpoint.url, "--mcp", "notes=no-such-program")
    assert ran.code == 2
    assert "no-such-program" in ran.err
    assert cli("run", "x", "--check", "true", "--agent-command", "true", "--mcp", "a=b").code == 2
    assert cli(*given, "--mcp", "a").code == 2
    assert cli(*given, "--mcp-config", "none.json").code == 2
    assert cli("ls", "--json").document == []
