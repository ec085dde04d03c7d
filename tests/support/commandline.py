"""The installed command as a person runs it: a process of its own, in an environment without keys or settings of anybody's."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from treadle.cli.main import main

COMMAND = str(Path(sys.executable).parent / "treadle")
PATIENCE_S = 120  # a hang is a failure; nothing else depends on it
ON_ITS_WAY = "round 1 of"


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout; nothing else may be there."""
        return json.loads(self.out)


class CommandLine:
    """A home for commands: state, store and a workspace of their own."""

    def __init__(self, home: Path) -> None:
        self.home, self.workspace = home, home / "workspace"
        self.state = home / "state"
        self.store_file = self.state / "treadle.db"
        self.workspace.mkdir(parents=True)
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
        self.environ = {
            **kept,
            "TREADLE_STATE": str(self.state),
            "TREADLE_CACHE": str(home / "cache"),
            "TREADLE_CONFIG": str(home / "none.toml"),
            "COLUMNS": "120",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
        }

    def git(self) -> CommandLine:
        """The workspace as a repository."""
        subprocess.run(["git", "init", "-q", "."], cwd=self.workspace, check=True, env=self.environ)
        return self

    def write(self, name: str, text: str, *, executable: bool = False) -> Path:
        """A file in the workspace."""
        path = self.workspace / name
        path.write_text(text)
        if executable:
            path.chmod(0o755)
        return path

    def start(self, *arguments: str, environ: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
        """The command, running."""
        given: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **options,
        }
        given.setdefault("cwd", self.workspace)
        return subprocess.Popen([COMMAND, *arguments], env={**self.environ, **(environ or {})}, text=True, **given)

    def __call__(self, *arguments: str, environ: Mapping[str, str] | None = None, **options: Any) -> Ran:
        """The command, to its end. It must never show a traceback."""
        return finish(self.start(*arguments, environ=environ, **options))

    def documents(self, execution: str = "") -> list[Any]:
        """What `ls` lists."""
        return self("ls", "--json").document

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A run that has begun its first round; killed at the end where it still lives."""
        process = self.start("run", *arguments)
        try:
            wait_for(process, ON_ITS_WAY)
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            process.wait()


def finish(process: subprocess.Popen[str]) -> Ran:
    """Its code and what it said."""
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    assert "Traceback" not in err, err
    return Ran(process.returncode, out, err)


def wait_for(process: subprocess.Popen[str], text: str) -> str:
    """Reads stderr up to the line with this text."""
    assert process.stderr is not None
    seen = ""
    for line in process.stderr:
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"{text!r} never came: {seen}")


def keys(document: Mapping[str, Any]) -> set[str]:
    """The names in a document."""
    return set(document)


class InProcess(CommandLine):
    """The same command line in the process of the test, ten times as fast: for what neither kills it nor needs a terminal."""

    def __call__(self, *arguments: str, environ: Mapping[str, str] | None = None, **options: Any) -> Ran:
        """The command, to its end; in a process of its own where the environment says so."""
        if environ or options:
            return super().__call__(*arguments, environ=environ, **options)
        out, err = _Captured(), _Captured()
        code = 0
        with (
            patch.dict(os.environ, self.environ, clear=True),
            chdir(self.workspace),
            patch.multiple(sys, stdin=io.StringIO(), stdout=out, stderr=err),
        ):
            try:
                main(arguments)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
        assert "Traceback" not in err.text(), err.text()
        return Ran(code, out.text(), err.text())


class _Captured(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()
