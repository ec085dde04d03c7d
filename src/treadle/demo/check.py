"""The demo's check: the tests of the kit, run as a program. What fails is what the next round has to write."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from treadle.ports.callback import Check, RoundContext, Verdict, accept, reject
from treadle.tools.process import run_process

from .state import load, next_round, note

CHECK = (sys.executable, "-B", "-m", "unittest", "-q")
TIMEOUT_S = 30.0
CPU_S, MEMORY_KIB = 10, 1 << 20
_OUTPUT_BYTES, _EVIDENCE = 64 << 10, 2000
# A system that does not know one of the limits goes without it.
_LIMITED = ("/bin/sh", "-c", f'ulimit -t {CPU_S}; ulimit -v {MEMORY_KIB} 2>/dev/null; exec "$@"', "check", *CHECK)
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}  # what a model wrote needs no more
_FAILED = re.compile(r"^(?:FAIL|ERROR): test_(\w+) ", re.MULTILINE)


class KitCheck(Check):
    """Accepts when the tests pass. If not, feedback and notes name the functions whose tests fail."""

    def __init__(self, workspace: Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self.workspace, self.timeout_s = workspace, timeout_s

    async def check(self, context: RoundContext, output_json: str) -> Verdict:
        """The verdict of the tests."""
        ran = await run_process(
            _LIMITED,
            cwd=self.workspace,
            env=_ENVIRONMENT,
            timeout_s=self.timeout_s,
            output_limit_bytes=_OUTPUT_BYTES,
            started=context.started,
        )
        ended = "ran out of time" if ran.timed_out else f"exit {ran.exit_code}" if ran.signal is None else "was killed"
        evidence = f"python {' '.join(CHECK[1:])}: {ended}\n{ran.output[-_EVIDENCE:]}"
        if ran.exit_code == 0:
            return accept(evidence=evidence)
        standing = load(self.workspace)
        failing = failing_functions(ran.output, list(standing.kit))
        note(self.workspace, next_round(standing, failing))
        return reject(f"Failing: {', '.join(failing)}.", evidence=evidence)


def failing_functions(output: str, names: list[str]) -> list[str]:
    """The functions whose tests failed, by what unittest said; all of them where it got to none."""
    failed = set(_FAILED.findall(output))
    return [name for name in names if name in failed] or names
