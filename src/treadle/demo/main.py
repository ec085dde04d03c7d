"""`treadle demo`: the main job for real on this machine, with a kill in the middle, and the accounts of it."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.streams.text import TextReceiveStream

from treadle.core.errors import TreadleError
from treadle.models.local.process import local_server

from .worker import RESULT
from .workspace import lay_out

if TYPE_CHECKING:
    from anyio.abc import Process

EXECUTION = "demo"
KILL_AFTER = 4  # writes: in the middle of the first round
YOURS = """\
Now your own repository and model:

    treadle run "Fix the failing test" --check "pytest -q" --workspace . --model openai:gpt-5-mini --max-cost 1
"""


def run_demo(folder: Path | None = None) -> int:
    """Runs it in a folder, or in one of its own. 0 where the work was accepted and the accounts hold."""
    folder = folder or Path(tempfile.mkdtemp(prefix="treadle-demo-"))
    return anyio.run(_demo, folder)


async def _demo(folder: Path) -> int:
    lay_out(folder / "kit")
    say(f"A module without bodies, and its tests: {folder / 'kit'}")
    say("Starting SmolLM2, 135 million parameters, on this machine. Nothing it writes is canned.")
    async with local_server() as base_url:
        await _until_killed(folder, base_url)
        document = await _until_done(folder, base_url)
    _accounts(folder, document)
    return 0 if document["code"] == "accepted" else 1


async def _until_killed(folder: Path, base_url: str) -> None:
    """A first worker, killed by SIGKILL as soon as it has asked the model for more after its fourth write."""
    writes = 0
    async with await _worker(folder, base_url) as process:
        async for line in _lines(process):
            say(line)
            writes += line.startswith("  write")
            if writes == KILL_AFTER:
                process.send_signal(signal.SIGKILL)
                await process.wait()
                say("killed with SIGKILL, in the middle of its work")
                return
    raise TreadleError(f"The worker ended before it could be killed. What it left is in {folder}.")


async def _until_done(folder: Path, base_url: str) -> dict[str, Any]:
    async with await _worker(folder, base_url) as process:
        async for line in _lines(process):
            if line.startswith(RESULT):
                return json.loads(line.removeprefix(RESULT), parse_float=Decimal)
            say(line)
    raise TreadleError(f"The resumed worker ended without a result. What it left is in {folder}.")


async def _worker(folder: Path, base_url: str) -> Process:
    command = [sys.executable, "-m", "treadle.demo.worker", str(folder), base_url, EXECUTION]
    return await anyio.open_process(command, stderr=None)


async def _lines(process: Process) -> AsyncIterator[str]:
    assert process.stdout is not None
    rest = ""
    async for text in TextReceiveStream(process.stdout):
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            yield line


def _accounts(folder: Path, document: dict[str, Any]) -> None:
    usage = document["usage"]
    outcome = document["outcome"] or {"kind": document["code"]}
    say("")
    say(f"{outcome['kind']} after {document['rounds']} rounds and {document['turns_taken']} turns")
    say(f"  counted   {usage['requests']} requests, {usage['input_tokens']} + {usage['output_tokens']} tokens")
    say(f"  in doubt  {usage['in_doubt_requests']} request(s): sent before the kill, answer unknown")
    say("  each turn that was done before the kill is counted once, and none was done again")
    store = f"sqlite:///{folder / 'treadle.db'}"
    say("")
    say(f"Look at it:  treadle show {EXECUTION} --store {store}")
    say(f"             treadle log {EXECUTION} --store {store}")
    say(f"             treadle diff {EXECUTION} --store {store}")
    say("")
    say(YOURS.rstrip())


def say(line: str) -> None:
    """A line for the person at the terminal."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
