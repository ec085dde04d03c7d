"""Crash points that really kill, and ones that only take notes: the promises are tested with both."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter

from treadle.core.errors import ConfigurationError
from treadle.ports.clock import NO_CRASH_POINTS, CrashPoints

LOOP_POINTS = (
    "before-model",
    "after-model",
    "before-tool",
    "after-tool",
    "before-act",
    "after-act",
    "before-check",
    "after-check",
    "before-compaction",
    "after-compaction",
    "before-baseline",
    "after-baseline",
)
SCOPE_POINTS = (
    "before-scope",
    "after-scope",
    "before-conflict-check",
    "after-conflict-check",
    "before-bring-in",
    "after-bring-in",
    "before-close",
    "after-close",
)
"""Only where a loop is isolated."""
LESSON_POINTS = ("before-gates", "after-gates", "before-vote", "after-vote", "before-distil", "after-distil")
"""Of loops that have gates, or learn."""
CHILD_POINTS = ("before-child", "after-child")
"""Of a loop whose agent forks."""
WORKFLOW_POINTS = (
    "phase-intended",
    "before-perform",
    "after-perform",
    "before-attempt",
    "after-attempt",
    "before-take",
    "after-take",
    "candidates-cleared",
)
"""Besides before-check and after-check, which loops reach, too."""
LEDGER_POINTS = ("ledger.before-commit", "ledger.in-transaction", "ledger.after-commit", "ledger.in-acquire")


class KillAt(CrashPoints):
    """Kills this process with SIGKILL when a point is reached for the n-th time."""

    def __init__(self, name: str, nth: int = 1) -> None:
        self._name, self._left = name, nth
        self._lock = threading.Lock()

    def reach(self, name: str) -> None:
        if name != self._name:
            return
        with self._lock:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Reached(CrashPoints):
    """Counts how often each point was reached."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.order: list[str] = []

    def reach(self, name: str) -> None:
        self.counts[name] += 1
        self.order.append(name)


def crash_points(spec: str) -> CrashPoints:
    """Of "point" or "point:n", as in TREADLE_CRASH_AT; none for an empty one. ConfigurationError."""
    if not spec:
        return NO_CRASH_POINTS
    name, _, nth = spec.partition(":")
    points = (*LOOP_POINTS, *SCOPE_POINTS, *LESSON_POINTS, *CHILD_POINTS, *WORKFLOW_POINTS, *LEDGER_POINTS)
    if name not in points or not (nth or "1").isdecimal() or nth == "0":
        known = ", ".join(points)
        raise ConfigurationError(f"TREADLE_CRASH_AT={spec!r} is no crash point. Known: {known}; POINT or POINT:N.")
    return KillAt(name, int(nth or 1))
