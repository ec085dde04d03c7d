"""Clips a large output for the prompt: its beginning and its end, and how to get the rest (AG-16)."""

from __future__ import annotations

from treadle.core.spoken import count


def clip(text: str, limit: int, call_id: str) -> str:
    """`text` within `limit` characters, unless the line that says what was left out is longer than that by itself.

    Cut at line ends where that costs no more than a tenth of what fits.
    """
    if len(text) <= limit:
        return text
    room = max(0, limit - len(_note(text, call_id)) - 2)
    head = _whole_lines(text[: room - room // 2])
    tail = _whole_lines_after(text[len(text) - room // 2 :])
    note = _note(text[len(head) : len(text) - len(tail)], call_id)
    return f"{head}{'' if head.endswith(chr(10)) else chr(10)}{note}\n{tail}"


def _whole_lines(piece: str) -> str:
    """Up to its last line end, where that is near."""
    cut = piece.rfind("\n") + 1
    return piece[:cut] if cut and len(piece) - cut <= len(piece) // 10 else piece


def _whole_lines_after(piece: str) -> str:
    """From its first line start on, where that is near."""
    cut = piece.find("\n") + 1
    return piece[cut:] if cut <= len(piece) // 10 else piece


def _note(left_out: str, call_id: str) -> str:
    size = len(left_out.encode(errors="surrogatepass"))
    return (
        f"[... {count(size, 'byte')} ({count(left_out.count(chr(10)), 'line')}) left out: "
        f"read_output(call_id={call_id!r}) gives them, by start and end or by search ...]"
    )
