"""A view on a thread of its own: a pipe that nobody reads, or a terminal that was halted with Ctrl-S, stops no loop."""

from __future__ import annotations

import threading

from treadle.core.spoken import count
from treadle.ports.observer import Progress

from .bus import CLOSE_S, Pump, Ring
from .progress import Line, View

SIZE = 2_048  # notes that may wait; then the oldest are lost
GATHER_S = 0.05  # that notes may gather: a thread that is woken for each would interrupt the loop for each


class Behind(View):
    """Shows what another view shows, a little later. Where that one is held up, the newest win and what is missing is said."""

    def __init__(self, view: View, *, size: int = SIZE) -> None:
        self._view, self.wants_text, self.hears_children = view, view.wants_text, view.hears_children
        self.ignores = view.ignores
        self._ring: Ring[Progress | Line | threading.Event] = Ring(size)
        self._told = 0
        self._pump = Pump(self._ring, self._take, lag=size, gather_s=GATHER_S)

    def notify(self, progress: Progress) -> None:
        if progress.kind not in self.ignores:
            self._ring.publish(progress)

    def say(self, line: Line) -> None:
        self._ring.publish(line)

    def hide(self) -> None:
        """What has been told so far is shown first, as far as there is time."""
        self._settled()
        self._view.hide()

    def show(self) -> None:
        self._view.show()

    def close(self) -> None:
        in_time = self._settled()
        self._ring.close()
        self._pump.join(CLOSE_S if in_time else 0)
        self._view.close()

    def _settled(self) -> bool:
        shown = threading.Event()
        self._ring.publish(shown)
        return self._ring.closed or shown.wait(CLOSE_S)

    def _take(self, note: Progress | Line | threading.Event) -> None:
        if isinstance(note, threading.Event):
            note.set()
            return
        if (lost := self._pump.dropped - self._told) > 0:
            self._told += lost
            self._view.say(Line(f"  ({count(lost, 'note')} left out: nobody read them in time)", "quiet"))
        if isinstance(note, Line):
            self._view.say(note)
        else:
            self._view.notify(note)
