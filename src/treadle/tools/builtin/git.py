"""git_status, git_diff and the list of files, by the git binary; nothing that a repository configures is run by it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from anyio import to_thread

from treadle.core.errors import ToolError
from treadle.tools.process import ProcessResult, run_process

from .listing import walk
from .paths import Workspace

_QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "PAGER": "cat"}
_SAFE = ("--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_TIMEOUT_S = 60.0
_LISTING_BYTES = 64 * 1024 * 1024
_MOST_NEW = 100


class Git:
    """Questions to git about one workspace, which may be a part of a larger repository."""

    def __init__(self, workspace: Workspace, environ: Mapping[str, str], output_limit_bytes: int) -> None:
        self._workspace, self._limit = workspace, output_limit_bytes
        inherited = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
        self._env = inherited | _QUIET

    async def status(self) -> str:
        """The branch, and a line for each changed or new file below the workspace."""
        result = await self._ask("status", "--short", "--branch", "--untracked-files=all", "--", ".")
        text = result.output.rstrip("\n")
        return text if "\n" in text else f"{text}\n[nothing has changed]"

    async def diff(self, path: str | None) -> str:
        """What differs from the last commit, staged or not; new files are only named."""
        where = "."
        if path is not None:
            with self._workspace.locate(path) as place:
                where = place.path
        base = "HEAD"
        if (await self._run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")).exit_code:
            await self._ask("rev-parse", "--git-dir")
            base = (await self._ask("hash-object", "-t", "tree", os.devnull)).output.strip()
        asked = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--relative", base, "--", where)
        text = (await self._ask(*asked)).output
        new = [name for name in await self._listed("--others", where) or () if name]
        names = "".join(f"\n[new file, not in the diff: {name}]" for name in new[:_MOST_NEW])
        more = f"\n[and {len(new) - _MOST_NEW:,} more]" if len(new) > _MOST_NEW else ""
        return (text.rstrip("\n") + names + more).lstrip("\n") or "[no changes]"

    async def files(self, under: str = ".") -> list[str]:
        """Files below a folder that git does not ignore, sorted; without git as .gitignore files say."""
        listed = await self._listed("--cached", "--others", under)
        if listed:
            return sorted(set(listed))
        return await to_thread.run_sync(lambda: sorted(walk(self._workspace.root, under)))

    async def _listed(self, *asked: str) -> list[str] | None:
        *options, under = asked
        try:
            result = await self._run(
                "ls-files", "-z", "--exclude-standard", *options, "--", under, limit=_LISTING_BYTES
            )
        except ToolError:  # no git here: there are other ways to list files
            return None
        return [name for name in result.output.split("\0") if name] if result.exit_code == 0 else None

    async def _ask(self, *asked: str) -> ProcessResult:
        result = await self._run(*asked)
        if result.timed_out:
            raise ToolError("timeout", f"git took more than {_TIMEOUT_S:.0f} s", hint="Ask about one path only.")
        if result.exit_code == 128 and "not a git repository" in result.output:
            hint = "Use list_dir and read_file to see what is there."
            raise ToolError("not-found", "this workspace is no git repository", hint=hint)
        if result.exit_code != 0:
            hint = "Look at the path, or use run_command."
            raise ToolError("execution", f"git failed: {result.output.strip()}", hint=hint)
        return result

    async def _run(self, *asked: str, limit: int | None = None) -> ProcessResult:
        try:
            return await run_process(
                ("git", *_SAFE, *asked),
                cwd=self._workspace.root,
                env=self._env,
                timeout_s=_TIMEOUT_S,
                output_limit_bytes=self._limit if limit is None else limit,
            )
        except FileNotFoundError as error:
            hint = "Use list_dir and read_file; there is no git to ask."
            raise ToolError("not-found", "git is not installed here", hint=hint) from error
