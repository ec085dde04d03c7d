"""Several workers on one Postgres store: what one leaves behind, killed or stopped, goes on at another by itself, and is paid once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from support import postgres, temporal
from support.commandline import CommandLine, finish, wait_for
from treadle.app.runtime import Runtime
from treadle.ledger.postgres import open_postgres
from treadle.settings import load_settings
from treadle.spec.commandline import CommandLineLoop, encode
from treadle.testing import ScriptedEndpoint, Turn

pytestmark = pytest.mark.skipif(postgres.binaries() is None, reason="no Postgres server is installed")

ACT = "while test ! -e ../go; do sleep 0.05; done; echo 42 > answer.txt"
LOOPS = 2


@contextmanager
def worker(cli: CommandLine, url: str, *more: str) -> Generator[subprocess.Popen[str]]:
    process = cli.start("worker", "--store", url, *more)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def submit(cli: CommandLine, url: str) -> set[str]:
    """Loops that nobody runs yet, as `--engine workers` leaves them."""
    ledger = await open_postgres(url)
    runtime = Runtime(ledger, load_settings(environ=cli.environ))
    ids: set[str] = set()
    for number in range(LOOPS):
        folder = cli.workspace / f"w{number}"
        folder.mkdir()
        loop = CommandLineLoop(
            workspace=str(folder),
            agent_command=ACT,
            check="grep -q 42 answer.txt",
        )
        session = await runtime.start(loop.to_loop(), "Write the answer", definition=encode(loop))
        await session.close()
        ids.add(session.execution_id)
    await runtime.close()
    return ids


async def judged(url: str, ids: set[str]) -> list[int]:
    """How many verdicts each has; the store is sound."""
    ledger = await open_postgres(url)
    assert await ledger.verify() == []
    found = [[record.kind for record in await ledger.records(one)].count("judged") for one in ids]
    await ledger.close()
    return found


@pytest.mark.req("RT-02", "RT-03", "LG-03")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_what_a_killed_or_stopped_worker_leaves_goes_on_at_another(tmp_path: Path, how: signal.Signals) -> None:
    cli, url = CommandLine(tmp_path), postgres.new_store()
    ids = anyio.run(submit, cli, url)
    with worker(cli, url) as first:
        for _ in range(LOOPS):
            wait_for(first, "goes on in round 1")
        with worker(cli, url) as second:
            os.kill(first.pid, how)
            for _ in range(LOOPS):
                wait_for(second, "goes on in round 1")
            (cli.workspace / "go").touch()
            ended = "".join(wait_for(second, "done, accepted") for _ in range(LOOPS))
        assert all(one in ended for one in ids)
        if how is signal.SIGSTOP:
            os.kill(first.pid, signal.SIGCONT)
            for _ in range(LOOPS):
                wait_for(first, "another worker has taken it over")
    assert anyio.run(judged, url, ids) == [1] * LOOPS


@pytest.mark.req("RT-02")
def test_a_run_that_is_given_to_the_workers_is_shown_and_ends_as_if_it_had_run_here(tmp_path: Path) -> None:
    cli, url = CommandLine(tmp_path), postgres.new_store()
    for name in ("here", "there"):
        (cli.workspace / name).mkdir()
    flags = ["--agent-command", "echo 42 > answer.txt", "--check", "grep -q 42 answer.txt", "--json", "--store", url]
    here = cli("run", "Write it", *flags, "--workspace", "here")
    with worker(cli, url):
        there = cli("run", "Write it", *flags, "--engine", "workers", "--workspace", "there")
    assert (here.code, there.code) == (0, 0)
    assert "accepted" in there.err
    differs = {
        "execution_id",
        "elapsed_ms",
        "act_elapsed_ms",
        "evaluate_elapsed_ms",
        "started_at",
        "finished_at",
        "workspace",
    }
    both = [{k: v for k, v in json.loads(ran.out).items() if k not in differs} for ran in (here, there)]
    for document in both:
        document["output"].pop("elapsed_ms")
    assert both[0] == both[1]


@pytest.mark.req("RT-02")
def test_on_temporal_too_what_a_killed_worker_leaves_goes_on_at_another_by_itself(tmp_path: Path) -> None:
    cli, url = CommandLine(tmp_path), postgres.new_store()
    address = f"{temporal.server()}/default/{tmp_path.name}"
    cli.environ |= {"TREADLE_STORE": url, "TREADLE_ENGINE": "temporal", "TREADLE_ADDRESS": address}
    (cli.workspace / "w").mkdir()
    with worker(cli, url) as first:
        flags = ["--agent-command", ACT, "--check", "grep -q 42 answer.txt", "--workspace", "w", "--detach"]
        execution_id = cli("run", "Write it", *flags).out.strip()
        wait_for(first, f"{execution_id}: goes on")
        with worker(cli, url) as second:
            first.kill()
            wait_for(second, f"{execution_id}: goes on")
            (cli.workspace / "go").touch()
            wait_for(second, f"{execution_id}: done, accepted")
            asks = cli("run", "Write it", "--agent-command", "true", "--workspace", "w")
            assert asks.code == 3
            assert cli("approve", "last").code == 0
            wait_for(second, ": done, ")
            second.send_signal(signal.SIGTERM)
            assert second.wait(60) == 0


def test_what_lies_in_memory_cannot_be_given_to_workers(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    ran = finish(cli.start("run", "x", "--agent-command", "true", "--store", "memory:", "--engine", "workers"))
    assert (ran.code, "store that others reach" in ran.err) == (2, True)


FAMILY = """
treadle: 1
name: family
control: {max_turns: 20, max_cost: 0.5}
foundation: {model: "openai:scripted", price: "1,2"}
act:
  children:
    writer: {about: Writes answer.txt., check: grep -q 42 answer.txt}
verify: {check: grep -q 42 answer.txt}
"""


def of_family(body: dict[str, Any]) -> Turn:
    """Parent and child on one endpoint: the child waits for somebody outside, then asks a person."""
    messages = body["messages"]
    task = next(message["content"] for message in messages if message["role"] == "user")
    done = sum(message["role"] == "assistant" for message in messages)
    if "Task of writer" not in task:
        fork = Turn(calls=[("fork", {"child": "writer", "task": "Task of writer."})])
        return (Turn(text="I hand it on."), fork, Turn(calls=[("finish", {"summary": "done"})]))[done]
    return (
        Turn(text="I wait."),
        Turn(calls=[("run_command", {"command": "touch ../at-work; while test ! -e ../go; do sleep 0.05; done"})]),
        Turn(calls=[("ask_person", {"question": "Which?", "choices": ["41", "42"]})]),
        Turn(calls=[("write_file", {"path": "answer.txt", "text": f"{messages[-1]['content']}\n"})]),
        Turn(calls=[("finish", {"summary": "wrote it"})]),
    )[done]


@pytest.mark.req("FR-22", "RT-02")
@pytest.mark.parametrize("engine", ["workers", pytest.param("temporal", marks=pytest.mark.slow)])
def test_a_child_at_work_goes_on_with_its_parent_at_another_worker(engine: str, tmp_path: Path) -> None:
    cli, url = CommandLine(tmp_path), postgres.new_store()
    cli.environ |= {"TREADLE_STORE": url, "TREADLE_ENGINE": engine}
    if engine == "temporal":
        cli.environ["TREADLE_ADDRESS"] = f"{temporal.server()}/default/{tmp_path.name}"
    (cli.workspace / "w").mkdir()
    cli.write("loop.yaml", FAMILY)
    with ScriptedEndpoint(of_family) as endpoint, worker(cli, url) as first:
        flags = ("--loop", "loop.yaml", "--base-url", endpoint.url, "--workspace", "w", "--detach")
        parent = cli("run", "Make it", *flags).out.strip()
        wait_for(first, f"{parent}: goes on")
        while not (cli.workspace / "at-work").exists():
            assert first.poll() is None
            time.sleep(0.05)
        with worker(cli, url) as second:
            first.kill()
            wait_for(second, f"{parent}: goes on")
            (cli.workspace / "go").touch()
            wait_for(second, f"{parent}: waiting-input")
            (child,) = (one["execution_id"] for one in cli("ls", "--json").document if one.get("parent") == parent)
            assert cli("answer", child, "42", "--as", "eve").code == 0
            wait_for(second, f"{parent}: done, accepted")
    shown = cli("show", parent, "--json").document
    assert (shown["turns_taken"], shown["usage"]["requests"]) == (8, len(endpoint.requests))
    assert (cli.workspace / "w" / "answer.txt").read_text() == "42\n"
    assert anyio.run(judged, url, {parent, child}) == [1, 1]
