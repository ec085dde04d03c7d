"""Servers that others have written, from npm and PyPI, fetched into a cache on first use; skipped where that cannot be done."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from support.tools import call, context
from treadle.core.errors import ToolError
from treadle.tools.mcp import MCPServer
from treadle.tools.mcp.toolset import MCPTools

CACHE = Path(os.environ.get("TREADLE_TEST_CACHE") or Path.home() / ".cache" / "treadle-tests")
NPM = ("@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem")
PYPI = ("mcp-server-git", "mcp-server-time")
PATIENCE_S = 240
pytestmark = [pytest.mark.slow, pytest.mark.req("AG-24")]


def fetched(folder: Path, *commands: list[str]) -> Path:
    """The folder, once these commands have filled it; marked, so that half a folder is made anew."""
    done = folder / "complete"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for command in commands:
            try:
                ran = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                pytest.skip(f"{command[0]} cannot fetch the servers: {error}")
            if ran.returncode:
                pytest.skip(f"{command[0]} cannot fetch the servers: {ran.stderr.decode(errors='replace')[-300:]}")
        done.touch()
    return folder


@pytest.fixture(scope="module")
def npm() -> Path:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = CACHE / "mcp-npm"
    install = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--silent", *NPM]
    return fetched(folder, install) / "node_modules" / ".bin"


@pytest.fixture(scope="module")
def pypi() -> Path:
    folder = CACHE / "mcp-pypi"
    python = folder / "venv" / "bin" / "python"
    if shutil.which("uv") is not None:
        commands = [
            ["uv", "venv", "-q", str(folder / "venv")],
            ["uv", "pip", "install", "-q", "--python", str(python), *PYPI],
        ]
    else:
        commands = [
            [sys.executable, "-m", "venv", str(folder / "venv")],
            [str(python), "-m", "pip", "install", "-q", *PYPI],
        ]
    return fetched(folder, *commands) / "venv" / "bin"


def talk(server: MCPServer, work: Callable[[MCPTools], Awaitable[None]], folder: Path) -> None:
    async def main() -> None:
        tools = MCPTools(server, os.environ, str(folder))
        with anyio.fail_after(PATIENCE_S):
            await tools.open()
            try:
                await work(tools)
            finally:
                await tools.close()

    anyio.run(main)


async def use(tools: MCPTools, name: str, **args: object) -> str:
    return (await tools.run(call(tools, name, **args), context())).content


def test_everything(npm: Path, tmp_path: Path) -> None:
    async def work(tools: MCPTools) -> None:
        assert await use(tools, "e__echo", message="hi") == "Echo: hi"
        assert "3" in await use(tools, "e__get-sum", a=1, b=2)
        assert "temperature" in await use(tools, "e__get-structured-content", location="New York")
        assert "image/png" in await use(tools, "e__get-tiny-image")
        assert "demo://" in await use(tools, "e__get-resource-links", count=2)
        assert (await use(tools, "e__get-annotated-message", messageType="error")).startswith("Error")  # only words

    talk(MCPServer(name="e", command=[str(npm / "mcp-server-everything")]), work, tmp_path)


def test_filesystem(npm: Path, tmp_path: Path) -> None:
    async def work(tools: MCPTools) -> None:
        kinds = {tool.name: tool.kind for tool in tools.tools()}
        assert kinds["f__read_text_file"] == "read"
        assert kinds["f__write_file"] == "mutating"
        await use(tools, "f__write_file", path=str(tmp_path / "a.txt"), content="hello")
        assert await use(tools, "f__read_text_file", path=str(tmp_path / "a.txt")) == "hello"  # said twice, told once
        with pytest.raises(ToolError) as refused:
            await use(tools, "f__read_text_file", path="/etc/passwd")
        assert refused.value.kind == "safety"

    server = MCPServer(
        name="f", command=[str(npm / "mcp-server-filesystem"), str(tmp_path)], read_only=["read_text_file"]
    )
    talk(server, work, tmp_path)
    assert (tmp_path / "a.txt").read_text() == "hello"


def test_git_and_time(pypi: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    async def git(tools: MCPTools) -> None:
        assert "No commits yet" in await use(tools, "g__git_status", repo_path=str(tmp_path))
        with pytest.raises(ToolError):
            await use(tools, "g__git_status", repo_path="/nowhere")

    async def time(tools: MCPTools) -> None:
        assert "Europe/Paris" in await use(tools, "t__get_current_time", timezone="Europe/Paris")

    talk(MCPServer(name="g", command=[str(pypi / "mcp-server-git"), "--repository", str(tmp_path)]), git, tmp_path)
    talk(MCPServer(name="t", command=[str(pypi / "mcp-server-time")]), time, tmp_path)
