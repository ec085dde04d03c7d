"""What of the page needs no browser: gestures out of points, pictures out of executions. Its own tests, run by its own runner."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VITEST = ROOT / "web" / "node_modules" / "vitest" / "vitest.mjs"

sys.path.insert(0, str(ROOT / "tools"))
from page import node  # noqa: E402


@pytest.mark.req("CV-03", "CV-04", "CV-09", "CV-17")
@pytest.mark.skipif(not VITEST.exists(), reason="the page's own dependencies are not installed: make page")
def test_the_pages_own_tests_pass() -> None:
    having = node()
    assert having is not None
    home = having[1]
    environ = {**os.environ, "PATH": f"{home}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [str(home / "node"), str(VITEST), "run"],
        cwd=ROOT / "web",
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
