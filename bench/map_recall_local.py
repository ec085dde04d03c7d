"""How much of what real commits changed does the context map show within its budget?

    python bench/map_recall_local.py CLONE [CLONE ...] [--each 10] [--seed 7] [--budgets 1000 4000 16000]

Of each clone's history, commits with one parent, a message of six words and one to five changed source files are drawn by
the seed. The parent is checked out with its past alone, the message is the task, and the map is built cold, then warm.

files   share of the changed files whose path, whole from the root, stands in the map
defs    share of the changed definitions (the nearest first line above each hunk) that stand below their file's path
first   share of maps whose first file was changed; five: one of the first five was
tokens  the largest map's size over its budget, a token being four characters
cold    mean seconds of the first map of a checkout, in this process; warm: of the same map again
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from treadle.context.map import build_map
from treadle.context.scan import kind_of

DULL = re.compile(r"\b(bump\w*|releas\w*|typos?|changelog|dependabot|pre-commit)\b|\bversion v?\d", re.IGNORECASE)
FIRST_LINE = re.compile(
    r"^\s*(?:(?:export|default|declare|abstract|async|unsafe|static|public|private|pub(?:\([^)]*\))?)\s+)*"
    r"(?:def|class|func|fn|function|struct|enum|union|trait|interface|type|mod|impl)\b"
)
FEWEST_WORDS, MOST_CHANGED, CLIP = 6, 5, 60


class Case(NamedTuple):
    clone: Path
    parent: str
    commit: str
    message: str
    changed: list[str]


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=True)
    return done.stdout.decode(errors="replace")


def eligible(clone: Path) -> list[Case]:
    """Commits that a map can be judged by, in order of their hashes."""
    log = git(clone, "log", "--no-merges", "--no-renames", "--name-status", "--format=%x1e%H%x1f%P%x1f%B%x1f", "HEAD")
    found: list[Case] = []
    for entry in log.split("\x1e")[1:]:
        commit, parents, message, names = entry.split("\x1f")
        pairs = [line.split("\t", 1) for line in names.splitlines() if "\t" in line]
        changed = [path for status, path in pairs if status in ("M", "D") and kind_of(path) == "source"]
        long_enough = len(re.findall(r"\S*[A-Za-z]\S*", message)) >= FEWEST_WORDS
        if len(parents.split()) == 1 and 1 <= len(changed) <= MOST_CHANGED and long_enough and not DULL.search(message):
            found.append(Case(clone, parents, commit, message.strip(), changed))
    return sorted(found, key=lambda case: case.commit)


def changed_definitions(case: Case, folder: Path) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for path in case.changed:
        lines = (folder / path).read_bytes().decode(errors="replace").splitlines()
        diff = git(case.clone, "diff", "-U0", "--no-renames", "--no-ext-diff", case.parent, case.commit, "--", path)
        for start in map(int, re.findall(r"^@@ -(\d+)", diff, re.MULTILINE)):
            above = (line for line in reversed(lines[:start]) if FIRST_LINE.match(line))
            if line := next(above, None):
                found.add((path, line.strip()[:CLIP]))
    return found


def blocks(text: str, files: set[str]) -> dict[str, str]:
    """What stands below each path of the map, in the map's order."""
    found: dict[str, list[str]] = {}
    at: list[str] = []
    for line in text.splitlines():
        if line in files and line not in found:
            at = found.setdefault(line, [])
        at.append(line)
    return {path: "\n".join(below) for path, below in found.items()}


def judge(case: Case, budgets: list[int], scratch: Path) -> list[tuple[int, dict[str, float]]]:
    folder = scratch / case.commit
    git(scratch, "clone", "-q", "--shared", "--no-checkout", str(case.clone.resolve()), str(folder))
    git(folder, "checkout", "-q", "--detach", case.parent)
    files = set(git(folder, "ls-files", "-z").split("\0"))
    wanted = changed_definitions(case, folder)
    rows: list[tuple[int, dict[str, float]]] = []
    for budget in sorted(budgets, reverse=True):
        start = time.perf_counter()
        text = build_map(folder, case.message, budget, scratch / "cache").text
        seconds = time.perf_counter() - start
        shown = blocks(text, files)
        order = list(shown)
        row = {
            "files": sum(path in shown for path in case.changed) / len(case.changed),
            "first": float(any(path in order[:1] for path in case.changed)),
            "five": float(any(path in order[:5] for path in case.changed)),
            "tokens": (len(text) + 1) / 4 / budget,
        }
        if wanted:
            row["defs"] = sum(line in shown.get(path, "") for path, line in wanted) / len(wanted)
        if budget == max(budgets):
            row["cold"] = seconds
            start = time.perf_counter()
            build_map(folder, case.message, budget, scratch / "cache")
            row["warm"] = time.perf_counter() - start
        rows.append((budget, row))
    return rows


def report(rows: list[tuple[int, dict[str, float]]]) -> None:
    columns = ("files", "defs", "first", "five", "tokens", "cold", "warm")
    print("| budget | maps | " + " | ".join(columns) + " |\n|" + " --- |" * (len(columns) + 2))
    by_budget: dict[int, list[dict[str, float]]] = defaultdict(list)
    for budget, row in rows:
        by_budget[budget].append(row)
    for budget, some in sorted(by_budget.items()):
        cells: list[str] = []
        for column in columns:
            values = [row[column] for row in some if column in row]
            if column in ("cold", "warm"):
                cells.append(f"{sum(values) / len(values):.2f} s" if values else "")
            else:
                value = max(values) if column == "tokens" else sum(values) / (len(values) or 1)
                cells.append(f"{100 * value:.1f} %")
        print(f"| {budget} | {len(some)} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", nargs="+", type=Path)
    parser.add_argument("--each", type=int, default=10, help="commits of each clone")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--budgets", type=int, nargs="+", default=[1_000, 4_000, 16_000])
    given = parser.parse_args()
    rows: list[tuple[int, dict[str, float]]] = []
    for clone in given.clones:
        cases = eligible(clone)
        for case in random.Random(f"{given.seed}").sample(cases, min(given.each, len(cases))):
            with tempfile.TemporaryDirectory() as scratch:
                rows += judge(case, given.budgets, Path(scratch))
    report(rows)


if __name__ == "__main__":
    main()
