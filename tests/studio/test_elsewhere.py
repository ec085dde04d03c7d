"""Loops that run in other processes and in workers are read and steered through the ledger alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from subprocess import Popen

import anyio
import pytest

from support import postgres
from support.commandline import CommandLine
from support.studio import START, Served, served
from support.watching_stream import read
from treadle.cli.loopfile import define
from treadle.spec.commandline import encode
from treadle.spec.loopyaml import parse
from treadle.testing import Fault, Turn

SCRIPT = (Turn(text="looking", calls=(("list_dir", {}),)), Fault(hang=True))
CHECKED = "verify: {check: 'true'}\n"


async def _run(it: Served, cli: CommandLine, store: str) -> Popen[str]:
    file = it.studio.workspace / "loop.yaml"
    file.write_text(it.loop(CHECKED))
    return cli.start("run", "do it", "--loop", str(file), "--store", store)


async def _worker(it: Served, cli: CommandLine, store: str) -> Popen[str]:
    flags = define(parse(it.loop(CHECKED)), {}, it.studio.runtime.settings.defaults, it.studio.workspace)
    session = await it.studio.runtime.start(flags.to_loop(), "do it", definition=encode(flags))
    await session.close()  # nobody's, so a worker's
    return cli.start("worker", "--store", store)


async def _steered(it: Served, process: Popen[str]) -> None:
    with anyio.fail_after(90):
        while len(it.endpoint.requests) < 2:  # noqa: ASYNC110 - the model is asked over a socket
            await anyio.sleep(0.02)
    (one,) = (await it.get("/api/executions"))["executions"]
    name = one["execution_id"]
    found = await it.get(f"/api/executions/{name}")
    assert (found["here"], found["execution"]["owner_alive"], found["live"]["turns"]) == (False, True, 1)
    assert "pause" in found["can"]
    seen = {"seen": found["head"]}
    assert (await it.post(f"/api/executions/{name}/pause", {**seen, "actor": "bob"})).json()["given"] is True
    paused = await it.rest(name)
    assert (paused["live"]["status"], paused["here"]) == ("paused", False)
    with anyio.fail_after(90):  # its owner commits that it is paused, and lets go of it a moment later
        while (paused := await it.get(f"/api/executions/{name}"))["execution"]["owner_alive"]:  # noqa: ASYNC110 - it is asked over HTTP
            await anyio.sleep(0.02)
    events, _, gap = await read(it.studio.follower.feed, str(START), paused["head"])
    assert [one["seq"] for one in events] == list(range(1, paused["head"] + 1))
    assert not gap
    cancelled = await it.post(f"/api/executions/{name}/cancel", {"seen": paused["head"], "reason": "enough"})
    assert cancelled.json()["status"] == "cancelled"


@pytest.mark.req("CV-22", "CV-23")
@pytest.mark.parametrize("where", ["process", "worker"])
def test_a_loop_that_runs_elsewhere_is_read_and_paused_through_the_ledger_alone(tmp_path: Path, where: str) -> None:
    if where == "worker" and postgres.binaries() is None:
        pytest.skip("no Postgres server is installed")
    cli = CommandLine(tmp_path / "elsewhere")
    store = postgres.new_store() if where == "worker" else f"sqlite:///{tmp_path / 't.db'}"

    async def test() -> None:
        async with served(tmp_path, SCRIPT, store=store) as it:
            process = await (_worker if where == "worker" else _run)(it, cli, store)
            try:
                await _steered(it, process)
            finally:
                process.terminate()
                await anyio.to_thread.run_sync(partial(process.communicate, timeout=30))

    anyio.run(test)
