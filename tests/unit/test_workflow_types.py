"""The types that a reader of a workflow relies on, as pyright strict sees them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.req("TC-13")
def test_a_value_has_its_tasks_output_type_under_pyright_strict(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("pyright")
    if not program.exists():
        pytest.skip("pyright is not installed")
    config = tmp_path / "pyrightconfig.json"
    source = ROOT / "tests" / "support" / "typed_values.py"
    config.write_text(
        f'{{"typeCheckingMode": "strict", "include": ["{source}"], "extraPaths": ["{ROOT / "src"}"], '
        f'"venvPath": "{ROOT}", "venv": ".venv", "pythonVersion": "3.11"}}'
    )
    done = subprocess.run([program, "-p", config], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
