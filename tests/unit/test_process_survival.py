"""What becomes of commands when the engine that started them is killed with SIGKILL: a real process, really killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from treadle.tools.process import kill_recorded

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")

ENGINE = """
import anyio, os, sys
from treadle.tools.process import run_process

def started(pgid, birth):
    if {fork} and os.fork() == 0:
        print(os.getpid(), file=open("fork.pid", "w"), flush=True)
        while os.read(0, 1):
            pass
        os._exit(0)
    print(pgid, birth, flush=True)

async def main():
    await run_process(sys.argv[1], cwd=".", env=dict(os.environ), timeout_s=None, output_limit_bytes=100, started=started)

anyio.run(main)
"""
WRITER = "sh -c 'echo $$ > {name}.pid; while :; do echo x >> {name}.log; sleep 0.01; done'"
COMMAND = "\n".join(
    [
        WRITER.format(name="plain") + " &",
        "nohup " + WRITER.format(name="nohup") + " &",
        "setsid " + WRITER.format(name="setsid") + " &",
        WRITER.format(name="front"),
    ]
)
NAMES = ("plain", "nohup", "setsid", "front")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.005)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


@contextmanager
def engine(folder: Path, *, fork: bool = False) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """An engine whose command has four writers at work, and the group that it recorded."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENGINE.format(fork=fork), COMMAND],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        pgid, birth = process.stdout.readline().split()
        until(lambda: all(size(folder / f"{name}.log") > 2 for name in NAMES))
        yield process, int(pgid), birth
    finally:
        process.kill()
        process.communicate()


def writers(folder: Path) -> dict[str, int]:
    return {name: int((folder / f"{name}.pid").read_text()) for name in NAMES}


@pytest.mark.req("AG-23")
def test_when_the_engine_is_killed_every_descendant_of_its_command_stops_writing(tmp_path):
    with engine(tmp_path) as (process, _, _):
        os.kill(process.pid, signal.SIGKILL)
        pids = writers(tmp_path)
        until(lambda: not any(alive(pid) for pid in pids.values()))
        sizes = {name: size(tmp_path / f"{name}.log") for name in NAMES}
        assert all(sizes.values())
        assert sizes == {name: size(tmp_path / f"{name}.log") for name in NAMES}


@pytest.mark.req("AG-23")
def test_a_fork_of_the_engine_that_lives_on_does_not_keep_them_alive(tmp_path):
    """It holds everything open that the engine had open."""
    with engine(tmp_path, fork=True) as (process, _, _):
        fork = int((tmp_path / "fork.pid").read_text())
        try:
            os.kill(process.pid, signal.SIGKILL)
            until(lambda: not any(alive(pid) for pid in writers(tmp_path).values()))
            assert alive(fork)
        finally:
            os.kill(fork, signal.SIGKILL)


@pytest.mark.req("AG-23")
def test_what_outlived_both_engine_and_supervisor_is_killed_by_its_record(tmp_path):
    with engine(tmp_path) as (process, pgid, birth):
        supervisor = int(Path(f"/proc/{pgid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(process.pid, signal.SIGSTOP)  # or it would see the supervisor die and clean up itself
        os.kill(supervisor, signal.SIGKILL)
        os.kill(process.pid, signal.SIGKILL)
        pids = writers(tmp_path)
        until(lambda: not alive(pgid))
        assert alive(pids["setsid"])
        assert kill_recorded(pgid, birth) is True
        assert not any(alive(pid) for pid in pids.values())
        assert kill_recorded(pgid, birth) is False


def test_a_group_is_killed_while_its_leader_is_the_recorded_process(tmp_path):
    """Without the tag, as when a command clears its environment."""
    with engine(tmp_path) as (_, pgid, birth):
        boot, start, tag = birth.split(":")
        assert kill_recorded(pgid, f"{boot}x:{start}:{tag}") is False, (
            "of another boot: the number is somebody else's now"
        )
        assert kill_recorded(pgid, f"{boot}:{start}:{'0' * 16}") is True
        assert not alive(pgid)
