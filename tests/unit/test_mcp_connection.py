"""A real MCP server, on the official SDK, behaving well and badly: over pipes and over HTTP."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.tools import call, context
from treadle.core.errors import ConfigurationError, ToolError
from treadle.tools.mcp import MCPServer
from treadle.tools.mcp.toolset import MCPTools

SERVER = str(Path(__file__).parent.parent / "support" / "mcp_server.py")
ENVIRON = {
    "PATH": os.environ["PATH"],
    "HOME": os.environ.get("HOME", "/"),
    "MY_API_KEY": "sk-secret-secret",
    "KIND": "x",
}


def server(*behaviour: str, **more: Any) -> MCPServer:
    return MCPServer(**({"name": "t", "command": (sys.executable, SERVER, *behaviour)} | more))


def talk(to: MCPServer, work: Callable[[MCPTools], Awaitable[None]], workspace: str = ".") -> None:
    async def main() -> None:
        tools = MCPTools(to, ENVIRON, workspace)
        with anyio.fail_after(120):
            await tools.open()
            try:
                await work(tools)
            finally:
                await tools.close()

    anyio.run(main)


async def use(tools: MCPTools, name: str, **args: Any) -> str:
    return (await tools.run(call(tools, f"t__{name}", **args), context())).content


async def failed(tools: MCPTools, name: str, **args: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await use(tools, name, **args)
    return caught.value


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for happens in another process
        await anyio.sleep(0.02)


@pytest.mark.req("AG-24")
def test_tools_answers_errors_and_a_list_that_changes(tmp_path: Path) -> None:
    async def work(tools: MCPTools) -> None:
        assert "t__record" in [tool.name for tool in tools.tools()]
        assert {tool.kind for tool in tools.tools()} == {"mutating"}  # whatever the server says of itself
        assert next(tool for tool in tools.tools() if tool.name == "t__add").schema["required"] == ["a", "b"]
        assert await use(tools, "record", text="x") == "recorded x"
        assert '"sum": 3' in await use(tools, "add", a=1, b=2)
        assert "image/png" in await use(tools, "picture")
        assert await use(tools, "fails_in_words") == "Error: no such thing"
        assert (await failed(tools, "fails")).kind == "execution"
        assert (await failed(tools, "add", a="one", b=2)).kind == "execution"  # the server's own validation
        assert len(await use(tools, "flood", megabytes=6)) < 5 * 1024 * 1024
        before = tools.tools()
        await use(tools, "grow")
        await until(lambda: tools.tools() != before)
        assert await use(tools, "grown") == "grown"
        assert (await failed(tools, "shrunk")).kind == "not-found"

    talk(server("noise", "liar", f"marker={tmp_path / 'marker'}"), work)
    assert (tmp_path / "marker").read_text() == "start\nrecord x\n"


@pytest.mark.slow
@pytest.mark.req("AG-24")
def test_a_server_that_dies_is_started_anew_once(tmp_path: Path) -> None:
    marker, latch = tmp_path / "marker", tmp_path / "latch"

    async def work(tools: MCPTools) -> None:
        unknown = await failed(tools, "die")  # it changes something, perhaps: it is never sent twice
        assert "outcome unknown" in str(unknown)
        assert marker.read_text() == "start\ndie\n"
        assert '"sum": 3' in await use(tools, "add", a=1, b=2)  # by a new process
        assert marker.read_text() == "start\ndie\nstart\n"

    talk(server(f"marker={marker}"), work)
    marker.unlink()

    async def work_again(tools: MCPTools) -> None:
        assert await use(tools, "die", after=str(latch)) == "alive again"  # the user says that it changes nothing
        assert marker.read_text() == "start\ndie\nstart\ndie\n"
        assert "twice in a row" in str(await failed(tools, "die"))

    talk(server(f"marker={marker}", read_only=["die"]), work_again)


@pytest.mark.slow
@pytest.mark.req("AG-24")
def test_a_server_that_hangs_is_given_up_and_started_anew(tmp_path: Path) -> None:
    marker = tmp_path / "marker"

    async def work(tools: MCPTools) -> None:
        slow = await failed(tools, "sleep", seconds=3600)
        assert slow.kind == "timeout"
        assert not slow.transient
        assert '"sum": 3' in await use(tools, "add", a=1, b=2)

    talk(server(f"marker={marker}", call_timeout_s=1.0, connect_timeout_s=60), work)
    assert marker.read_text() == "start\nstart\n"


@pytest.mark.slow
def test_a_message_without_end_ends_the_connection() -> None:
    async def work(tools: MCPTools) -> None:
        flood = await failed(tools, "flood", megabytes=40)  # said twice, as text and as structured content
        assert "64 MiB" in str(flood)

    talk(server(), work)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "why"), [("die-on-start", "no licence file"), ("hang-on-start", "did not answer within")]
)
def test_a_server_that_does_not_start_is_a_configuration_error(behaviour: str, why: str) -> None:
    async def nothing(tools: MCPTools) -> None:
        raise AssertionError("it has started")

    with pytest.raises(ConfigurationError, match=why):
        talk(server(behaviour, connect_timeout_s=8.0 if behaviour == "hang-on-start" else 60), nothing)
    with pytest.raises(ConfigurationError, match="no-such-program"):
        talk(MCPServer(name="t", command=["no-such-program"]), nothing)
    with pytest.raises(ConfigurationError, match="NOT_SET"):
        talk(MCPServer(name="t", command=["sh"], env={"A": "${NOT_SET}"}), nothing)


@pytest.mark.req("SE-01")
def test_a_server_is_given_a_secret_only_by_name() -> None:
    async def work(tools: MCPTools) -> None:
        assert await use(tools, "environment", variable="MY_API_KEY") == "not set"
        assert await use(tools, "environment", variable="KIND") == "x"
        assert await use(tools, "environment", variable="GIVEN") == "sk-secret-secret"

    talk(server(env={"GIVEN": "${MY_API_KEY}"}), work)


@pytest.mark.req("AG-24")
def test_streamable_http_and_a_server_that_goes_away() -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, SERVER, "--http", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    async def main() -> None:
        await until(lambda: reachable(port))
        tools = MCPTools(MCPServer(name="t", url=f"http://127.0.0.1:{port}/mcp"), ENVIRON, ".")
        await tools.open()
        try:
            assert '"sum": 3' in await use(tools, "add", a=1, b=2)
            process.kill()
            process.wait()
            assert (await failed(tools, "add", a=1, b=2)).kind == "execution"
        finally:
            await tools.close()

    try:
        anyio.run(main)
    finally:
        process.kill()
        process.wait()


def reachable(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
