"""Real deaths: SIGKILL at each crash point of a workflow with parallel tasks, a loop and a nested execution; then it goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import anyio
import pytest

from support.workflow_victim import RUN, World, go
from treadle.core.errors import UnknownExecution
from treadle.testing.crash import LEDGER_POINTS

POINTS = (
    "phase-intended",
    "before-perform",
    "after-perform",
    "before-attempt",
    "after-attempt",
    "before-check",
    "after-check",
    *LEDGER_POINTS,
)


@pytest.mark.req("TC-09", "TC-11", "TC-16", "TC-25", "TC-26")
@pytest.mark.parametrize("nth", [1, 4])
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_and_doubles_nothing_that_was_done(tmp_path: Path, point: str, nth: int) -> None:
    command = [sys.executable, "-m", "support.workflow_victim", str(tmp_path), point, str(nth)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    before = Counter(World(tmp_path / "log").lines())
    try:
        result = anyio.run(lambda: go(tmp_path, resume=True))
    except UnknownExecution:  # killed before the first record: nothing was begun
        assert not before
        return

    assert (result.status, result.code) == ("done", "accepted")
    assert result.outputs["loop"] == 2
    assert (result.outputs["left"], result.outputs["right"]) == ("left", "right")
    assert result.outputs["nested"] == {"a": "a", "b": "b"}
    lines = World(tmp_path / "log").lines()
    did = Counter(line for line in lines if line.startswith("did"))
    assert len(did) == 2 + 4 + 2
    assert sum(did.values()) <= len(did) + 2, "more was replayed than can have been in flight"
    billed = sum(line.startswith("paid") for line in lines)
    usage = result.document["usage"]
    assert usage["requests"] <= billed <= usage["requests"] + usage["in_doubt_requests"]
    assert result.execution_id == RUN
