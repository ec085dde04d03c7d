"""A supervised command that is talked to over its pipes for as long as it lives, such as an MCP server (see supervisor.py)."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from .recorded import birth_of, kill_recorded
from .supervised import LOADER, SUPERVISOR, Command

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, ByteSendStream, Process

_GOODBYE_S = 1.0  # for the command to end by itself once its input is closed
_KILLED_WITHIN_S = 10.0


class Conversation:
    """What one says to the command, and hears of it. Undecoded bytes; whoever reads sets the bounds."""

    def __init__(self, process: Process) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise AssertionError("a supervisor without pipes")
        self.stdin: ByteSendStream = process.stdin
        self.stdout: ByteReceiveStream = process.stdout
        self.stderr: ByteReceiveStream = process.stderr


@asynccontextmanager
async def conversation(
    argv: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str]
) -> AsyncGenerator[Conversation]:
    """Starts the command; at the end closes its input, waits a moment, and kills it with everything that it started.

    It never outlives the engine, however that ends. OSError where it cannot be started; its `filename` is the program or
    the folder at fault.
    """
    tag = secrets.token_hex(8)
    command = Command(
        argv=tuple(argv), cwd=os.fspath(cwd), env=env, timeout_s=None, grace_s=0, output_limit_bytes=0, stdin=b""
    )
    request = command.request(tag)
    control, theirs = socket.socketpair()
    with control:
        with theirs:
            process = await anyio.open_process(
                [sys.executable, "-I", "-S", "-X", "utf8", str(SUPERVISOR), str(theirs.fileno()), str(os.getpid())],
                cwd="/",
                env={name: value for name in LOADER if (value := os.environ.get(name))},  # noqa: TID251 - no setting
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        group: tuple[int, str] | None = None
        try:
            await to_thread.run_sync(control.sendall, request)
            group = await _started(control, argv[0], os.fspath(cwd), tag)
            yield Conversation(process)
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process, control, group)


async def _started(control: socket.socket, program: str, folder: str, tag: str) -> tuple[int, str]:
    """The command's process group, once it runs. OSError."""
    told = b""
    control.setblocking(False)
    while b"\n" not in told:
        await anyio.wait_readable(control)
        heard = control.recv(4096)
        if not heard:
            raise ChildProcessError(f"The supervisor of {program} did not start.")
        told += heard
    word, first, second = told.split(b"\n")[0].split()
    if word == b"failed":
        raise OSError(int(first), os.strerror(int(first)), folder if second == b"cwd" else program)
    return int(first), birth_of(second.decode(), tag)


async def _end(process: Process, control: socket.socket, group: tuple[int, str] | None) -> None:
    if process.stdin is not None:
        with suppress(OSError, anyio.BrokenResourceError):  # it has closed its end already
            await process.stdin.aclose()
    with anyio.move_on_after(_GOODBYE_S):
        await process.wait()
    if process.returncode is None:
        with suppress(OSError):  # the supervisor is gone
            control.send(b"K")
        with anyio.move_on_after(_KILLED_WITHIN_S):
            await process.wait()
    if process.returncode is None:
        process.kill()
    if group is not None and process.returncode != 0:  # the supervisor was killed itself, and could not clean up
        await to_thread.run_sync(kill_recorded, *group)
    await process.aclose()
