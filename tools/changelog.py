#!/usr/bin/env python3
"""Checks that CHANGELOG.md, the version in pyproject.toml and treadle.__version__ tell the same story.

The first section is Unreleased. Below it, releases stand newest first, each with its date; the newest is the project's
version. Before the first release there is none, and Unreleased says what it will bring.
"""

from __future__ import annotations

import re
import sys
import tomllib
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
RELEASE = re.compile(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d{2}-\d{2})")


def faults(changelog: str, version: str) -> list[str]:
    """What is wrong, a line each; empty when nothing is."""
    headings = HEADING.findall(changelog)
    found: list[str] = []
    if headings[:1] != ["[Unreleased]"]:
        found.append("the first section must be [Unreleased]")
    releases: list[tuple[int, int, int]] = []
    for heading in headings[1:]:
        if (match := RELEASE.fullmatch(heading)) is None:
            found.append(f"not a release heading: {heading!r}, wanted [1.2.3] - 2030-12-31")
            continue
        releases.append((int(match[1]), int(match[2]), int(match[3])))
        try:
            date.fromisoformat(match[4])
        except ValueError:
            found.append(f"no such date: {match[4]}")
    if releases != sorted(set(releases), reverse=True):
        found.append("releases must stand newest first, each once")
    if releases and ".".join(map(str, releases[0])) != version:
        found.append(f"the newest release is {'.'.join(map(str, releases[0]))}, pyproject.toml says {version}")
    if not releases and not changelog.partition("## [Unreleased]")[2].strip():
        found.append("nothing is said of the first release")
    return found


def main() -> int:
    """Prints the faults. The exit status is 1 when there are any."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    package = (ROOT / "src/treadle/__init__.py").read_text(encoding="utf-8")
    found = faults((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if f'\n__version__ = "{version}"\n' not in package:
        found.append(f"treadle.__version__ is not {version}, as pyproject.toml says")
    for fault in found:
        print(f"error: {fault}")
    print(f"changelog: version {version}, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
