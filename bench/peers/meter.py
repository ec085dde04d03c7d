"""What every peer's script shares: one phase of it a process, a fake model that is counted from outside, and a real SIGKILL.

A peer gives `drive(meter, folder, resuming)`, which runs its own loop or takes its own way of resuming. Its fake model calls
`meter.asked(turn)` first, with the turn that it reads off the history it was handed, so that a lost turn shows.

    time     N turns; when turn N is asked for, the figures are printed and the process kills itself
    resume   a new process drives the peer's own resume until the model is asked again; what it imports only then counts
    kill     killed in the middle of a call: billed by the fake model, and not yet answered
    settle   a new process resumes to the end and prints what the peer itself counts
    many     `loops` loops of N turns each at once in one process, as the peer has it (a thread or a task each)

For the last, a peer gives `many(meter, folder)`, which opens its store and returns `run(names)`: a loop a name, all at once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

BILL = "bill"


class Ended(BaseException):
    """The peer has been asked for what was wanted: whatever it is doing does not matter any more."""


class Meter:
    """Clocks and bills one process."""

    def __init__(self, phase: str, turns: int, folder: Path, loops: int = 1) -> None:
        self.phase, self.turns, self.folder, self.loops = phase, turns, folder, loops
        self.marks: list[float] = []
        self.cpu = 0.0
        self.wait_s = 0.0
        self.import_ms = _alive_ms()
        self.start = time.perf_counter()

    @property
    def ends(self) -> bool:
        """Whether the fake model says at turn N that it is done, so that the peer can settle its accounts."""
        return self.phase in ("kill", "settle", "many")

    def asked(self, turn: int) -> None:
        """The model is asked for this turn."""
        now = time.perf_counter()
        if self.phase == "resume":
            resume_ms = (now - self.start - self.wait_s) * 1000
            say(
                {
                    "resume_ms": resume_ms,
                    "import_ms": self.import_ms,
                    "wait_s": self.wait_s,
                    "lost_turns": self.turns - turn,
                }
            )
            os._exit(0)
        if self.phase == "many":
            self.marks.append(now)
            return
        if self.ends:
            self._bill()
            if self.phase == "kill" and turn == self.turns // 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return
        if not self.marks:
            self.cpu = time.process_time()
        self.marks.append(now)
        if turn == self.turns:
            self._print()
            os.kill(os.getpid(), signal.SIGKILL)

    def waited(self, seconds: float) -> None:
        """So long a resume has waited for a lease to lapse: told beside its time, not in it."""
        self.wait_s = seconds

    def settled(self, counted: int | None, in_doubt: int = 0) -> None:
        """What the peer counts as used, at its end."""
        if self.phase != "many":
            say({"counted": counted, "in_doubt": in_doubt})

    def together(self, run: Callable[[list[str]], None]) -> None:
        """Turns a second of all loops at once, after one that warms up what is made only once."""
        run(["warm"])
        self.marks.clear()
        start, cpu = time.perf_counter(), time.process_time()
        run([f"bench{number}" for number in range(self.loops)])
        spent, cpu = time.perf_counter() - start, time.process_time() - cpu
        turns = self.loops * self.turns
        asked = len(self.marks)
        if asked != turns + self.loops:  # each is asked once more, for its end
            raise SystemExit(f"{self.loops} loops of {self.turns} turns asked {asked} times")
        say({"loops": self.loops, "turns_s": turns / spent, "cpu_ms": cpu * 1000 / turns})

    def _bill(self) -> None:
        file = os.open(self.folder / BILL, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, b"1\n")
        os.fsync(file)
        os.close(file)

    def _print(self) -> None:
        spans = [(b - a) * 1000 for a, b in pairwise(self.marks)]
        figures = {
            "turn_ms": statistics.median(spans),
            "last_ms": statistics.median(spans[-10:]),
            "total_s": self.marks[-1] - self.marks[0],
            "cpu_ms": (time.process_time() - self.cpu) * 1000 / self.turns,
            "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        say(figures)


def _alive_ms() -> float:
    """How long this process has lived: the interpreter's start and the imports. To 10 ms, as the system keeps it."""
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return (time.clock_gettime(time.CLOCK_BOOTTIME) - started) * 1000


def say(figures: dict[str, Any]) -> None:
    """One line of JSON, past whatever has taken stdout's place."""
    os.write(1, f"\n@{json.dumps(figures)}\n".encode())


Many = Callable[[Meter, Path], Callable[[list[str]], None]]


def main(drive: Callable[[Meter, Path, bool], None], many: Many | None = None, *, resumes: bool = True) -> None:
    """`python PEER.py PHASE TURNS FOLDER [LOOPS]`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("phase", choices=("time", "resume", "kill", "settle", "many"))
    parser.add_argument("turns", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("loops", type=int, nargs="?", default=1)
    given = parser.parse_args()
    if given.phase == "many" and many is not None:
        meter = Meter(given.phase, given.turns, given.folder, given.loops)
        meter.together(many(meter, given.folder))
        os._exit(0)
    resuming = given.phase in ("resume", "settle")
    if resuming and not resumes:
        say({"resume_ms": None, "counted": None})
        sys.exit(0)
    drive(Meter(given.phase, given.turns, given.folder), given.folder, resuming)
