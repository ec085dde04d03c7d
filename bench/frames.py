#!/usr/bin/env python3
"""How large a frame is after 10,000 calls on 50 files, and how many flipped bytes of it, and of a whole export, are detected.

    python bench/frames.py [--calls 10000] [--files 50] [--flips 1000] [--seed 1]

The loop is driven for real, on a scripted model and a store in memory. A flip puts another byte at a random place.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from treadle import Agent, Loop, finished
from treadle.app.carry import export, read_export
from treadle.app.runtime import Runtime
from treadle.app.stores import open_store
from treadle.core.errors import FrameError
from treadle.kernel.continuation import frame_of
from treadle.kernel.frame import dump_frame, load_frame
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.settings import Settings
from treadle.testing import ScriptedModel, Turn

BATCH = 25  # calls a turn: every fifth turn reads, the others write


def script(calls: int, files: int) -> list[Turn]:
    """So many calls, then the end."""
    turns: list[Turn] = []
    for turn in range(calls // BATCH):
        names = [f"package/module_{(turn * BATCH + number) % files}.py" for number in range(BATCH)]
        if turn % 5:
            turns.append(Turn(calls=[("read_file", {"path": name}) for name in names]))
        else:
            turns.append(Turn(calls=[("write_file", {"path": name, "text": f"n = {turn}\n"}) for name in names]))
    return [*turns, Turn(calls=[("finish", {"summary": "done"})])]


def undetected(stored: bytes, read: Callable[[bytes], Any], flips: int, seed: int) -> int:
    """How many of so many flips nobody saw."""
    chance, missed = random.Random(seed), 0
    for _ in range(flips):
        place = chance.randrange(len(stored))
        flipped = bytearray(stored)
        flipped[place] ^= chance.randrange(1, 256)
        try:
            read(bytes(flipped))
        except FrameError:
            continue
        missed += 1
    return missed


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--flips", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work" / "package").mkdir(parents=True)
        runtime = Runtime(
            await open_store("memory:", NO_CRASH_POINTS), Settings(environ={}, state_dir=folder / "state")
        )
        model = ScriptedModel(script(args.calls, args.files), context_window=100_000_000)
        act = Agent(model=model, max_turns_per_act=args.calls, map_budget=0)
        guards = {"read-only": 0, "stagnation": 0, "repeat": 0, "oscillation": 0}
        loop = Loop(
            name="frames",
            act=act,
            evaluate=finished,
            workspace=folder / "work",
            guards=guards,
        )
        session = await runtime.start(loop, "Edit the modules")
        await session.run()
        state, most = session.state, loop.max_rounds
        assert state.code == "accepted", (state.status, state.code, state.evidence)
        frame, whole = (
            dump_frame(frame_of(state), max_iterations=most),
            await export(runtime.ledger, session.execution_id, state),
        )
        await session.close()
        await runtime.close()
    effects = len(state.carried.effects)
    print(f"frame after {args.calls:,} calls on {args.files} files: {len(frame) / 1024:.1f} KB, {effects} effects")
    for what, stored, read in (
        ("frame", frame, lambda data: load_frame(data, max_iterations=most)),
        ("export", whole, read_export),
    ):
        missed = undetected(stored, read, args.flips, args.seed)
        print(f"{what:6} {len(stored) / 1024:9.1f} KB: {args.flips - missed} of {args.flips} flipped bytes detected")


if __name__ == "__main__":
    anyio.run(main)
