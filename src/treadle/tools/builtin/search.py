"""search: a regular expression over the files that git would not ignore, by ripgrep where it is, else by Python."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from treadle.core.errors import ToolError
from treadle.ports.toolset import ToolOutput
from treadle.tools.process import ProcessResult, run_process

from .git import Git
from .paths import Workspace, not_found

MOST_LINES = 200
_LONGEST_LINE = 300
_TIMEOUT_S = 30.0
_OUTPUT_BYTES = 4 * 1024 * 1024
_MATCHER = Path(__file__).with_name("matcher.py")


class Search:
    """Searches one workspace. The expression runs in a process of its own: a bad one can be stopped."""

    def __init__(self, workspace: Workspace, environ: Mapping[str, str], git: Git) -> None:
        self._workspace, self._environ, self._git = workspace, environ, git
        self._ripgrep = shutil.which("rg", path=environ.get("PATH"))

    async def search(self, pattern: str, path: str | None) -> ToolOutput:
        """`path:line:text` a line, by path. ToolError: argument for a bad expression, timeout, as of the path."""
        under = "."
        if path is not None:
            with self._workspace.locate(path) as place:
                under = place.path
                if place.stat() is None:
                    raise not_found(path, place.folder, place.name)
        result = await (self._by_ripgrep(pattern, under) if self._ripgrep else self._by_python(pattern, under))
        if result.timed_out:
            raise ToolError(
                "timeout",
                f"the search took more than {_TIMEOUT_S:.0f} s",
                hint="Search one folder, or use a simpler expression.",
                transient=False,
            )
        if result.exit_code == 2 or result.exit_code is None:
            message = result.output.strip()[:1000]
            raise ToolError(
                "argument", f"the search failed: {message}", hint="Escape ( ) [ ] { } . * + ? | to mean themselves."
            )
        lines = [line.removeprefix("./") for line in result.output.splitlines()]
        if not lines:
            return ToolOutput(f"[nothing matches in {under if path else 'the workspace'}]", passed=False)
        more = [f"[and more: {len(lines) - MOST_LINES:,} lines at least; narrow it]"] if len(lines) > MOST_LINES else []
        return ToolOutput("\n".join(lines[:MOST_LINES] + more))

    async def _by_ripgrep(self, pattern: str, under: str) -> ProcessResult:
        asked = (
            "--no-config --no-messages --no-heading --color=never --line-number --with-filename --sort=path --hidden "
            f"--glob=!.git --no-require-git --max-columns={_LONGEST_LINE} --max-columns-preview"
        )
        return await self._run((str(self._ripgrep), *asked.split(), f"--regexp={pattern}", "--", under), None)

    async def _by_python(self, pattern: str, under: str) -> ProcessResult:
        files = await self._git.files(under)
        names = "\0".join(files).encode(errors="surrogateescape")
        return await self._run((sys.executable, "-I", "-S", str(_MATCHER), pattern, str(_LONGEST_LINE)), names)

    async def _run(self, argv: tuple[str, ...], stdin: bytes | None) -> ProcessResult:
        return await run_process(
            argv,
            cwd=self._workspace.root,
            env=self._environ,
            timeout_s=_TIMEOUT_S,
            output_limit_bytes=_OUTPUT_BYTES,
            stdin=stdin,
        )
