"""Case 23: a stale recovery executed without a claim. Whoever resumes must own it, and of two owners the earlier commits nothing."""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

from support.commandline import InProcess, finish, wait_for
from support.loops import DONE, FIRST, LOOK
from treadle.models.prices import parse_price
from treadle.testing import ScriptedEndpoint, Turn

SLOW = Turn(
    calls=[("run_command", {"command": "echo ran >> ran; touch begun; while test ! -e go; do sleep 0.05; done"})]
)


def stop_between_commits(pid: int, store: Path) -> None:
    """Stopped in the middle of a commit it would hold the store's lock: that is another case."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        try:
            with closing(sqlite3.connect(store, timeout=0, isolation_level=None)) as db:
                db.execute("BEGIN IMMEDIATE")
                db.execute("ROLLBACK")
        except sqlite3.OperationalError:
            os.kill(pid, signal.SIGCONT)
        else:
            return


def test_a_stopped_owner_that_wakes_after_a_takeover_commits_nothing_and_says_so(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint([FIRST, SLOW, LOOK, DONE], price=parse_price("1,2")) as endpoint:
        flags = ("--check", "true", "--model", "openai:s", "--base-url", endpoint.url, "--price", "1,2")
        first = cli.start("run", "x", *flags)
        wait_for(first, "round 1 of")
        while not (cli.workspace / "begun").exists():
            assert first.poll() is None
        stop_between_commits(first.pid, cli.store_file)
        assert cli("resume", "last").code == 2
        cli.write("go", "")
        second = cli("resume", "last", "--force", "--json")
        assert (second.code, second.document["code"]) == (0, "accepted")
        asked = len(endpoint.requests)
        os.kill(first.pid, signal.SIGCONT)
        ended = finish(first)
        assert ended.code not in (0, 3, 4)
        assert "another process has taken it over" in ended.err
        assert "the store failed" not in ended.err
        assert len(endpoint.requests) == asked
    assert cli("show", "last", "--json").document == second.document
