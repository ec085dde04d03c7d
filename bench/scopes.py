#!/usr/bin/env python3
"""What an isolated scope costs beside the same done by hand: worktree add, commit, merge, worktree remove, branch -d.

    python bench/scopes.py [--files 5000] [--runs 5]

Both sides work on equal repositories, by turns; printed are the medians, and the median of the ratios of each pair.
The conflict check is Treadle's alone.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from operator import itemgetter
from pathlib import Path

import anyio

from treadle.effects.scope import GitScope
from treadle.effects.worktrees import GitIsolated, Here, open_scope

WHO = ("-c", "user.name=B", "-c", "user.email=b@b")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *WHO, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder: Path, files: int) -> Path:
    """So many files of 1,000 bytes."""
    folder.mkdir()
    for number in range(files):
        file = folder / f"d{number % 50}" / f"f{number}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{number}\n" * 200)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "B")
    git(folder, "config", "user.email", "b@b")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


def work(folder: Path, number: int) -> None:
    (folder / "d0" / "f0.txt").write_text(f"changed {number}\n")
    (folder / f"new{number}.txt").write_text("new\n")


def by_hand(top: Path, tree: Path, number: int) -> tuple[float, float]:
    """Seconds of set-up and of commit, merge and clean-up."""
    start = time.perf_counter()
    git(top, "worktree", "add", "-q", "-b", f"hand/{number}", str(tree), "HEAD")
    opened = time.perf_counter()
    work(tree, number)
    merging = time.perf_counter()
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "work")
    git(top, "merge", "-q", f"hand/{number}")
    git(top, "worktree", "remove", str(tree))
    git(top, "branch", "-d", f"hand/{number}")
    return opened - start, time.perf_counter() - merging


async def by_treadle(top: Path, tree: Path, state: Path, number: int) -> tuple[float, float]:
    """The same; the trees by which a loop knows what act changed are taken outside the times, as every loop takes them."""
    here = Here()
    start = time.perf_counter()
    facts, inside = await open_scope(here, top, str(number), tree, "merge")
    opened = time.perf_counter()
    trees = GitScope(inside, state_dir=state)
    base, _ = await trees.baseline(f"b{number}", 1)
    work(tree, number)
    receipt = await trees.receipt(base)
    isolated = GitIsolated(facts, trees, here)
    merging = time.perf_counter()
    commit = await isolated.commit(base, receipt.head, message="work", settles=False)
    assert not (await isolated.conflicts(commit, ())).paths
    assert (await isolated.close(commit, message="merge")).how == "merged"
    return opened - start, time.perf_counter() - merging


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, theirs = repository(folder / "ours", args.files), repository(folder / "theirs", args.files)
        hand: list[tuple[float, float]] = []
        treadle: list[tuple[float, float]] = []
        for number in range(args.runs):
            if number % 2:
                treadle.append(await by_treadle(ours, folder / f"o{number}", folder / "state", number))
            hand.append(by_hand(theirs, folder / f"t{number}", number))
            if not number % 2:
                treadle.append(await by_treadle(ours, folder / f"o{number}", folder / "state", number))
    for what, of in (("set-up", itemgetter(0)), ("commit, merge, clean-up", itemgetter(1)), ("together", sum)):
        pairs = [(of(by), of(own)) for by, own in zip(hand, treadle, strict=True)]
        by, own = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratios = sorted(own / by for by, own in pairs)
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        print(
            f"{what:24} git {by * 1000:7.1f} ms   treadle {own * 1000:7.1f} ms   "
            f"{statistics.median(ratios):.2f} x, pair by pair {spread}"
        )


if __name__ == "__main__":
    anyio.run(main)
