"""edit_file: replaces one exact, unique piece of text; what is not unique or not there is told with what comes near."""

from __future__ import annotations

import difflib
from typing import NamedTuple

from treadle.core.errors import ToolError

_MOST_SHOWN = 5
_MOST_COMPARED = 5_000  # lines
_LONGEST_COMPARED = 300  # characters: comparing takes the square of it


class Edit(NamedTuple):
    """The content after an edit, and what the model is told of it."""

    content: bytes
    message: str


def edit(path: str, content: bytes, old: str, new: str) -> Edit:
    """`content` with its one `old` replaced by `new`. ToolError("argument"): how many there are, where, what is near.

    In a file with CRLF line ends, LF in both texts stands for CRLF.
    """
    if not old:
        raise ToolError("argument", "old is empty", hint="Give the text to replace, or use write_file.")
    if old == new:
        raise ToolError("argument", "old and new are the same", hint="Look whether the change is there already.")
    before, after = encoded(old), encoded(new)
    found = _occurrences(content, before)
    if not found and b"\r\n" in content and b"\r" not in before:
        before, after = before.replace(b"\n", b"\r\n"), after.replace(b"\n", b"\r\n")
        found = _occurrences(content, before)
    if len(found) > 1:
        lines = [content.count(b"\n", 0, at) + 1 for at in found]
        where = ", ".join(map(str, lines[:_MOST_SHOWN])) + (", ..." if len(lines) > _MOST_SHOWN else "")
        raise ToolError(
            "argument",
            f"old occurs {len(found)} times in {path} (lines {where}); nothing was changed",
            hint="Add the lines around it, so that it occurs once.",
        )
    if not found:
        raise ToolError("argument", f"old occurs 0 times in {path}; nothing was changed", hint=_near(content, old))
    at = found[0]
    line = content.count(b"\n", 0, at) + 1
    return Edit(
        content[:at] + after + content[at + len(before) :],
        f"Edited {path} at line {line:,}: {_count(old)} replaced by {_count(new)}.",
    )


def encoded(text: str) -> bytes:
    """As UTF-8. ToolError("argument") for text that is none."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError("argument", "the text is not valid Unicode", hint="Leave out single surrogates.") from error


def _occurrences(content: bytes, piece: bytes) -> list[int]:
    """Where it begins, overlapping ones included: they make an edit ambiguous, too."""
    found: list[int] = []
    at = content.find(piece)
    while at >= 0 and len(found) < 1000:
        found.append(at)
        at = content.find(piece, at + 1)
    return found


def _count(text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    return f"{lines:,} line{'' if lines == 1 else 's'}"


def _near(content: bytes, old: str) -> str:
    """The place that was probably meant, as it stands in the file."""
    lines = content.decode(errors="replace").split("\n")[:_MOST_COMPARED]
    wanted = [line.strip() for line in old.strip().split("\n")]
    bare = [line.strip() for line in lines]
    for at in range(len(bare) - len(wanted) + 1):
        if bare[at] == wanted[0] and bare[at : at + len(wanted)] == wanted:
            return f"It differs only in white space from {_shown(lines, at, at + len(wanted))}"
    comparable = {line for line in bare if 0 < len(line) <= _LONGEST_COMPARED}
    close = difflib.get_close_matches(max(wanted, key=len)[:_LONGEST_COMPARED], comparable, n=1)
    if close:
        at = bare.index(close[0])
        return f"The nearest is {_shown(lines, max(0, at - 1), at + 2)}"
    return "Read the file again: nothing in it comes near. It may have changed, or be another file."


def _shown(lines: list[str], start: int, end: int) -> str:
    shown = lines[start : min(end, start + 20)]
    text = "\n".join(line[:300] for line in shown)
    return f"lines {start + 1:,}-{start + len(shown):,}, which read:\n{text}"
