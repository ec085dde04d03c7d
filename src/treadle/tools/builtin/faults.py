"""What the operating system refuses, as errors that a model can act on."""

from __future__ import annotations

import errno
import os

from treadle.core.errors import ToolError, ToolErrorKind

_KINDS: dict[int, tuple[ToolErrorKind, str]] = {
    errno.ENOENT: ("not-found", "List the folder to see what is there."),
    errno.EACCES: ("permission", "Work on files that you may read and write, or ask the person."),
    errno.EPERM: ("permission", "Work on files that you may read and write, or ask the person."),
    errno.EROFS: ("permission", "This file system is read-only; work elsewhere in the workspace, or ask the person."),
    errno.ENOTDIR: ("argument", "A part of the path is a file, not a folder; list the folder above it."),
    errno.EISDIR: ("argument", "This is a folder; use list_dir, or name a file in it."),
    errno.ELOOP: ("safety", "Name the file itself, not a link to it."),
    errno.ENAMETOOLONG: ("argument", "Use a shorter name."),
    errno.EEXIST: ("conflict", "Something else has this name now; look again."),
    errno.ENOSPC: ("execution", "The disk is full: tell the person."),
    errno.EDQUOT: ("execution", "The disk quota is used up: tell the person."),
}


def tool_error(error: OSError, path: str) -> ToolError:
    """The typed error for what happened at `path`."""
    kind, hint = _KINDS.get(error.errno or 0, ("execution", "Look at the path first, then try another way."))
    return ToolError(kind, f"{path}: {os.strerror(error.errno) if error.errno else error}", hint=hint)
