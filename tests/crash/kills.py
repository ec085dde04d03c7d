"""The kill matrix: every named crash point, and random instants. The last line says how many kills there were and how many faults.

python tests/crash/kills.py [--each 4] [--random 60] [--seed 1]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from oracle import case

from treadle.testing.crash import LEDGER_POINTS, LOOP_POINTS

# No command acts here, and nothing outgrows the window: test_kills_window.py has those.
POINTS = (*(p for p in LOOP_POINTS if not p.endswith(("-act", "-compaction"))), *LEDGER_POINTS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=4, help="cases for each point; each has two kills or more")
    parser.add_argument("--random", type=int, default=60, help="cases of 1 to 4 kills at random instants")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance, kills, faults, start = random.Random(args.seed), Counter[str](), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        cases: list[tuple[str, tuple[str, ...], int]] = [
            (point, crashes(point, n, chance), 0) for point in POINTS for n in range(args.each)
        ]
        cases += [("random", (), chance.randint(1, 4)) for _ in range(args.random)]
        for number, (label, points, count) in enumerate(cases):
            killed, fault = case(Path(folder) / "case", points, count, seed=args.seed * 1000 + number)
            kills[label] += killed
            if fault:
                faults += 1
                print(f"FAULT {label} {points} seed {args.seed * 1000 + number}: {fault}", flush=True)
    for label, count in sorted(kills.items()):
        print(f"{label:24} {count} kills")
    print(f"{kills.total()} kills, {faults} faults, {time.monotonic() - start:.0f} s")
    return 1 if faults else 0


def crashes(point: str, number: int, chance: random.Random) -> tuple[str, str]:
    """A kill at this point and one at another; taking over is reached only after a first kill."""
    if point == "ledger.in-acquire":
        return f"before-model:{chance.randint(1, 20)}", f"{point}:1"
    return f"{point}:{nth(point, number, chance)}", f"{chance.choice(POINTS)}:{chance.randint(1, 9)}"


def nth(point: str, number: int, chance: random.Random) -> int:
    """Which passing of the point: spread over the run, which passes the ledger's points often and others a few times."""
    spread = 14 if point.startswith("ledger.") else 7 if "model" in point or "tool" in point else 1
    return 1 + number * spread % 40 + chance.randint(0, 2 if spread > 1 else 0)


if __name__ == "__main__":
    sys.exit(main())
