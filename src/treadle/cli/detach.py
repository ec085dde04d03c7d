"""--detach: the run goes on in a process of its own session, which outlives the terminal and whoever started it."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.app.listing import document_of
from treadle.core.errors import ConfigurationError
from treadle.core.spoken import plain
from treadle.runtime.document import to_json

from .output import warn
from .place import Place

if TYPE_CHECKING:
    from .drive import Driven

TAIL = 4000  # characters of the log that are shown where it could not start


def start_detached(where: Place, *, json: bool) -> int:
    """Starts this very command line in the background; prints the id once the execution is durable. The exit code."""
    from treadle.runtime.clock import SystemClock

    if where.store == "memory:":
        raise ConfigurationError("--detach needs a store that outlives a process: --store sqlite:///FILE.")
    execution_id = SystemClock().new_id()
    log = where.settings.state_dir / "logs" / f"{execution_id}.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = log.open("xb")
    except OSError as error:
        raise ConfigurationError(f"{log}: the log of a detached run cannot be made: {error.strerror}") from error
    reader, writer = os.pipe()
    with file, os.fdopen(reader, "rb") as ready:
        try:
            child = _spawn(file.fileno(), writer, execution_id)
        finally:
            os.close(writer)
        found = ready.read()
    if not found:
        return _failed(child, log)
    sys.stdout.write(found.decode() if json else f"{execution_id}\n")
    sys.stdout.flush()
    name = f"{execution_id} --store {shlex.quote(where.named_store)}" if where.named_store else execution_id
    warn(f"runs in the background: treadle watch {name} shows it, treadle cancel {name} ends it; log: {log}")
    return 0


def _spawn(log: int, writer: int, execution_id: str) -> subprocess.Popen[bytes]:
    """-P: a module of the workspace must not be taken for one of Python's."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "treadle.cli.main", *sys.argv[1:], "--detached", f"{execution_id}:{writer}"],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(writer,),
        start_new_session=True,
    )


def _failed(child: subprocess.Popen[bytes], log: Path) -> int:
    """It ended before the execution was durable: its own words and its own exit code."""
    code = child.wait()
    sys.stderr.write(plain(log.read_text(errors="replace")[-TAIL:]))
    log.unlink(missing_ok=True)
    return code if code > 0 else 1


@dataclass(frozen=True, slots=True)
class Readiness:
    """In the background process: the id that was chosen, and the pipe on which whoever started it waits."""

    execution_id: str | None = None
    writer: int | None = None

    @classmethod
    def parse(cls, text: str | None) -> Readiness:
        """From the hidden flag."""
        if text is None:
            return cls()
        execution_id, _, writer = text.partition(":")
        if not writer.isdigit():
            raise ConfigurationError("--detached is Treadle's own; use --detach.")
        return cls(execution_id, int(writer))

    def begun(self, session: Driven) -> None:
        """The execution is durable: says so, whether or not anybody still waits."""
        if self.writer is None:
            return
        with contextlib.suppress(BrokenPipeError), os.fdopen(self.writer, "wb") as pipe:
            pipe.write(to_json(document_of(session.execution_id, session.state)) + b"\n")
