"""Seeds of the simulation: each is a trial of whole executions under faults, and a trial can be made again exactly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.trial import run_seed

TESTS = Path(__file__).parents[1]


@pytest.mark.req("LG-03", "LG-04", "TC-26", "RT-03", "AG-21")
@pytest.mark.parametrize("first", range(1, 301, 50))
def test_every_promise_holds_under_seeded_faults(first: int) -> None:
    failed = {seed: verdict.faults for seed in range(first, first + 50) if (verdict := run_seed(seed)).faults}
    assert not failed, 'again: make simulate ARGS="--seed N"'


def test_a_seed_is_the_same_trial_in_every_process() -> None:
    code = "import sys; from simulation.trial import run_seed; print(run_seed(int(sys.argv[1])).digest)"
    for seed in (5, 16):  # a loop, and a workflow
        told = {run_seed(seed).digest, run_seed(seed).digest}
        for hashing in ("1", "2"):
            environ = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONHASHSEED": hashing}
            found = subprocess.run(
                [sys.executable, "-c", code, str(seed)], env=environ, capture_output=True, text=True, check=True
            )
            told.add(found.stdout.strip())
        assert len(told) == 1
