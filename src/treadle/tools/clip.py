"""Clips a large output for the prompt: its beginning and its end, and how to get the rest (AG-16)."""

from __future__ import annotations


def clip(text: str, limit: int, call_id: str) -> str:
    """`text` within `limit` characters, unless the line that says what was left out is longer than that by itself.

    Cut at line ends where that costs no more than a tenth of what fits.
    """
    if len(text) <= limit:
        return text
    room = max(0, limit - len(_note(text, call_id)) - 2)
    head = _whole_lines(text[: (room + 1) // 2])
    tail = _whole_lines(text[len(text) - room // 2 :][::-1])[::-1] if room > 1 else ""
    return f"{head}\n{_note(text[len(head) : len(text) - len(tail)], call_id)}\n{tail}"


def _whole_lines(piece: str) -> str:
    """Up to its last line end, where that is near."""
    cut = piece.rfind("\n")
    return piece[: cut + 1] if cut >= 0 and len(piece) - cut - 1 <= len(piece) // 10 else piece


def _note(left_out: str, call_id: str) -> str:
    size = len(left_out.encode(errors="surrogatepass"))
    return (
        f"[... {size:,} bytes ({left_out.count(chr(10)):,} lines) left out: "
        f"read_output(call_id={call_id!r}) gives them, by start and end or by search ...]"
    )
