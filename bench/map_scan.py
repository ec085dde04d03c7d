"""How much quicker is a second map of many files, and how much memory does the first one take?

    python bench/map_scan.py [--files 10000] [--definitions 12]

Writes that many Python files into a scratch repository, then runs `treadle map` three times in processes of
their own, start included. The ratio is to be at most a tenth; memory must not grow with the size of the files.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def write_repository(root: Path, files: int, definitions: int) -> None:
    rng = random.Random(7)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 10))) for _ in range(20_000)]
    for number in range(files):
        file = root / f"package_{number // 100}" / f"module_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            "".join(
                "def {}_{}({}):\n    return {} + {!r}\n\n".format(*rng.choices(words, k=5)) for _ in range(definitions)
            )
        )
    subprocess.run(["git", "-C", root, "init", "-q"], check=True)
    subprocess.run(["git", "-C", root, "add", "-A"], check=True)


def timed(root: Path, cache: Path) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak MiB of one map."""
    command = [
        sys.executable,
        "-m",
        "treadle.cli.main",
        "map",
        "--path",
        root,
        "--task",
        "Fix the parser",
        "--budget",
        "4000",
    ]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "XDG_CACHE_HOME": str(cache)})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--definitions", type=int, default=12, help="in each file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root, cache = Path(scratch, "repository"), Path(scratch, "cache")
        write_repository(root, given.files, given.definitions)
        runs = [timed(root, cache) for _ in range(3)]
    print("| run | wall s | processor s | of the first | peak MiB |\n| --- | --- | --- | --- | --- |")
    for name, (wall, processor, peak) in zip(("first", "second", "third"), runs, strict=True):
        print(f"| {name} | {wall:.2f} | {processor:.2f} | {processor / runs[0][1]:.3f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
