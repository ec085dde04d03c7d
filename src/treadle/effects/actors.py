"""Actors that are no agents of ours: a command, such as any coding agent or script (AG-26), and a person's own function."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from treadle.core.errors import InvalidOutput
from treadle.core.excerpts import both_ends
from treadle.core.usage import Usage
from treadle.ports.callback import Actor, ActorResult, RoundContext
from treadle.tools.process import ProcessResult, run_process

from .calling import call
from .commands import ended, round_variables
from .presets import Report, report_of
from .printed import printed_usage

_TAIL_CHARACTERS = 4_000
_OUTPUT_BYTES = 4_000_000


class CommandActor(Actor):
    """Runs a command in the workspace, a round a run.

    It reads the task, and the feedback of the last rejection below it, from stdin or from the files that its
    environment names: TREADLE_PROMPT_FILE (both), TREADLE_TASK_FILE and TREADLE_FEEDBACK_FILE (empty in the first
    round). Besides it finds TREADLE_EXECUTION_ID, _ROUND, _PHASE, _ATTEMPT and _IDEMPOTENCY_KEY there.

    Its output is recorded as `{"exit_code", "signal", "timed_out", "elapsed_ms", "output", "left_out_bytes"}`. Any
    other end than exit code 0 is a failure; evaluate runs all the same. Usage that it prints as JSON is counted, once an
    attempt, and what an `agent` by name says of its ending (presets.py); with `reserve`, a run that ends without any word
    of its cost is possibly charged that much.
    OSError where it cannot be started. `redact` sees the output before anybody else does.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        workspace: str | os.PathLike[str],
        *,
        timeout_s: float | None = None,
        redact: Callable[[str], str] = str,
        environ: Mapping[str, str] | None = None,
        reserve: Usage | None = None,
        output_characters: int = _TAIL_CHARACTERS,
        agent: str = "",
    ) -> None:
        inherited = os.environ if environ is None else environ  # noqa: TID251 - handed on to the command
        self._command, self._workspace, self._environ = command, os.fspath(workspace), dict(inherited)
        self._timeout_s, self._redact, self._reserve = timeout_s, redact, reserve
        self._limit, self._agent = output_characters, agent

    async def act(self, context: RoundContext) -> ActorResult:
        receipt = f"{context.idempotency_key}:{context.attempt}"  # a replay is charged again
        if self._reserve is not None:
            await context.intend(receipt, self._reserve)
        with TemporaryDirectory(prefix="treadle-") as folder:
            result = await self._run(context, _write_prompt(Path(folder), context))
        report = report_of(self._agent, result.output) if self._agent else Report(printed_usage(result.output))
        if report.usage is not None:
            context.report_usage_once(receipt, report.usage)
        output = {
            "exit_code": result.exit_code,
            "signal": result.signal,
            "timed_out": result.timed_out,
            "elapsed_ms": result.elapsed_us // 1000,
            "output": both_ends(self._redact(result.output.strip()), self._limit),
            "left_out_bytes": result.truncated_bytes,
        }
        if report.said:
            output["said"] = self._redact(report.said)
        failure = self._failure(result)
        if report.failure:  # its own words say more than the exit code
            told = self._redact(report.failure)
            failure = f"{told}; {failure}" if failure else told
        return ActorResult(_to_json(output), failure)

    async def _run(self, context: RoundContext, files: dict[str, str]) -> ProcessResult:
        return await run_process(
            self._command,
            cwd=self._workspace,
            env=self._environ | round_variables(context) | files,
            timeout_s=self._timeout_s,
            output_limit_bytes=_OUTPUT_BYTES,
            stdin=_prompt(context).encode(errors="replace"),
            started=context.started,
        )

    def _failure(self, result: ProcessResult) -> str:
        if result.timed_out:
            return f"the command took more than {self._timeout_s:g} s"
        return "" if result.exit_code == 0 else f"the command failed: {ended(result)}"


class FunctionActor(Actor):
    """A person's own `function(context, feedback)`, synchronous or not; feedback is None in the first round.

    It returns the output, a JSON value, or an ActorResult. InvalidOutput for anything else. A synchronous one runs in
    a thread.
    """

    def __init__(self, function: Callable[[RoundContext, str | None], Any]) -> None:
        self._function = function

    async def act(self, context: RoundContext) -> ActorResult:
        output = await call(self._function, context, context.feedback)
        return output if isinstance(output, ActorResult) else ActorResult(_to_json(output))


def _prompt(context: RoundContext) -> str:
    if context.feedback is None:
        return f"{context.task}\n"
    return f"{context.task}\n\nThe last attempt was rejected:\n{context.feedback}\n"


def _write_prompt(folder: Path, context: RoundContext) -> dict[str, str]:
    """The variables that name the files."""
    contents = {"PROMPT": _prompt(context), "TASK": context.task, "FEEDBACK": context.feedback or ""}
    variables: dict[str, str] = {}
    for name, content in contents.items():
        file = folder / name.lower()
        file.write_bytes(content.encode(errors="replace"))
        variables[f"TREADLE_{name}_FILE"] = str(file)
    return variables


def _to_json(value: Any) -> str:
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidOutput(f"An act must return a JSON value ({error}), not {value!r:.200}.") from error
    return text
