"""run_command: a shell command in the workspace, within limits, sandboxed where asked for, and saying so where not."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from treadle.core.errors import ToolError, ToolErrorKind
from treadle.ports.toolset import ToolOutput
from treadle.tools.process import ProcessResult, run_process

from .paths import Workspace
from .sandbox import Sandbox

LONGEST_TIMEOUT_S = 3600
_NOT_RUN: dict[int | None, tuple[ToolErrorKind, str]] = {  # by the shell's own exit codes: the command did not run
    126: ("permission", "This file may not be executed: run it through its interpreter, or use another command."),
    127: ("not-found", "There is no such command here: look for what is installed, or reach the goal without it."),
}
_UNATTENDED = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb"}
OPEN = "not sandboxed: commands run with all rights of the user who started this, network included"


class Commands:
    """Runs commands in one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        environ: Mapping[str, str],
        *,
        sandbox: Sandbox | None,
        timeout_s: float,
        output_limit_bytes: int,
    ) -> None:
        self._workspace, self._environ, self._sandbox = workspace, {**environ, **_UNATTENDED}, sandbox
        self._timeout_s, self._limit = timeout_s, output_limit_bytes
        self._shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
        self._first = True

    def describe(self) -> str:
        """For the tool's description: the shell, the limits, and how far a command can reach."""
        reach = self._sandbox.describe() if self._sandbox else OPEN
        return (
            f"Runs a command by {self._shell} in the workspace; gives its output (stdout and stderr together) and exit "
            f"code. It is stopped after timeout_s seconds (default {self._timeout_s:g}, at most {LONGEST_TIMEOUT_S}), has no "
            f"input and no terminal, and what it leaves in the background is killed when it ends. It is {reach}."
        )

    async def run(self, command: str, timeout_s: float | None, started: Callable[[int, str], None]) -> ToolOutput:
        """The output and how it ended; an exit code is a result, too, but of a command that did not run.

        ToolError: not-found, permission, timeout, execution.
        """
        argv = (self._shell, "-c", command)
        if self._sandbox:
            argv = (*self._sandbox.prefix(self._workspace.root), *argv)
        limit_s = min(timeout_s or self._timeout_s, LONGEST_TIMEOUT_S)
        try:
            result = await run_process(
                argv,
                cwd=self._workspace.root,
                env=self._environ,
                timeout_s=limit_s,
                output_limit_bytes=self._limit,
                started=started,
            )
        except OSError as error:
            hint = "Make the command shorter: put long text into a file first." if error.errno == 7 else ""
            raise ToolError("execution", f"the command could not be started: {error}", hint=hint) from error
        text = self._banner() + _report(result)
        if result.timed_out:
            raise ToolError(
                "timeout",
                f"{text}\n[stopped: it took more than {limit_s:g} s]",
                hint="Look at what it did before repeating it; do less at once, or give a larger timeout_s.",
                transient=False,
            )
        if (known := _NOT_RUN.get(result.exit_code)) is not None and result.signal is None:
            kind, hint = known
            raise ToolError(kind, text, hint=hint)
        return ToolOutput(text, passed=result.exit_code == 0 and result.signal is None)

    def _banner(self) -> str:
        """Once: how far commands reach."""
        first, self._first = self._first, False
        if not first:
            return ""
        return f"[{self._sandbox.describe() if self._sandbox else OPEN}]\n"


def _report(result: ProcessResult) -> str:
    output = result.output if not result.output or result.output.endswith("\n") else result.output + "\n"
    if result.signal is not None:
        ending = f"ended by signal {result.signal} ({_signal_name(result.signal)})"
    else:
        ending = f"exit code {result.exit_code}"
    left = f"; {result.left_alive} of its processes could not be stopped" if result.left_alive else ""
    return f"{output}[{ending}, {result.elapsed_us / 1e6:.1f} s{left}]"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
