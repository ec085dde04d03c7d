"""The kill matrix in short: one kill at each crash point and a few at random instants. `kills.py` is the long form."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from kills import POINTS
from oracle import case

NTH = {"before-check": 2, "after-check": 3, "before-baseline": 2, "after-baseline": 1}


@pytest.mark.req("LG-03", "LG-04", "AG-21", "AG-22", "AG-23", "TC-11", "TC-16", "FR-05")
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_this_point_loses_nothing_and_doubles_nothing(point: str, tmp_path: Path) -> None:
    acquiring = point == "ledger.in-acquire"  # which is reached only after a first kill
    crashes = ("before-model:9", f"{point}:1") if acquiring else (f"{point}:{NTH.get(point, 11)}",)
    kills, fault = case(tmp_path / "case", crashes)
    assert fault == ""
    assert kills == len(crashes)


@pytest.mark.req("LG-03", "LG-04")
@pytest.mark.parametrize("seed", range(3))
def test_kills_at_random_instants_lose_nothing_and_double_nothing(seed: int, tmp_path: Path) -> None:
    _, fault = case(tmp_path / "case", random_kills=3, seed=seed)
    assert fault == ""
