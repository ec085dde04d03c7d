"""Watches over one command, in a small process of its own, so that nothing of the command outlives the engine.

supervised.py starts this file as `python -I -S supervisor.py CONTROL_FD ENGINE_PID`: standard library only, quick to
start. A parent-death signal alone would reach only the direct child, and only while the thread that forked it lives. So
this process adopts the orphans below it (Linux), and kills them all when the engine says so or is gone, or the command
has ended.

    engine -> supervisor   "BYTES ARGC\\n", then cwd, argv and NAME=VALUE pairs, each ended by NUL;
                           later "T" (SIGTERM to the command's group) or "K" (kill all); end of file means "K"
    supervisor -> engine   "started PID START\\n" or "failed ERRNO cwd|exec\\n", then "ended WAIT_STATUS LEFT\\n"

Without Linux there is no adoption: what leaves the command's process group escapes.
"""
# ruff: noqa: PTH123, PTH208, SIM105 - pathlib and contextlib would double the time that this takes to start

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # typing would, too
if TYPE_CHECKING:
    from collections.abc import Callable

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
STOP: list[int] = []  # signals to end that have been received
KILL_WITHIN_S = 5.0  # processes in uninterruptible sleep, or of another user, are not waited for longer


def prctl(option: int, value: int) -> None:
    """Linux only; elsewhere it does nothing."""
    if LINUX and ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def process_table() -> dict[int, tuple[int, int]]:
    """Every process with its parent and its group; empty where there is no /proc."""
    table: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc") if LINUX else ():
        if name.isdigit() and (fields := stat_fields(int(name))):
            table[int(name)] = int(fields[1]), int(fields[2])
    return table


def stat_fields(pid: int) -> list[bytes]:
    """Fields 3 and later of /proc/PID/stat; empty for a process that is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:  # it has ended meanwhile, or there is no /proc
        return []


def read_request(control: int) -> tuple[bytes, list[bytes], dict[bytes, bytes]]:
    """cwd, argv and environment. EOFError where the engine is gone already."""
    data = b""
    while b"\n" not in data:
        data += receive(control)
    head, _, body = data.partition(b"\n")
    size, argc = (int(number) for number in head.split())
    while len(body) < size:
        body += receive(control)
    parts = body[:size].split(b"\0")[:-1]
    pairs = (pair.partition(b"=") for pair in parts[argc + 1 :])
    return parts[0], parts[1 : argc + 1], {name: value for name, _, value in pairs}


def receive(control: int) -> bytes:
    """Some bytes. EOFError where the engine is gone."""
    try:
        if data := os.read(control, 65_536):
            return data
    except ConnectionResetError:  # gone without having read what we sent
        pass
    raise EOFError


def start(cwd: bytes, argv: list[bytes], env: dict[bytes, bytes]) -> tuple[int, bytes]:
    """The pid of the command, leader of its own session and group; and what went wrong: b"" or b"ERRNO STAGE"."""
    supervisor = os.getpid()
    failure_r, failure_w = os.pipe()  # closed by a successful exec
    pid = os.fork()
    if pid == 0:
        become(cwd, argv, env, supervisor, failure_w)
    os.close(failure_w)
    with open(failure_r, "rb") as file:
        return pid, file.read()


def become(cwd: bytes, argv: list[bytes], env: dict[bytes, bytes], supervisor: int, failure: int) -> None:
    """In the child: turns into the command. Never returns."""
    stage = b"cwd"
    try:
        os.setsid()
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these, and exec would pass that on
            signal.signal(ignored, signal.SIG_DFL)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            return
        os.chdir(cwd)
        stage = b"exec"
        os.execvpe(argv[0], argv, env)  # noqa: S606
    except OSError as error:
        os.write(failure, b"%d %s" % (error.errno or 0, stage))
    finally:
        os._exit(127)


class Family:
    """The command and everything that it has started, as far as the system lets one know."""

    def __init__(self, leader: int) -> None:
        self.leader, self.status = leader, -1
        self.all_gone = False

    def reap(self) -> None:
        """Collects whatever has ended."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.leader:
                    self.status = status
        except ChildProcessError:
            self.all_gone = True

    def signal_all(self, number: int) -> None:
        """Signals each group of the family at once, so that none can fork its way out, then each process."""
        table = process_table()
        family, grown = {os.getpid()}, True
        while grown:
            more = {pid for pid, (parent, _) in table.items() if parent in family} - family
            family, grown = family | more, bool(more)
        family.discard(os.getpid())
        for group in {table[pid][1] for pid in family} | {self.leader}:
            if group != os.getpgrp():
                send(os.killpg, group, number)
        for pid in family:
            send(os.kill, pid, number)

    def kill(self, woken: int) -> int:
        """Kills and collects everything. How many processes it could not get rid of."""
        deadline = time.monotonic() + KILL_WITHIN_S
        if not LINUX:
            self.signal_all(signal.SIGKILL)  # what is left of the group is not ours to wait for
        while True:
            self.reap()
            if self.all_gone:
                return 0
            if time.monotonic() > deadline:
                return sum(1 for parent, _ in process_table().values() if parent == os.getpid())
            self.signal_all(signal.SIGKILL)
            select.select([woken], [], [], 0.05)
            drain(woken)


def send(how: Callable[[int, int], None], target: int, number: int) -> None:
    """Signals; what is gone already, or belongs to another user, is left alone."""
    try:
        how(target, number)
    except (ProcessLookupError, PermissionError):
        return


def drain(woken: int) -> None:
    """Empties the pipe that signals write to."""
    try:
        while os.read(woken, 512):
            pass
    except BlockingIOError:
        return


def report(control: int, line: bytes) -> None:
    """Tells the engine, where there still is one."""
    try:
        os.write(control, line + b"\n")
    except (BrokenPipeError, ConnectionResetError):
        return


def watch(control: int, engine: int, woken: int, family: Family) -> None:
    """Returns when the command has ended or everything has to be killed."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(woken, select.POLLIN)
    if hasattr(os, "pidfd_open"):  # a fork of the engine may hold the other end of the control socket open
        try:
            poller.register(os.pidfd_open(engine), select.POLLIN)
        except OSError:  # an old kernel, or it is gone: then the control socket has ended, too
            pass
    while not STOP:
        family.reap()
        if family.status >= 0:
            return
        ready = {fd for fd, _ in poller.poll()}
        drain(woken)
        if control in ready:
            try:
                orders = receive(control)
            except EOFError:
                return
            if b"T" in orders:
                send(os.killpg, family.leader, signal.SIGTERM)
            if b"K" in orders:
                return
        if ready - {control, woken}:
            return


def listen_to_signals() -> int:
    """What becomes readable when a child has ended or this process is told to end."""
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: STOP.append(number))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the engine's thread may have blocked some
    return woken


def main() -> None:
    """Runs the one command that the engine asks for."""
    control, engine = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(control, False)
    woken = listen_to_signals()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        request = read_request(control)
    except EOFError:
        return
    leader, failure = start(*request)
    if failure:
        report(control, b"failed " + failure)
        return
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # the command's alone from here
        os.dup2(nowhere, standard)
    fields = stat_fields(leader)
    family = Family(leader)
    report(control, b"started %d %s" % (leader, fields[19] if fields else b"0"))
    watch(control, engine, woken, family)
    left = family.kill(woken)
    report(control, b"ended %d %d" % (family.status, left))


if __name__ == "__main__":
    main()
