"""Keeps the beginning and the end of an output of any length in bounded memory."""

from __future__ import annotations

import codecs

from treadle.core.spoken import count

_SLACK = 65_536


class HeadTail:
    """Bytes as they arrive; once there are more than `limit`, about half of that from either end."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head, self._tail, self._total = bytearray(), bytearray(), 0

    def add(self, chunk: bytes) -> None:
        """Takes the next bytes."""
        self._total += len(chunk)
        room = self._head_limit - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * self._tail_limit + _SLACK:
            self._shorten()

    def text(self) -> tuple[str, int]:
        """What was kept, undecodable bytes replaced, and how many bytes were left out of its middle."""
        if self._total <= self._head_limit + self._tail_limit:
            return (self._head + self._tail).decode(errors="replace"), 0
        self._shorten()
        head, rest = _whole_characters(bytes(self._head))
        tail = bytes(self._tail)
        cut = next((i for i, byte in enumerate(tail[:3]) if byte & 0xC0 != 0x80), min(3, len(tail)))
        left_out = self._total - len(self._head) - len(tail) + rest + cut
        return f"{head}\n[... {count(left_out, 'byte')} left out ...]\n{tail[cut:].decode(errors='replace')}", left_out

    def _shorten(self) -> None:
        del self._tail[: max(0, len(self._tail) - self._tail_limit)]


def _whole_characters(data: bytes) -> tuple[str, int]:
    """Decoded up to the last whole character, and how many bytes are left over."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    return text, len(decoder.getstate()[0])
