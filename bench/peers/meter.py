"""What every peer's script shares: one phase of it a process, a fake model that is counted from outside, and a real SIGKILL.

A peer gives `drive(meter, folder, resuming)`, which runs its own loop or takes its own way of resuming. Its fake model calls
`meter.asked(turn)` first, with the turn that it reads off the history it was handed, so that a lost turn shows.

    time     N turns; when turn N is asked for, the figures are printed and the process kills itself
    resume   a new process drives the peer's own resume until the model is asked again; what it imports only then counts
    kill     killed in the middle of a call: billed by the fake model, and not yet answered
    settle   a new process resumes to the end and prints what the peer itself counts
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

    def __init__(self, phase: str, turns: int, folder: Path) -> None:
        self.phase, self.turns, self.folder = phase, turns, folder
        self.marks: list[float] = []
        self.cpu = 0.0
        self.wait_s = 0.0
        self.import_ms = _alive_ms()
        self.start = time.perf_counter()

    @property
    def ends(self) -> bool:
        """Whether the fake model says at turn N that it is done, so that the peer can settle its accounts."""
        return self.phase in ("kill", "settle")

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
        say({"counted": counted, "in_doubt": in_doubt})

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


def main(drive: Callable[[Meter, Path, bool], None], *, resumes: bool = True) -> None:
    """`python PEER.py PHASE TURNS FOLDER`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("phase", choices=("time", "resume", "kill", "settle"))
    parser.add_argument("turns", type=int)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    resuming = given.phase in ("resume", "settle")
    if resuming and not resumes:
        say({"resume_ms": None, "counted": None})
        sys.exit(0)
    drive(Meter(given.phase, given.turns, given.folder), given.folder, resuming)
