"""Checks that are no agents: a command whose exit code judges, and a person's own function."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from treadle.core.errors import CheckTimeout, InvalidVerdict
from treadle.core.excerpts import both_ends
from treadle.ports.callback import Check, RoundContext, Verdict, accept, reject
from treadle.tools.process import ProcessResult, run_process

from .calling import call
from .checkfiles import reads
from .commands import ended, round_variables, show_command, verify_command

__all__ = ["CommandCheck", "FunctionCheck", "reads", "verify_command"]

_FEEDBACK_CHARACTERS, _COMMAND_CHARACTERS = 4_000, 500
_OUTPUT_BYTES = 1_000_000
_MOST_NAMED = 10


class CommandCheck(Check):
    """Runs a command in the workspace. Exit code 0 accepts, anything else rejects with the end of its output.

    Its environment has TREADLE_EXECUTION_ID, _ROUND, _PHASE, _ATTEMPT and _IDEMPOTENCY_KEY. CheckTimeout after
    `timeout_s`. `redact` sees the output before anybody else does.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        workspace: str | os.PathLike[str],
        *,
        timeout_s: float | None = None,
        redact: Callable[[str], str] = str,
        environ: Mapping[str, str] | None = None,
        feedback_characters: int = _FEEDBACK_CHARACTERS,
    ) -> None:
        inherited = os.environ if environ is None else environ  # noqa: TID251 - handed on to the command
        self._command, self._workspace, self._environ = command, os.fspath(workspace), dict(inherited)
        self._timeout_s, self._redact, self._limit = timeout_s, redact, feedback_characters
        self._reads = reads(command, self._workspace)

    async def check(self, context: RoundContext, output_json: str) -> Verdict:
        shown = both_ends(self._redact(show_command(self._command)), _COMMAND_CHARACTERS)
        try:
            result = await self._run(context)
        except (FileNotFoundError, PermissionError) as error:
            if error.filename == self._workspace:
                if isinstance(error, PermissionError):
                    raise
                gone = f"the workspace {self._workspace} is gone; restore it, then resume --retry-incomplete."
                raise FileNotFoundError(gone) from error
            # It was there when the loop started: act has taken it away, and can put it back.
            return reject(f"The check could not be started: {shown}\n{error.strerror}: {error.filename}")
        if result.timed_out:
            raise CheckTimeout(f"The check took more than {self._timeout_s:g} s: {shown}")
        output = both_ends(self._redact(result.output.strip()), self._limit)
        evidence = f"{shown}: {ended(result)}\n{output}".rstrip()
        if result.exit_code == 0:
            return accept(evidence=self._warning(context) + evidence)
        return reject(f"The check failed: {evidence}", evidence=evidence)

    async def _run(self, context: RoundContext) -> ProcessResult:
        return await run_process(
            self._command,
            cwd=self._workspace,
            env=self._environ | round_variables(context),
            timeout_s=self._timeout_s,
            output_limit_bytes=_OUTPUT_BYTES,
            started=context.started,
        )

    def _warning(self, context: RoundContext) -> str:
        changed = [path for path in context.changed if self._reads(path)]
        if not changed:
            return ""
        more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
        return f"Note: act changed files that the check reads: {', '.join(changed[:_MOST_NAMED])}{more}.\n"


class FunctionCheck(Check):
    """A person's own `function(context, output)`, synchronous or not, which returns accept() or reject(feedback).

    InvalidVerdict where it returns anything else (TC-14). A synchronous one runs in a thread.
    """

    def __init__(self, function: Callable[[RoundContext, Any], Any]) -> None:
        self._function = function

    async def check(self, context: RoundContext, output_json: str) -> Verdict:
        verdict = await call(self._function, context, msgspec.json.decode(output_json))
        if type(verdict) is not Verdict or type(verdict.accepted) is not bool or type(verdict.feedback) is not str:
            raise InvalidVerdict(f"A check must return accept() or reject(feedback), not {verdict!r:.200}.")
        return verdict
