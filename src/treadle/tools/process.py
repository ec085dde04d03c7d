"""Runs a command so that it can never outlive its owner: each has a supervisor process of its own (supervisor.py)."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence

from anyio import CancelScope, CapacityLimiter, from_thread, to_thread

from .recorded import kill_recorded
from .supervised import Command, ProcessResult, Supervised

__all__ = ["ProcessResult", "kill_recorded", "run_process"]


async def run_process(
    command: str | Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    timeout_s: float | None,
    output_limit_bytes: int,
    stdin: bytes | None = None,
    started: Callable[[int, str], None] | None = None,
    grace_s: float = 1.0,
) -> ProcessResult:
    """Runs a command to its end: a string by /bin/sh, a sequence as it is. Without `stdin` it reads nothing.

    When the command itself has ended, whatever it left running in the background is killed: over is over.
    After `timeout_s` its group gets SIGTERM, and everything SIGKILL `grace_s` later. When the caller is cancelled,
    everything is killed at once and gone before this returns; when the engine is killed, the supervisor does the same.
    `started(pgid, birth)` is called on the event loop's thread as soon as the command has its process group, for
    `kill_recorded`; what it raises kills the command and is raised here.
    OSError where the command cannot be started; its `filename` is the program or the folder that is at fault.
    """
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
    asked = Command(
        argv=argv,
        cwd=os.fspath(cwd),
        env=env,
        timeout_s=timeout_s,
        grace_s=grace_s,
        output_limit_bytes=output_limit_bytes,
        stdin=stdin,
    )

    def on_loop(pgid: int, birth: str) -> None:
        if started is not None:
            from_thread.run_sync(started, pgid, birth)

    stop, ring = socket.socketpair()
    with stop, ring:
        thread = _InThread(Supervised(asked, stop, on_loop).run)
        try:
            return await to_thread.run_sync(thread.run, abandon_on_cancel=True, limiter=CapacityLimiter(1))
        finally:  # anyio's and asyncio's own cancellation alike
            if thread.abandon():
                ring.send(b"K")
                with CancelScope(shield=True):
                    await to_thread.run_sync(thread.finished.wait, limiter=CapacityLimiter(1))


class _InThread:
    """Tells a caller that gives up whether its work has begun in the other thread, and when that is over."""

    def __init__(self, work: Callable[[], ProcessResult]) -> None:
        self._work = work
        self._lock, self._entered, self._abandoned = threading.Lock(), False, False
        self.finished = threading.Event()

    def run(self) -> ProcessResult:
        with self._lock:
            if self._abandoned:
                raise InterruptedError  # nobody is there to see it
            self._entered = True
        try:
            return self._work()
        finally:
            self.finished.set()

    def abandon(self) -> bool:
        """Whether the work is under way and has to be waited for; where it has not begun, it never will."""
        with self._lock:
            self._abandoned = True
            return self._entered and not self.finished.is_set()
