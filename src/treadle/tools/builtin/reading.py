"""read_file: plain text, by lines where asked; binary files are refused, huge ones clipped with a hint."""

from __future__ import annotations

import os
from typing import BinaryIO

from treadle.core.errors import ToolError

from .contents import open_file
from .paths import Workspace

MOST_BYTES = 1024 * 1024  # read at once
_COUNTED = 64 * 1024 * 1024  # up to this size all lines are counted
_LOOKED_AT = 8192


def read_file(workspace: Workspace, path: str, start: int | None, end: int | None) -> str:
    """The text of a file; with `start` or `end`, those lines (from 1, both included) below a line that says which.

    ToolError: not-found, safety, permission; argument for folders, binary files and lines that are not there.
    """
    with workspace.locate(path) as place, os.fdopen(open_file(place), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if _is_binary(file.peek(_LOOKED_AT)[:_LOOKED_AT]):
            raise ToolError(
                "argument",
                f"{place.path} is a binary file of {size:,} bytes",
                hint="Use run_command with a program that understands its format.",
            )
        if size == 0:
            return f"[{place.path} is empty]"
        if start is None and end is None and size <= MOST_BYTES:
            return _text(file.read(MOST_BYTES))
        first = 1 if start is None else start
        if end is not None and end < first:
            raise ToolError("argument", f"end {end} is before start {first}", hint="Give start <= end.")
        return _lines(file, place.path, first, end)


def _is_binary(sample: bytes) -> bool:
    return b"\0" in sample or sample.decode(errors="replace").count("\ufffd") > len(sample) // 10


def _lines(file: BinaryIO, path: str, first: int, last: int | None) -> str:
    total = _total(file)
    kept, line = bytearray(), 1
    while len(kept) < MOST_BYTES and (last is None or line <= last):
        piece = file.readline(MOST_BYTES - len(kept))
        if not piece:
            break
        if line >= first:
            kept += piece
        line += piece.endswith(b"\n")
    if not kept:
        raise ToolError("argument", f"{path} has only {line - 1:,} lines", hint="Give a start within the file.")
    whole = kept.endswith(b"\n")
    note = ""
    if len(kept) >= MOST_BYTES and (last is None or line <= last):
        note = f"; clipped at {MOST_BYTES:,} bytes: read on from line {line}, or use search"
    return f"[{path}: lines {first:,}-{line - whole:,} of {total}{note}]\n{_text(bytes(kept))}"


def _total(file: BinaryIO) -> str:
    """How many lines there are, where that is quickly counted."""
    if os.fstat(file.fileno()).st_size > _COUNTED:
        return "many"
    count, last = 0, b"\n"
    while chunk := file.read(MOST_BYTES):
        count += chunk.count(b"\n")
        last = chunk[-1:]
    file.seek(0)
    unended = last != b"\n"
    return f"{count + unended:,}"


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "[not all of this is UTF-8; what is not is shown as \ufffd]\n" + data.decode(errors="replace")
