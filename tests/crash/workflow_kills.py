"""SIGKILL at every crash point of every show, each time that it is reached, in a process with a store on disk; another goes on.

python tests/crash/workflow_kills.py [--shows NAME ...] [--every 1]

The processes are forks of this one, so that a kill costs no start of Python. The last line says how many kills and faults there were.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import anyio

from support.deaths import FateAt, concluded, durable_in, lawful, live
from support.more_shows import SHOWS
from support.shows import Show, World
from treadle.app.stores import open_store
from treadle.ports.clock import NO_CRASH_POINTS, CrashPoints
from treadle.testing import VirtualClock
from treadle.testing.crash import KillAt, Reached

LATER_US = 3_600_000_000
MEMORY = Path("/dev/shm")
WHERE = (
    MEMORY if MEMORY.is_dir() else None
)  # a kill loses nothing that was written, synced or not: no need to wait for a disk


def forked(work: Callable[[], None]) -> int:
    """The status of a process that did this, as `waitpid` gives it; 256 where it raised."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        work()
    except BaseException:  # noqa: BLE001 - the parent has to be told
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def act(show: Show, folder: Path, points: CrashPoints, life: int) -> None:
    """One process, from what it finds to the end. Its clock is its own: whatever it waits for is over at once."""

    async def main() -> None:
        ledger = await open_store(f"sqlite:///{folder / 't.db'}", points)
        try:
            clock = VirtualClock(start_us=time.time_ns() // 1000 + life * LATER_US, seed=life)
            await live(show, World(folder / "log"), ledger, points, clock)
        finally:
            await ledger.close()

    anyio.run(main)


def judge(show: Show, folder: Path, before: Path | None, met_at: int) -> None:
    """Raises where something does not hold."""

    async def main() -> None:
        ledger = await open_store(f"sqlite:///{folder / 't.db'}", NO_CRASH_POINTS)
        try:
            end = await concluded(ledger, World(folder / "log"), int(before is not None))
        finally:
            await ledger.close()
        show.judge(end)
        lawful(end, {} if before is None else await durable_in(f"sqlite:///{before}"), met_at)

    anyio.run(main)


def points_of(show: Show, folder: Path) -> Counter[str]:
    """How often each point is reached, in a run that is whole: in this very process, so that its forks have loaded everything."""
    reached = Reached()
    act(show, folder, reached, 0)
    judge(show, folder, None, 0)
    return reached.counts


def killed(show: Show, folder: Path, point: str, nth: int) -> tuple[int, int]:
    """(kills, faults) of one case."""
    status = forked(lambda: act(show, folder, KillAt(point, nth), 0))
    if not os.WIFSIGNALED(status):
        return 0, int(status != 0)  # side by side things come in another order: it was not reached as often
    assert os.WTERMSIG(status) == signal.SIGKILL
    before = folder / "before.db"
    for suffix in ("", "-wal", "-shm"):
        left = Path(f"{folder / 't.db'}{suffix}")
        if left.exists():
            Path(f"{before}{suffix}").write_bytes(left.read_bytes())
    met_at = len(World(folder / "log").lines())

    def second() -> None:
        act(show, folder, FateAt(), 1)
        judge(show, folder, before, met_at)

    return 1, int(forked(second) != 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shows", nargs="*", default=list(SHOWS), choices=list(SHOWS))
    parser.add_argument("--every", type=int, default=1, help="every so many times that a point is reached")
    args = parser.parse_args()
    kills, faults, start = Counter[str](), 0, time.monotonic()
    for name in args.shows:
        show = SHOWS[name]
        with tempfile.TemporaryDirectory(dir=WHERE) as folder:
            points = points_of(show, Path(folder))
        for point, count in points.items():
            for nth in range(1, count + 1, args.every):
                with tempfile.TemporaryDirectory(dir=WHERE) as folder:
                    died, fault = killed(show, Path(folder), point, nth)
                kills[point] += died
                faults += fault
                if fault:
                    print(f"FAULT {name} {point}:{nth}", flush=True)
    for point, count in sorted(kills.items()):
        print(f"{point:24} {count} kills")
    print(f"{kills.total()} kills, {faults} faults, {time.monotonic() - start:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
