"""Ctrl-C, SIGTERM and SIGHUP: the first asks for a clean stop, the second ends the process at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import anyio

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

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
        self._restore()
        os._exit(128 + number)
