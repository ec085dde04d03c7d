"""The tools of one workspace as a toolset."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from posixpath import basename, islink, join, normpath, realpath, relpath

from anyio import to_thread

from treadle.core.errors import ToolError
from treadle.core.events import Probe
from treadle.core.messages import ToolCall
from treadle.core.spoken import count
from treadle.ports.model import ToolDef
from treadle.ports.toolset import Found, ToolContext, ToolOutput, Toolset

from . import contents, listing
from .arguments import optional_float, optional_int, optional_text, text
from .command import LONGEST_TIMEOUT_S, Commands
from .definitions import workspace_tools
from .editing import edit, encoded
from .git import Git
from .paths import IfMissing, Place, Workspace, not_found, refuse_internals
from .reading import read_file
from .sandbox import Sandbox
from .search import Search

_MOST_PATHS = 1000


class WorkspaceTools(Toolset):
    """read_file, write_file, edit_file, list_dir, glob, search, run_command, git_status and git_diff, inside `root`.

    `sandbox` puts commands into bubblewrap, without network unless `network`; ConfigurationError where it cannot work.
    Commands inherit `environ` (this process's own by default) without the names in `hidden_env`.
    An output beyond `output_limit_bytes` loses its middle.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        sandbox: bool = False,
        network: bool = False,
        environ: Mapping[str, str] | None = None,
        hidden_env: Sequence[str] = (),
        command_timeout_s: float = 120.0,
        output_limit_bytes: int = 4 * 1024 * 1024,
    ) -> None:
        inherited = os.environ if environ is None else environ  # noqa: TID251 - handed on to commands, no setting is read
        seen = {name: value for name, value in inherited.items() if name not in hidden_env}
        self._files = Workspace(root)
        self._git = Git(self._files, seen, output_limit_bytes)
        self._search = Search(self._files, seen, self._git)
        self._commands = Commands(
            self._files,
            seen,
            sandbox=Sandbox(seen, network=network) if sandbox else None,
            timeout_s=command_timeout_s,
            output_limit_bytes=output_limit_bytes,
        )
        self._tools = workspace_tools(self._commands.describe(), LONGEST_TIMEOUT_S)

    def tools(self) -> tuple[ToolDef, ...]:
        return self._tools

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        _check_text(call)
        match call.name:
            case "read_file":
                start, end = optional_int(call, "start"), optional_int(call, "end")
                return await _read(lambda: read_file(self._files, text(call, "path"), start, end))
            case "list_dir":
                return await _read(lambda: listing.list_dir(self._files, optional_text(call, "path") or "."))
            case "glob":
                return await self._glob(text(call, "pattern"))
            case "search":
                return await self._search.search(text(call, "pattern"), optional_text(call, "path"))
            case "git_status":
                return ToolOutput(await self._git.status())
            case "git_diff":
                return ToolOutput(await self._git.diff(optional_text(call, "path")))
            case "run_command":
                timeout_s = optional_float(call, "timeout_s")
                return await self._commands.run(text(call, "command"), timeout_s, context.started)
            case "write_file" | "edit_file":
                return await to_thread.run_sync(self._write, call)
            case _:
                raise ToolError("not-found", f"there is no tool {call.name}")

    def touches(self, call: ToolCall) -> tuple[str, ...]:
        match call.name:
            case "write_file" | "edit_file":
                return (f"fs.write {self._real(call)}",)
            case "run_command":
                return (f"process.spawn {program(text(call, 'command'))}",)
            case _:
                return (f"fs.read {self._real(call)}",)

    def _real(self, call: ToolCall) -> str:
        """The path that is meant, symbolic links followed: a link is no way around a lease."""
        given, root = optional_text(call, "path") or ".", str(self._files.root)
        if "\0" in given:
            return "."  # the call itself says so
        parts, at = given.split("/"), root
        plain = not given.startswith("/") and ".." not in parts
        for part in parts if plain else ():
            at = f"{at}/{part}"
            plain = plain and not islink(at)
        return normpath(given) if plain else relpath(realpath(join(root, given)), root)

    async def prepare(self, call: ToolCall) -> tuple[Probe, ...]:
        _check_text(call)
        if call.name not in ("write_file", "edit_file"):
            return ()
        return await to_thread.run_sync(self._foresee, call)

    async def probe(self, call: ToolCall, probes: tuple[Probe, ...]) -> Found:
        """Whether the file is as it was to become, or still as before; the remains of a killed write are removed."""
        if len(probes) != 1:
            return "unknown"
        return await to_thread.run_sync(self._look, probes[0])

    async def _glob(self, pattern: str) -> ToolOutput:
        spec = listing.matching(pattern)
        names = await self._git.files()
        found = await to_thread.run_sync(lambda: [name for name in names if spec.match_file(name)])
        more = [f"[and {len(found) - _MOST_PATHS:,} more: narrow the pattern]"] if len(found) > _MOST_PATHS else []
        if not found:
            return ToolOutput("[no file matches]", passed=False)
        return ToolOutput("\n".join([listing.shown(name) for name in found[:_MOST_PATHS]] + more))

    def _write(self, call: ToolCall) -> ToolOutput:
        with self._files.locate(text(call, "path"), missing=_if_missing(call, "make")) as place:
            before, after, message = _change(call, place)
            if before == after:
                return ToolOutput(f"{place.path} holds exactly this already.")
            contents.replace(place, after)
            return ToolOutput(message, (place.path,))

    def _foresee(self, call: ToolCall) -> tuple[Probe, ...]:
        with self._files.locate(text(call, "path"), missing=_if_missing(call, "allow")) as place:
            before, after, _ = _change(call, place)
            return (Probe(path=place.path, before=contents.digest(before), after=contents.digest(after)),)

    def _look(self, probe: Probe) -> Found:
        try:
            with self._files.locate(probe.path, missing="allow") as place:
                contents.remove_remains(place)
                now = contents.digest(contents.whole(place))
        except ToolError:  # it is no file that can be read any more, so nobody can tell
            return "unknown"
        return "done" if now == probe.after else "not-started" if now == probe.before else "unknown"


def program(command: str) -> str:
    """What a command line starts, as a word; of a chain the first."""
    words = (word for word in command.split() if "=" not in word.partition("/")[0] or word.startswith("="))
    return basename(next(words, command.strip()[:40]))


def _if_missing(call: ToolCall, otherwise: IfMissing) -> IfMissing:
    """Only a file that is written whole may be in a folder that is not there yet."""
    return otherwise if call.name == "write_file" else "refuse"


def _change(call: ToolCall, place: Place) -> tuple[bytes | None, bytes, str]:
    """The content before and after, and what the model is told. ToolError where the call cannot succeed."""
    refuse_internals(place.path)
    before = contents.whole(place)
    if call.name == "write_file":
        after = encoded(text(call, "text"))
        how = "new" if before is None else f"was {count(len(before), 'byte')}"
        return before, after, f"Wrote {place.path}: {count(len(after), 'byte')} ({how})."
    if before is None:
        raise not_found(place.path, place.folder, place.name)
    edited = edit(place.path, before, text(call, "old"), text(call, "new"))
    return before, edited.content, edited.message


async def _read(work: Callable[[], str]) -> ToolOutput:
    return ToolOutput(await to_thread.run_sync(work))


def _check_text(call: ToolCall) -> None:
    """ToolError for what the operating system cannot be told."""
    for name in ("path", "pattern", "command"):
        value = optional_text(call, name) or ""
        if "\0" in value:
            raise ToolError("argument", f"{name} holds a NUL character", hint="Leave it out.")
        encoded(value)
