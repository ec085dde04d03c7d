"""Process groups that an engine has recorded: how to tell them from later holders of the same number, and kill them.

`birth` is "BOOT:START:TAG": the boot, the leader's start time in clock ticks since then, and a random tag that the
command and whatever it started carry in their environment. The tag finds even what left the group, when leader and
supervisor are dead.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import closing
from pathlib import Path

from .supervisor import process_table, stat_fields

TAG_VARIABLE = "TREADLE_PROCESS"
_GONE_WITHIN_S = 5.0
_START_FIELD = 19  # of /proc/PID/stat, counted from its third field


def birth_of(start: str, tag: str) -> str:
    """What to record beside the group's number; empty where the system cannot say (not Linux)."""
    return f"{_boot()}:{start}:{tag}" if sys.platform == "linux" else ""


def kill_recorded(pgid: int, birth: str) -> bool:
    """Kills what is left of a recorded command and waits until it is gone, up to 5 s. Whether anything was.

    A group is killed only while its leader is the recorded process, a single process only while it carries the tag.
    Blocks; without Linux it does nothing.
    """
    boot, _, rest = birth.partition(":")
    start, _, tag = rest.partition(":")
    if sys.platform != "linux" or not (start and tag) or boot != _boot():
        return False
    killed, deadline = False, time.monotonic() + _GONE_WITHIN_S
    while (victims := _remnants(pgid, start.encode(), tag.encode())) and time.monotonic() < deadline:
        killed = True
        _kill(victims, deadline)
    return killed


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # a restricted /proc: start times then are all there is
        return ""


def _remnants(pgid: int, start: bytes, tag: bytes) -> dict[int, int]:
    """pid -> pidfd of each process that belongs to the recorded command; all opened before any is looked at."""
    found: dict[int, int] = {}
    whole_group = pgid > 1 and _is_leader(pgid, start)
    for pid, (_, group) in process_table().items():
        if pid == os.getpid():
            continue
        try:
            handle = os.pidfd_open(pid)
        except OSError:  # it has ended meanwhile
            continue
        if _alive(pid) and ((whole_group and group == pgid) or _carries(pid, tag)):
            found[pid] = handle
        else:
            os.close(handle)
    return found


def _is_leader(pgid: int, start: bytes) -> bool:
    fields = stat_fields(pgid)
    return bool(fields) and fields[_START_FIELD] == start and fields[2] == str(pgid).encode()


def _alive(pid: int) -> bool:
    fields = stat_fields(pid)
    return bool(fields) and fields[0] not in (b"Z", b"X")


def _carries(pid: int, tag: bytes) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # another user's, or gone
        return False
    return b"%s=%s" % (TAG_VARIABLE.encode(), tag) in environment.split(b"\0")


def _kill(victims: dict[int, int], deadline: float) -> None:
    for handle in victims.values():
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # gone, or not ours to kill
            continue
    with closing(select.epoll()) as gone:
        for handle in victims.values():
            gone.register(handle, select.EPOLLIN)
        while victims and (remaining := deadline - time.monotonic()) > 0:
            ended = {handle for handle, _ in gone.poll(remaining)}
            for pid, handle in list(victims.items()):
                if handle in ended:
                    gone.unregister(handle)
                    os.close(victims.pop(pid))
    for handle in victims.values():
        os.close(handle)
