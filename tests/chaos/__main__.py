"""python -m chaos [--engine E] [--loops 50] [--turns 100] [--workers 4] [--seed N]: faults until all have ended; a verdict."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from .harness import Harness
from .verdict import judge

HEARTBEAT_S = {"workers": 1.0, "temporal": 5.0}  # how often a lease is renewed; when Temporal misses a heartbeat


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--engine", choices=("workers", "temporal", "both"), default="both")
    parser.add_argument(
        "--no-namespaces", action="store_true", help="cutting proxies even where namespaces are allowed"
    )
    parser.add_argument("--loops", type=int, default=50)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between faults (default: 1)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=1800.0, help="seconds until a run has failed (default: 1800)")
    parser.add_argument("--keep", type=Path, help="a folder for logs, bill and notes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        codes: list[int] = []
        for engine in ("workers", "temporal") if given.engine == "both" else (given.engine,):
            where = (given.keep or Path(folder)) / engine
            where.mkdir(parents=True, exist_ok=True)
            codes.append(asyncio.run(run(where, given, engine)))
        return max(codes)


async def run(folder: Path, given: argparse.Namespace, engine: str) -> int:
    """The exit code."""
    sizes = (given.loops, given.turns, given.workers, given.seed, given.every)
    harness = Harness(folder, *sizes, engine=engine, namespaces=not given.no_namespaces)
    print(f"engine {engine}, by {harness.network.kind}", flush=True)
    started = time.monotonic()
    try:
        whole = await harness.run(given.patience)
        found = await judge(harness.database.url(), harness.ids, folder / "bill", harness.notes, given.turns)
    finally:
        harness.close()
    spent = time.monotonic() - started
    print(", ".join(f"{count} x {how}" for how, count in harness.struck.most_common()))
    if not harness.database.small:
        print("no disk was filled: this machine lets nobody mount a small one")
    print(
        f"{given.loops} loops x {given.turns} turns on {given.workers} workers in {spent:.0f} s, {found.takeovers} takeovers"
    )
    print(
        f"requests: counted {found.counted}, billed {found.billed}, in doubt {found.in_doubt}; changes begun: {found.changes}"
    )
    heartbeat_s = HEARTBEAT_S[engine]
    for how, aim in (("kill", heartbeat_s + 3), ("stop", 2 * heartbeat_s + 3), ("cut", 2 * heartbeat_s + 3)):
        told(how, aim, harness)
    faults = found.faults if whole else ["not every loop came to its end in time", *found.faults]
    for fault in faults[:20]:
        print(f"FAULT {fault}")
    print(f"verdict, engine {engine}: {'FAILED' if faults else 'every loop is whole, and every promise held'}")
    return 1 if faults else 0


def told(how: str, aim: float, harness: Harness) -> None:
    """Takeover times beside their aim: of those where the store itself was there all the time."""
    times = sorted(one.seconds for one in harness.takeovers if one.how == how and not one.disturbed and one.seconds)
    if times:
        p95 = times[int(len(times) * 0.95) - 1] if len(times) > 1 else times[0]
        late = sum(one > aim for one in times)
        figures = f"median {statistics.median(times):.1f} s, 95 % {p95:.1f} s, most {times[-1]:.1f} s"
        print(f"taken over after a {how}: {len(times)}, {figures}; aim {aim:.0f} s, {late} later")


if __name__ == "__main__":
    sys.exit(main())
