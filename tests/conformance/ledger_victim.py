"""Run as a program: a process that is killed at a crash point, that is stopped, or has a full disk.

The tests that start it say why. What it was told to be durable it writes to stdout at once, a line each.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from conformance.ledger_kit import commit, record, started
from treadle.core.errors import LedgerFull, LedgerGap, LedgerReadOnly
from treadle.ledger.sqlite import open_sqlite
from treadle.ports.clock import NO_CRASH_POINTS, CrashPoints
from treadle.ports.ledger import Batch, Ledger

LOOPS = 4
BATCHES = 6


class KillAt(CrashPoints):
    """SIGKILL when a point is reached for the nth time."""

    def __init__(self, point: str, nth: int) -> None:
        self.point, self.left = point, nth

    def reach(self, name: str) -> None:
        if name == self.point:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def work(path: Path, points: CrashPoints = NO_CRASH_POINTS, *, then_wait: bool = False) -> None:
    """Takes every execution and commits to all of them at once, two records and a receipt a batch."""
    ledger = await open_sqlite(path, points=points)
    await asyncio.gather(*(loop(ledger, row.execution_id) for row in await ledger.rows()))
    say("finished")
    if then_wait:
        sys.stdin.read()
    await ledger.close()


async def loop(ledger: Ledger, execution_id: str) -> None:
    own = await ledger.acquire(execution_id, owner="victim")
    say("acquired", execution_id, own.epoch)
    head = own.head
    for _ in range(BATCHES):
        batch = Batch(own, [record(head + 1), record(head + 2)], receipts=[("loop", f"for {head + 2}")])
        await commit(ledger, batch)
        head += 2
        say("durable", execution_id, head)


async def fill(folder: Path) -> None:
    """Commits until the disk is full, makes room, acquires anew and goes on."""
    await (await open_sqlite(folder / "second.db")).close()
    ballast = folder / "ballast"
    ballast.write_bytes(b"x" * 200_000)
    ledger = await open_sqlite(folder / "store.db")
    own = await started(ledger)
    head = 0
    try:
        while True:
            await commit(ledger, Batch(own, [record(head + 1, text="x" * 20_000)]))
            head += 1
    except LedgerFull as error:
        say(error)
    try:
        await commit(ledger, Batch(own, [record(head + 1)]))
    except LedgerGap:
        say("refused after the hole")
    try:
        await open_sqlite(folder / "second.db")
    except LedgerFull as error:
        say(error)
    ballast.unlink()
    again = await ledger.acquire("run-1", owner="victim")
    assert (again.epoch, again.head) == (2, head), again
    await commit(ledger, Batch(again, [record(head + 1)]))
    assert await ledger.verify() == []
    await ledger.close()
    say("went on")


async def open_read_only(path: Path) -> None:
    try:
        await open_sqlite(path)
    except LedgerReadOnly as error:
        say(error)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["kill", path, point, nth]:
            asyncio.run(work(Path(path), KillAt(point, int(nth))))
        case ["wait", path]:
            asyncio.run(work(Path(path), then_wait=True))
        case ["fill", folder]:
            asyncio.run(fill(Path(folder)))
        case ["read-only", path]:
            asyncio.run(open_read_only(Path(path)))
        case _:
            sys.exit(2)
