"""The checks of this repository itself: what they let pass and what they refuse."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def measure(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, TOOLS / "sizes.py", path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def function(lines: int) -> str:
    return "def long_one():\n" + "    x = 1\n" * (lines - 1)


@pytest.mark.parametrize(
    ("source", "status", "said"),
    [
        (function(45), 0, "0 over the limit"),
        (function(46), 0, "warning"),
        (function(60), 0, "warning"),
        (function(61), 1, "long_one: 61 lines"),
        ("x = 1\n" * 150, 0, "0 over the limit"),
        ("x = 1\n" * 500, 0, "warning"),
        ("x = 1\n" * 501, 1, "501 lines"),
    ],
)
def test_sizes_warn_above_the_aim_and_fail_above_the_limit(tmp_path: Path, source: str, status: int, said: str) -> None:
    (tmp_path / "module.py").write_text(source)
    done = measure(tmp_path)
    assert (done.returncode, said in done.stdout) == (status, True), done.stdout + done.stderr
    assert ("warning" in done.stdout) == (said == "warning")


def test_functions_of_tests_may_be_long(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_scenario.py").write_text(function(120))
    assert measure(tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("changelog", "fault"),
    [
        ("## [Unreleased]\n- something\n", None),
        ("## [Unreleased]\n\n## [1.2.0] - 2030-01-31\n- a\n\n## [1.1.0] - 2029-12-31\n- b\n", None),
        ("## [1.2.0] - 2030-01-31\n- a\n", "first section"),
        ("## [Unreleased]\n\n## [1.3.0] - 2030-01-31\n- a\n", "newest release is 1.3.0"),
        ("## [Unreleased]\n\n## [1.2.0] - 2030-02-31\n- a\n", "no such date"),
        ("## [Unreleased]\n\n## 1.2.0\n- a\n", "not a release heading"),
        ("## [Unreleased]\n\n## [1.1.0] - 2030-01-31\n- a\n\n## [1.2.0] - 2030-01-31\n- b\n", "newest first"),
        ("## [Unreleased]\n", "nothing is said"),
    ],
)
def test_changelog_and_version_tell_the_same_story(changelog: str, fault: str | None) -> None:
    found = runpy.run_path(str(TOOLS / "changelog.py"))["faults"](changelog, "1.2.0")
    assert any(fault in line for line in found) if fault else found == []
