"""The short form of chaos, as `make chaos` runs the long one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import postgres

TESTS = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.skipif(postgres.binaries() is None, reason="no Postgres server is installed")
@pytest.mark.req("RT-02", "RT-03", "LG-03", "LG-08")
@pytest.mark.parametrize("engine", ["workers", "temporal"])
def test_every_loop_is_whole_after_kills_stops_cuts_restarts_and_a_full_disk(tmp_path: Path, engine: str) -> None:
    sizes = ["--engine", engine, "--loops", "6", "--turns", "20", "--every", "4"]
    command = [sys.executable, "-m", "chaos", *sizes, "--keep", str(tmp_path)]
    ran = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
