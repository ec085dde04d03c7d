"""The engine's side of one supervised command: starts the supervisor, feeds and reads the command, keeps its deadlines.

Blocking, so that it runs in any thread; process.py makes it awaitable.
"""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from .headtail import HeadTail
from .recorded import TAG_VARIABLE, birth_of, kill_recorded

SUPERVISOR = Path(__file__).with_name("supervisor.py")
_CHUNK = 65_536
_PIPEFULS = 32  # reads after the end; what the largest pipe can hold
_KILLED_WITHIN_S = 10.0  # what the supervisor gives itself, and as much again
LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # all that an interpreter may need of the environment


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a command ended. `output` is stdout and stderr in the order of arrival, undecodable bytes replaced.

    Where the output was longer than the limit, its middle is left out: `truncated_bytes` of it, and a line says so.
    """

    exit_code: int | None  # None: a signal ended it
    signal: int | None
    output: str
    truncated_bytes: int
    elapsed_us: int
    timed_out: bool
    left_alive: int = (
        0  # processes that it started and that could not be killed: another user's, or stuck in the kernel
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run, and within which bounds."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    timeout_s: float | None
    grace_s: float  # between SIGTERM and SIGKILL after the timeout
    output_limit_bytes: int
    stdin: bytes | None

    def request(self, tag: str) -> bytes:
        """As the supervisor is told."""
        env = {**self.env, TAG_VARIABLE: tag}
        folder = str(Path(self.cwd).absolute())  # the supervisor is elsewhere
        parts = [folder, *self.argv, *(f"{name}={value}" for name, value in env.items())]
        if any("\0" in part for part in parts):
            raise ValueError("A command, its folder and its environment cannot hold a NUL character.")
        body = b"".join(os.fsencode(part) + b"\0" for part in parts)
        return b"%d %d\n" % (len(body), len(self.argv)) + body


class Supervised:
    """One run of a command. `stop` is a socket on which a byte means: kill it now."""

    def __init__(self, command: Command, stop: socket.socket, started: Callable[[int, str], None]) -> None:
        self._command, self._stop, self._started = command, stop, started
        self._tag = secrets.token_hex(8)
        self._request = command.request(self._tag)
        self._stdin = memoryview(command.stdin or b"")
        self._kept = HeadTail(command.output_limit_bytes)
        self._told = b""  # by the supervisor
        self._group: tuple[int, str] | None = None  # as recorded
        self._ended: tuple[int, int] | None = None  # wait status, processes left alive
        self._over = self._timed_out = False
        self._deadline: float | None = None
        self._escalation = [
            (b"K", _KILLED_WITHIN_S),
            (b"T", command.grace_s),
        ]  # what each deadline leads to, last first

    def run(self) -> ProcessResult:
        """Returns when nothing of the command is left. OSError where it cannot be started; what `started` raises."""
        began = time.monotonic()
        with ExitStack() as stack:
            self._launch(stack)
            try:
                while not self._over:
                    self._step()
            except BaseException:
                self._stop_now()
                while not self._over:
                    self._step()
                raise
            for _ in range(_PIPEFULS):
                self._read()
        if self._ended is None:
            self._without_supervisor()
        return self._result(time.monotonic() - began)

    def _launch(self, stack: ExitStack) -> None:
        self._selector = stack.enter_context(selectors.DefaultSelector())
        self._control, theirs = (stack.enter_context(end) for end in socket.socketpair())
        self._output, output = os.pipe()
        stack.callback(os.close, self._output)
        source, self._input = os.pipe()
        stack.callback(self._close_input)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", str(SUPERVISOR), str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL if self._command.stdin is None else source,
                stdout=output,
                stderr=output,
                cwd="/",
                env={name: value for name in LOADER if (value := os.environ.get(name))},  # noqa: TID251 - no setting
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C at the terminal is for the engine to act on
            )
        finally:
            theirs.close()
            os.close(output)
            os.close(source)
        stack.callback(process.wait)
        stack.callback(process.kill)
        os.set_blocking(self._output, False)
        os.set_blocking(self._input, False)
        self._selector.register(self._stop, selectors.EVENT_READ, self._stop_now)
        self._selector.register(self._control, selectors.EVENT_READ, self._listen)
        self._selector.register(self._output, selectors.EVENT_READ, self._read)
        self._selector.register(self._input, selectors.EVENT_WRITE, self._write)
        self._tell(self._request)

    def _step(self) -> None:
        patience = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        for key, _ in self._selector.select(patience):
            key.data()
        if self._deadline is None or time.monotonic() < self._deadline:
            return
        if not self._escalation:
            self._over = True
            return
        order, seconds = self._escalation.pop()
        self._tell(order)
        self._timed_out = True
        self._deadline = time.monotonic() + seconds

    def _stop_now(self) -> None:
        if self._stop in self._selector.get_map():
            self._selector.unregister(self._stop)
        self._tell(b"K")
        self._escalation.clear()
        self._deadline = time.monotonic() + _KILLED_WITHIN_S

    def _tell(self, order: bytes) -> None:
        try:
            self._control.sendall(order)
        except (BrokenPipeError, ConnectionResetError):  # the supervisor is gone: listening will show it
            return

    def _listen(self) -> None:
        try:
            heard = self._control.recv(_CHUNK)
        except ConnectionResetError:
            heard = b""
        self._over = not heard
        *lines, self._told = (self._told + heard).split(b"\n")
        for line in lines:
            word, first, second = line.split()
            if word == b"failed":
                missing = self._command.cwd if second == b"cwd" else self._command.argv[0]
                self._over = True
                raise OSError(int(first), os.strerror(int(first)), missing)
            if word == b"started":
                self._group = int(first), birth_of(second.decode(), self._tag)
                if self._command.timeout_s is not None and self._escalation:
                    self._deadline = time.monotonic() + self._command.timeout_s
                self._started(*self._group)
            if word == b"ended":
                self._ended, self._over = (int(first), int(second)), True

    def _read(self) -> None:
        try:
            chunk = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return
        self._kept.add(chunk)
        if not chunk and self._output in self._selector.get_map():
            self._selector.unregister(self._output)

    def _write(self) -> None:
        try:
            self._stdin = self._stdin[os.write(self._input, self._stdin[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # the command does not want it
            self._stdin = self._stdin[:0]
        if not self._stdin:
            self._close_input()

    def _close_input(self) -> None:
        if self._input >= 0:
            if self._input in self._selector.get_map():
                self._selector.unregister(self._input)
            os.close(self._input)
            self._input = -1

    def _without_supervisor(self) -> None:
        """It was killed from outside: the direct child died with it, the rest is found by group and tag."""
        if self._group is None:
            raise ChildProcessError(f"The supervisor of a command did not start: {self._kept.text()[0]}")
        with suppress(ProcessLookupError, PermissionError):  # nothing is left of the group, or it is another user's
            os.killpg(self._group[0], signal.SIGKILL)
        kill_recorded(*self._group)
        self._ended = (signal.SIGKILL, 0)

    def _result(self, seconds: float) -> ProcessResult:
        status, left = self._ended or (0, 0)
        code = os.waitstatus_to_exitcode(status)
        output, left_out = self._kept.text()
        return ProcessResult(
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            output=output,
            truncated_bytes=left_out,
            elapsed_us=round(seconds * 1e6),
            timed_out=self._timed_out,
            left_alive=left,
        )
