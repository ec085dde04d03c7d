"""The frame's kill matrix: every loop of frame_victim is killed at every point that it passes, and must end as if nothing had been.

python tests/crash/frame_kills.py [--each 3] [--loops whole,window]
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LOOPS = ("whole", "window", "plan", "clash", "family", "command")
ELAPSED = re.compile(r'\\+"elapsed_ms\\+": \d+,')  # in what a command left: differs from run to run


class Victims:
    """Processes that run one loop each."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def life(self, folder: Path, name: str, crash_at: str = "") -> int:
        """Its exit code; -9 where it was killed."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(
            json.dumps({"folder": str(folder), "name": name, "crash_at": crash_at}), file=self._server.stdin, flush=True
        )
        return int(self._server.stdout.readline())

    def ended(self, folder: Path, name: str, *crashes: str) -> dict[str, Any]:
        """What the loop ends with after these kills, each in a process of its own. AssertionError where one did not come."""
        shutil.rmtree(folder, ignore_errors=True)
        for crash in crashes:
            code = self.life(folder, name, crash)
            assert code == -signal.SIGKILL, f"{name} was not killed at {crash}: {code}, {errors(folder)}"
        code = self.life(folder, name)
        assert code == 0, f"{name} after {crashes}: exit {code}, {errors(folder)}"
        return json.loads(ELAPSED.sub("", (folder / "ended.json").read_text()))


def errors(folder: Path) -> str:
    """The end of what its processes have said."""
    return (folder / "errors.txt").read_text()[-3000:]


@contextmanager
def victims() -> Iterator[Victims]:
    """Forked from one process that has loaded everything."""
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-m", "support.frame_victim"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tests) as server:
        try:
            yield Victims(server)
        finally:
            assert server.stdin is not None
            server.stdin.close()


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two of them differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            line
            for key in dict.fromkeys((*one, *other))
            for line in differences(one.get(key), other.get(key), f"{path}.{key}")
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            line for at, pair in enumerate(zip(one, other, strict=True)) for line in differences(*pair, f"{path}[{at}]")
        ]
    return [] if one == other else [f"{path}: {one!r} is {other!r}"]


def cases(passed: dict[str, int], each: int) -> list[tuple[str, ...]]:
    """So many passings of every point, from the first to the last. Taking over is passed only after a kill."""
    found: list[tuple[str, ...]] = []
    for point, times in passed.items():
        last = (
            times * 3 // 4 if point.startswith("ledger.") else times
        )  # how many commits there are is a matter of time
        spread = {1 + round(number * (last - 1) / max(1, each - 1)) for number in range(each)}
        if point == "ledger.in-acquire":
            found += [("ledger.after-commit:5", f"{point}:1")]
        else:
            found += [(f"{point}:{nth}",) for nth in sorted(spread)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=3, help="passings of each point, from the first to the last")
    parser.add_argument("--loops", default=",".join(LOOPS))
    args = parser.parse_args()
    kills, faults, start = Counter[str](), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as name, victims() as processes:
        folder = Path(name)
        for loop in args.loops.split(","):
            unkilled = processes.ended(folder / "case", loop)
            for crashes in cases(unkilled["passed"], args.each):
                try:
                    wrong = differences(unkilled["told"], processes.ended(folder / "case", loop, *crashes)["told"])
                except AssertionError as error:
                    wrong = [str(error)]
                kills.update(crash.partition(":")[0] for crash in crashes)
                faults += bool(wrong)
                if wrong:
                    print(f"FAULT {loop} {' '.join(crashes)}:", *wrong, sep="\n  ", flush=True)
    for point, count in sorted(kills.items()):
        print(f"{point:24} {count} kills")
    print(f"{kills.total()} kills at {len(kills)} points, {faults} faults, {time.monotonic() - start:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
