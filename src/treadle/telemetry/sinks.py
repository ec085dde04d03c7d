"""Sinks for programs: progress as JSON lines in a stream, or kept in memory."""

from __future__ import annotations

from typing import Any, TextIO

import msgspec

from treadle.ports.observer import Observer, Progress

_encode = msgspec.json.Encoder(decimal_format="number", enc_hook=repr).encode


class JsonLines(Observer):
    """One JSON object a line: execution_id, seq (0 for what is never recorded), kind, at_us, data. No text deltas unless asked for.

    A reader that went away is no fault of the loop: the rest is dropped.
    """

    def __init__(self, stream: TextIO, *, deltas: bool = False) -> None:
        self._stream: TextIO | None = stream
        self._deltas = deltas

    def notify(self, progress: Progress) -> None:
        if self._stream is None or (progress.kind == "text.delta" and not self._deltas):
            return
        line: dict[str, Any] = {
            "execution_id": progress.execution_id,
            "seq": progress.seq,
            "kind": progress.kind,
            "at_us": progress.at_us,
            "data": progress.data,
        }
        try:
            self._stream.write(_encode(line).decode() + "\n")
            self._stream.flush()
        except OSError:
            self._stream = None


class Recording(Observer):
    """Keeps what it was told, oldest first. For tests and notebooks: it grows without bound."""

    def __init__(self) -> None:
        self.progress: list[Progress] = []

    def notify(self, progress: Progress) -> None:
        self.progress.append(progress)
