"""Ctrl-C, SIGTERM and SIGHUP: the first asks for a clean stop, the second ends the process at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import anyio

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

RESTORE_S = 1.0  # for the terminal to be given back
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Stopping:
    """Which signal has asked for a stop. `stop` is called at the first, on the event loop's thread; set it beforehand."""

    stop: Callable[[], None]

    def __init__(self, restore: Callable[[], None]) -> None:
        self.name = ""
        self._restore = restore  # the terminal, before the process ends at once

    async def watch(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Listens until it is cancelled."""
        with anyio.open_signal_receiver(*(signal.Signals[name] for name in NAMES)) as received:
            task_status.started()
            async for number in received:
                if self.name:
                    self._at_once(number)
                self.name = number.name
                self.stop()

    def _at_once(self, number: signal.Signals) -> NoReturn:
        """Children of tools die with this process; what was committed is safe, and the next owner takes over the rest."""
        restoring = threading.Thread(target=self._restore, daemon=True)
        restoring.start()
        restoring.join(RESTORE_S)  # a terminal that takes nothing keeps nobody
        os._exit(128 + number)
