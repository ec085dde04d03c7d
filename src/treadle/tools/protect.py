"""Protects paths from what a toolset does (AG-29): writes to them are refused, and what commands changed is put back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from anyio import CancelScope, to_thread

from treadle.core.errors import ToolError
from treadle.core.events import Probe
from treadle.core.messages import ToolCall
from treadle.ports.model import ToolDef
from treadle.ports.toolset import Found, ToolContext, ToolOutput, Toolset

from .builtin.paths import Workspace
from .protected_files import ProtectedFiles

_WRITERS = ("write_file", "edit_file")  # they change what their `path` says and nothing else


class ProtectedTools(Toolset):
    """A toolset whose changing calls leave the paths that match a glob as they were.

    Globs are relative to the workspace and read like lines of .gitignore: `tests/**` is all below that folder,
    `test_*.py` such a file anywhere. A call that names such a path is refused; after any other changing call, files
    that match and were changed, made or removed meanwhile are put back, and its result says so. A change by another
    hand during the call is undone with it. SQLite databases are left alone: someone may be writing to them.
    """

    def __init__(self, toolset: Toolset, root: str | os.PathLike[str], globs: Sequence[str]) -> None:
        self._toolset = toolset
        self._workspace = Workspace(root)
        self._protected = ProtectedFiles(self._workspace.root, globs)

    def tools(self) -> tuple[ToolDef, ...]:
        return self._toolset.tools()

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        if call.kind not in ("mutating", "idempotent"):
            return await self._toolset.run(call, context)
        await to_thread.run_sync(self._refuse, call)
        if call.name in _WRITERS:
            return await self._toolset.run(call, context)
        await to_thread.run_sync(self._protected.keep)
        try:
            output = await self._toolset.run(call, context)
        except ToolError as error:
            note = await self._put_back()
            raise ToolError(error.kind, f"{error}{note}", hint=error.hint, transient=error.transient) from error
        except BaseException:  # cancelled, or a fault of the tool: nobody is there to be told
            await self._put_back()
            raise
        return output._replace(content=output.content + await self._put_back())

    def touches(self, call: ToolCall) -> tuple[str, ...]:
        return self._toolset.touches(call)

    async def prepare(self, call: ToolCall) -> tuple[Probe, ...]:
        if call.kind in ("mutating", "idempotent"):
            await to_thread.run_sync(self._refuse, call)
        return await self._toolset.prepare(call)

    async def probe(self, call: ToolCall, probes: tuple[Probe, ...]) -> Found:
        return await self._toolset.probe(call, probes)

    def identity(self) -> list[Any]:
        return self._toolset.identity()

    async def open(self) -> None:
        await self._toolset.open()

    async def close(self) -> None:
        await self._toolset.close()

    def _refuse(self, call: ToolCall) -> None:
        path = call.args.get("path") if isinstance(call.args, dict) else None
        if not isinstance(path, str):
            return
        with self._workspace.locate(path, missing="allow") as place:
            if self._protected.matches(place.path):
                raise ToolError(
                    "safety",
                    f"{place.path} is protected and cannot be changed",
                    hint="It is part of how the work is judged. Change what it judges instead.",
                )

    async def _put_back(self) -> str:
        restored: list[str] = []
        lost: list[str] = []
        with CancelScope(shield=True):
            restored, lost = await to_thread.run_sync(self._protected.put_back)
        note = f"\n[protected, so put back as they were: {', '.join(restored)}]" if restored else ""
        return note + (f"\n[protected, changed, and could not be put back: {', '.join(lost)}]" if lost else "")
