"""Reading a file of the workspace, and replacing it in one step."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress

from treadle.core.digests import blob_address
from treadle.core.errors import ToolError

from .faults import tool_error
from .paths import MISSING, Place, names_in, not_found

LARGEST_EDIT = 32 * 1024 * 1024  # bytes


def open_file(place: Place) -> int:
    """A descriptor of a regular file. ToolError: not-found, argument, permission."""
    try:
        descriptor = place.open(os.O_RDONLY | os.O_NONBLOCK)  # a named pipe must not block
    except FileNotFoundError as error:
        raise not_found(place.path, place.folder, place.name) from error
    except OSError as error:
        raise tool_error(error, place.path) from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise ToolError("argument", f"{place.path} is a folder", hint="Use list_dir, or name a file in it.")
    raise ToolError("argument", f"{place.path} is no ordinary file", hint="Name an ordinary file.")


def whole(place: Place) -> bytes | None:
    """The content; None where there is no such file. ToolError, also for a file too large to edit."""
    if place.stat() is None:
        return None
    with os.fdopen(open_file(place), "rb") as file:
        if os.fstat(file.fileno()).st_size > LARGEST_EDIT:
            raise ToolError(
                "argument",
                f"{place.path} is larger than {LARGEST_EDIT:,} bytes",
                hint="Change it with a command, piece by piece.",
            )
        return file.read()


def digest(content: bytes | None) -> str:
    """What a Probe holds; empty for no file."""
    return "" if content is None else blob_address(content)


def replace(place: Place, content: bytes) -> None:
    """The file holds `content`, or what it held before: never a part. Its mode is kept; no link is written through."""
    before = place.stat()
    temporary = f"{_temporary_prefix(place.name)}{secrets.token_hex(4)}.tmp"
    try:
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=place.folder
        )
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                if before is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=place.folder)
            raise
        _sync_folder(place)
    except OSError as error:
        raise tool_error(error, place.path) from error


def remove_remains(place: Place) -> None:
    """Removes what a write that was killed left beside the file."""
    if place.folder == MISSING:
        return
    for name in names_in(place.folder):
        if name.startswith(_temporary_prefix(place.name)) and name.endswith(".tmp"):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=place.folder)


def _sync_folder(place: Place) -> None:
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place.folder)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _temporary_prefix(name: str) -> str:
    return f".treadle-{blob_address(os.fsencode(name))[:12]}-"
