"""The demo's check: the tests of the kit, run as a program. What fails is what the next round has to write."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import anyio

from treadle.ports.callback import Check, RoundContext, Verdict, accept, reject

from .state import load, next_round, note

CHECK = (sys.executable, "-B", "-m", "unittest", "-q")
TIMEOUT_S = 20.0
CPU_S, MEMORY_KIB = 10, 1 << 20
# A system that does not know one of the limits goes without.
_LIMITED = ("/bin/sh", "-c", f'ulimit -t {CPU_S}; ulimit -v {MEMORY_KIB} 2>/dev/null; exec "$@"', "check", *CHECK)
_FAILED = re.compile(r"^(?:FAIL|ERROR): test_(\w+) ", re.MULTILINE)
_EVIDENCE = 2000


class KitCheck(Check):
    """Accepts when the tests pass. If not, the feedback names the functions whose tests fail, and so do the kit's notes."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    async def check(self, context: RoundContext, output_json: str) -> Verdict:
        """The verdict of the tests."""
        code, said = await run_tests(self.workspace)
        ended = "did not finish" if code is None else f"exit {code}"
        evidence = f"python {' '.join(CHECK[1:])}: {ended}\n{said[-_EVIDENCE:]}"
        if code == 0:
            return accept(evidence=evidence)
        standing = load(self.workspace)
        failing = failing_functions(said, list(standing.kit))
        note(self.workspace, next_round(standing, failing))
        return reject(f"Failing: {', '.join(failing)}.", evidence=evidence)


def failing_functions(said: str, names: list[str]) -> list[str]:
    """The functions whose tests failed, by what unittest said; all of them where it got to none."""
    failed = set(_FAILED.findall(said))
    return [name for name in names if name in failed] or names


async def run_tests(workspace: Path) -> tuple[int | None, str]:
    """(exit code, what was said); None where it did not end in time."""
    with anyio.move_on_after(TIMEOUT_S):
        ended = await anyio.run_process(_LIMITED, check=False, cwd=workspace, stderr=subprocess.STDOUT)
        return ended.returncode, ended.stdout.decode(errors="replace")
    return None, ""
