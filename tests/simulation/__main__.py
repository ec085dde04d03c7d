"""python -m simulation [--seeds N] [--from SEED] [--seed SEED]: the verdict of many seeds, or the trace of one.

A seed that fails is made again, and told step by step, by `--seed`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from .trial import run_seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many (default: 300)")
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first of them (default: 1)")
    parser.add_argument("--seed", type=int, help="only this one, with its trace")
    args = parser.parse_args()
    if args.seed is not None:
        return _one(args.seed)
    started, failed, happened, executions, virtual = time.monotonic(), 0, Counter[str](), 0, 0.0
    for seed in range(args.first, args.first + args.seeds):
        verdict = run_seed(seed)
        happened.update(verdict.happened)
        executions += verdict.executions
        virtual += verdict.virtual_s
        if verdict.faults:
            failed += 1
            print(f'FAULT seed {seed}: {verdict.faults[0]}\n  again: make simulate ARGS="--seed {seed}"', flush=True)
    for name, count in sorted(happened.items()):
        print(f"{name:32} {count:8,}")
    spent = time.monotonic() - started
    print(f"{args.seeds:,} seeds, {executions:,} executions, {virtual / 3600:.0f} virtual hours, {spent:.1f} s")
    print(f"verdict: {'FAILED, ' + str(failed) + ' seeds' if failed else 'every promise held'}")
    return 1 if failed else 0


def _one(seed: int) -> int:
    verdict = run_seed(seed, trace=True)
    print("\n".join(verdict.trace))
    print(f"seed {seed}: digest {verdict.digest}, {verdict.executions} executions, {verdict.virtual_s:.0f} virtual s")
    for fault in verdict.faults:
        print(f"FAULT {fault}")
    print(f"verdict: {'FAILED' if verdict.faults else 'every promise held'}")
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main())
