"""An event loop without time, threads or I/O, and processes in it that can be killed, stopped and woken between any two of their steps."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio.lowlevel
from anyio import to_thread
from anyio._backends._asyncio import CancelScope

from treadle.ports.clock import Clock, CrashPoints

PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)
START_US = 1_700_000_000_000_000
LEASE_S, RENEW_S, STALE_S = 3.0, 1.0, 2.0  # as on Postgres


class _Ordered(dict[Any, None]):
    """A set that is walked through in the order in which it was filled."""

    def add(self, one: Any) -> None:
        self[one] = None

    def remove(self, one: Any) -> None:
        del self[one]

    def discard(self, one: Any) -> None:
        self.pop(one, None)


async def _inline(function: Callable[..., Any], *args: Any, **_options: Any) -> Any:
    """What a thread would do, at once: a thread ends when it likes."""
    await anyio.lowlevel.checkpoint()
    return function(*args)


@contextmanager
def repeatable_anyio() -> Iterator[None]:
    """Meanwhile a cancelled scope cancels its tasks in the order in which they began, not by where they lie in memory, and there
    are no threads."""
    plain, threaded = CancelScope.__init__, to_thread.run_sync

    def init(scope: Any, *args: Any, **options: Any) -> None:
        plain(scope, *args, **options)
        scope._child_scopes, scope._tasks = _Ordered(), _Ordered()

    CancelScope.__init__ = init  # type: ignore[method-assign]
    to_thread.run_sync = _inline  # type: ignore[assignment]
    try:
        yield
    finally:
        CancelScope.__init__ = plain  # type: ignore[method-assign]
        to_thread.run_sync = threaded


class Killed(BaseException):
    """This process is no more: what it would still do has no effect."""


class Deadlock(RuntimeError):
    """Nothing will ever happen again, and somebody waits."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Time passes only when nothing is left to be done at this instant. What a process scheduled dies with it."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = self
        self._kept: list[asyncio.Task[Any]] = []
        self.set_exception_handler(lambda _loop, _context: None)  # of killed processes nobody asks for the results

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        """Nothing is ever read: the next timer is due at once."""
        if timeout is None:
            raise Deadlock
        self._now += max(0.0, timeout)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """It is kept to the end of the trial: what is collected runs its `finally`, and a killed process must not."""
        task = super().create_task(coro, **options)
        self._kept.append(task)
        return task

    def call_soon(self, callback: Any, *args: Any, context: contextvars.Context | None = None) -> asyncio.Handle:
        step = _step(callback, args, context)
        if step is None:
            return super().call_soon(callback, *args, context=context)
        step.handle = super().call_soon(step.run, context=step.context)
        return step.handle

    def call_at(
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        step = _step(callback, args, context)
        if step is None:
            return super().call_at(when, callback, *args, context=context)
        timer = super().call_at(when, step.run, context=step.context)
        step.handle = timer
        return timer

    def outside(self, delay_s: float, callback: Callable[[], None]) -> None:
        """Runs it then as part of no process."""
        super().call_at(self._now + delay_s, callback, context=contextvars.Context())


class _Step:
    """One thing that a process will do."""

    __slots__ = ("args", "callback", "context", "handle", "process")

    def __init__(self, process: Process, callback: Any, args: tuple[Any, ...], context: contextvars.Context) -> None:
        self.process, self.callback, self.args, self.context = process, callback, args, context
        self.handle: asyncio.Handle

    def run(self) -> None:
        process = self.process
        if process.dead:
            return
        if process.stopped:
            process.held.append(self)
            return
        process.steps += 1
        if process.steps == process.dies_at_step:
            process.kill("between two steps")
            return
        self.callback(*self.args)


def _step(callback: Any, args: tuple[Any, ...], context: contextvars.Context | None) -> _Step | None:
    process = PROCESS.get() if context is None else context.get(PROCESS)
    if process is None:
        return None
    return _Step(process, callback, args, contextvars.copy_context() if context is None else context)


class Process:
    """What one operating system process would be. Its tasks inherit it by context."""

    def __init__(self, name: str, loop: VirtualLoop, note: Callable[..., None]) -> None:
        self.name, self.loop, self.note = name, loop, note
        self.dead = self.stopped = self.cut = self.buried = False
        self.steps = 0
        self.dies_at_step = 0  # 0: at none
        self.dies_at_point: tuple[str, int] = ("", 0)
        self.held: list[_Step] = []
        self.skew_us = 0
        self.boot_us = 0
        self._renewed = loop.time()
        self._renews_from = 0.0  # it cannot renew before
        self.gaps = 0  # between renewals, so long that others may have taken over meanwhile
        self._away = False  # stopped or cut off since it last renewed: otherwise it renews all the time
        self.tasks: list[asyncio.Task[Any]] = []

    def start(self, main: Callable[[], Any]) -> asyncio.Task[Any]:
        """Runs `main` in this process."""
        context = contextvars.copy_context()
        context.run(PROCESS.set, self)
        task = context.run(lambda: self.loop.create_task(main(), name=self.name))
        self.tasks.append(task)
        return task

    def kill(self, how: str) -> None:
        """SIGKILL."""
        if not self.dead:
            self.renewed()
            self.dead = True
            self.note("killed", self.name, how)

    def stop(self) -> None:
        """SIGSTOP."""
        if not self.dead and not self.stopped:
            self.renewed()
            self.stopped = self._away = True
            self.note("stopped", self.name)

    def wake(self, renews_after_s: float) -> None:
        """SIGCONT; its lease is renewed a moment later."""
        if self.stopped:
            self.stopped = False
            self._renews_from = self.loop.time() + renews_after_s
            self.note("woken", self.name)
            held, self.held = self.held, []
            for step in held:
                if not step.handle.cancelled():
                    step.handle = self.loop.call_soon(step.callback, *step.args, context=step.context)

    def cut_off(self) -> None:
        """Nothing that it says reaches the store, and nothing from there reaches it."""
        if not self.dead and not self.cut:
            self.renewed()
            self.cut = self._away = True
            self.note("cut off", self.name)

    def join(self, renews_after_s: float) -> None:
        """The partition is over."""
        if self.cut:
            self.cut = False
            self._renews_from = self.loop.time() + renews_after_s
            self.note("joined", self.name)

    def renewed(self) -> float:
        """When it last renewed its lease at the store. Others may take its executions over 3 s later."""
        now = self.loop.time()
        if not (self.dead or self.stopped or self.cut) and now >= self._renews_from:
            self._renewed_at(now)
        return self._renewed

    def _renewed_at(self, now: float) -> None:
        if self._away and max(now, self._renews_from) - self._renewed > STALE_S:
            self.gaps += 1
        self._away = False
        self._renewed = max(self._renewed, now)

    def renew(self) -> None:
        """By a request of its own."""
        self._renewed_at(self.loop.time())


class SimulatedClock(Clock):
    """The clocks of one process: the wall's may jump."""

    def __init__(self, process: Process, random: Callable[[], float], new_id: Callable[[], str]) -> None:
        self._process, self._random, self._new_id = process, random, new_id

    def wall_us(self) -> int:
        return START_US + self._process.skew_us + round(self._process.loop.time() * 1e6)

    def monotonic_us(self) -> int:
        return self._process.boot_us + round(self._process.loop.time() * 1e6)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(0.0, seconds))

    def random(self) -> float:
        return self._random()

    def new_id(self) -> str:
        return self._new_id()


class SimulatedPoints(CrashPoints):
    """Kills the process at a named point."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def reach(self, name: str) -> None:
        process = self._process
        wanted, nth = process.dies_at_point
        if name == wanted and not process.dead:
            process.dies_at_point = (wanted, nth - 1)
            if nth == 1:
                process.kill(f"at {name}")
                raise Killed
