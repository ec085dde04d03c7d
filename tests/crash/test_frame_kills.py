"""Each field of the frame survives a kill at every named crash point: what a killed loop ends with is what an unkilled one ends with.

`frame_kills.py` is the long form: every point that each loop passes, several times.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from frame_kills import LOOPS, Victims, cases, differences, victims

from treadle.testing.crash import CHILD_POINTS, LEDGER_POINTS, LESSON_POINTS, LOOP_POINTS, SCOPE_POINTS

KILLS = (
    ("whole", "after-model:9"),
    ("whole", "before-gates:2"),
    ("whole", "before-vote:1"),
    ("whole", "after-distil:1"),
    ("whole", "before-close:1"),
    ("whole", "ledger.after-commit:26"),
    ("window", "after-compaction:1"),
    ("plan", "before-tool:2"),
    ("plan", "ledger.in-transaction:20"),
    ("clash", "after-conflict-check:1"),
    ("clash", "before-bring-in:1"),
    ("family", "after-child:1"),
    ("family", "before-child:2"),
    ("command", "after-act:2"),
    ("command", "before-check:1"),
)


@pytest.fixture(scope="module")
def processes() -> Iterator[Victims]:
    with victims() as running:
        yield running


@pytest.fixture(scope="module")
def unkilled(processes: Victims, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return lru_cache(lambda loop: processes.ended(tmp_path_factory.mktemp("unkilled") / "case", loop))


@pytest.mark.req(
    "FR-05", "FR-06", "FR-08", "FR-12", "FR-13", "FR-14", "FR-15", "FR-16", "FR-18", "FR-20", "FR-22", "LG-03"
)
@pytest.mark.parametrize(("loop", "crash"), KILLS)
def test_every_field_survives_a_kill(loop: str, crash: str, processes: Victims, unkilled: Any, tmp_path: Path) -> None:
    killed = processes.ended(tmp_path / "case", loop, crash)
    assert differences(unkilled(loop)["told"], killed["told"]) == []


@pytest.mark.slow
@pytest.mark.req("LG-03")
@pytest.mark.parametrize("loop", LOOPS)
def test_every_field_survives_a_kill_at_every_point(
    loop: str, processes: Victims, unkilled: Any, tmp_path: Path
) -> None:
    for crashes in cases(unkilled(loop)["passed"], each=1):
        killed = processes.ended(tmp_path / "case", loop, *crashes)
        assert differences(unkilled(loop)["told"], killed["told"]) == [], crashes


@pytest.mark.slow
def test_the_loops_pass_every_point(unkilled: Any) -> None:
    passed = {point for loop in LOOPS for point in unkilled(loop)["passed"]}
    assert passed == {*LOOP_POINTS, *SCOPE_POINTS, *LESSON_POINTS, *CHILD_POINTS, *LEDGER_POINTS}
