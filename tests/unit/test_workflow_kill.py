"""Real deaths: SIGKILL at each crash point of a workflow with parallel tasks, a loop and a nested execution; then it goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import anyio
import pytest

from support.workflow_victim import RUN, World, go, go_whole
from treadle.core.errors import UnknownExecution
from treadle.testing.crash import LEDGER_POINTS

VICTIM = "from support.workflow_victim import main; main()"
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
    command = [sys.executable, "-c", VICTIM, str(tmp_path), point, str(nth)]
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


LOOP = ("before-act", "after-act", "before-check", "after-check")
EVERYWHERE = [
    *((point, nth) for point in POINTS[:7] for nth in (1, 2)),
    *((point, nth) for point in LOOP for nth in (1, 2)),
    *((point, nth) for point in LEDGER_POINTS[:3] for nth in (3, 12, 21, 30, 39)),
    ("ledger.in-acquire", 1),  # between an answer and its use
    ("ledger.in-acquire", 3),
]


@pytest.mark.slow
@pytest.mark.req("TC-03", "TC-04", "TC-11", "TC-20", "TC-22", "TC-24", "TC-25")
@pytest.mark.parametrize(("point", "nth"), EVERYWHERE)
def test_a_gate_a_question_a_quota_a_retry_and_a_nested_loop_go_on_after_a_kill(
    tmp_path: Path, point: str, nth: int
) -> None:
    command = [sys.executable, "-c", VICTIM, str(tmp_path), point, str(nth), "whole"]
    died = subprocess.run(
        command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=120, check=False
    )
    assert died.returncode in (0, -signal.SIGKILL), died.stderr
    assert died.returncode or nth > 20 or point == "ledger.in-acquire", "it was never reached"
    result = anyio.run(lambda: go_whole(tmp_path))

    assert (result.status, result.code) == ("done", "accepted"), result.document
    outputs = result.outputs
    assert (outputs["loop"], outputs["inner"], outputs["nested"]) == (2, 2, {"a": "a", "b": "b"})
    assert (outputs["flaky"], outputs["limited"], outputs["asking"]) == ("flaky", "limited", "blue")
    assert (outputs["gate"]["actor"], outputs["last"]) == ("ada", "last")
    lines = World(tmp_path / "log").lines()
    assert {line for line in lines if line.startswith("used")} == {"used blue 2"}
    did = Counter(line for line in lines if line.startswith("did"))
    assert sum(count - 1 for count in did.values()) <= 3 + 3, "more was replayed than waited, failed or was in flight"
    billed = sum(line.startswith("paid") for line in lines)
    usage = result.document["usage"]
    assert usage["requests"] <= billed <= usage["requests"] + usage["in_doubt_requests"]
    assert usage["in_doubt_requests"] <= 3, "no more can have been in flight"
