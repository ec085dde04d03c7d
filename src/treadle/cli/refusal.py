"""How a command ends that did not come to its document: a line for people, an error document under `--json`, and its exit code.

The codes are those of the table of endings (`treadle.core.endings`) that belong to no ending.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from treadle.core.endings import STORE_EXIT, USAGE_EXIT
from treadle.core.errors import InputError, LedgerError
from treadle.core.spoken import plain

if TYPE_CHECKING:
    from types import FrameType

    from treadle.core.errors import TreadleError

UNREAD = 128 + 13  # as a shell says of a command that SIGPIPE has ended
FAILED = 1


class Signalled(KeyboardInterrupt):
    """SIGTERM or SIGHUP where nothing listens for a clean stop."""

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number
        super().__init__()


@contextmanager
def signals_heard() -> Generator[None]:
    """SIGTERM and SIGHUP end the command as Ctrl-C does, until something of its own listens for them. Ignored ones stay so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    taken = [number for number, handler in before.items() if handler == signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, _: FrameType | None) -> None:
    raise Signalled(number)


def refused(error: TreadleError, *, json: bool, command: str) -> int:
    """Says it. The exit code: wrong usage, a store that failed, or another failure."""
    sys.stderr.write(f"treadle: {plain(str(error))}\n")
    if isinstance(error, InputError):
        code, following = USAGE_EXIT, f"treadle {command} --help".replace("  ", " ")
    elif isinstance(error, LedgerError):
        code, following = STORE_EXIT, "Mend the store, then repeat the command."
    else:
        code, following = FAILED, f"treadle {command} --help".replace("  ", " ")
    if json:
        document(type(error).__name__, str(error), error.next or following, code)
    return code


def interrupted(code: int, words: str, *, json: bool) -> int:
    """A signal ended it before there was anything to resume."""
    sys.stderr.write(f"\ntreadle: {words}\n")
    if json:
        document("Interrupted", words, "Repeat the command.", code)
    return code


def document(kind: str, message: str, following: str, code: int) -> None:
    """The error document of `--json`."""
    from .output import print_json

    try:
        print_json({"error": {"kind": kind, "message": plain(message), "next": following}, "exit_code": code})
    except BrokenPipeError:
        unread()  # the exit code still says it


def unread() -> int:
    """Whoever read our output has had enough (head, less): no fault, but the interpreter must not complain either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return UNREAD
