"""Sinks for programs: progress as JSON lines in a stream, or kept in memory; and a way to put any observer on a thread of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, BinaryIO

import msgspec

from treadle.core.events import ToolIntended
from treadle.core.messages import ModelResponded
from treadle.ports.observer import Observer, Progress

from .bus import CLOSE_S, SIZE, Pump, Ring

# Only ids, or texts that were redacted where they entered.
_CLEAN = frozenset(
    ("model.intended", "callback.started", "process.started", "tool.finished", "tools.finished", "wait.ended")
)
GATHER_S = 0.05  # a sink that is woken for each event would interrupt the loop for each
_encode = msgspec.json.Encoder(decimal_format="number", enc_hook=repr).encode


class JsonLines(Observer):
    """One JSON object a line: execution_id, seq (0 for what is never recorded), kind, at_us, data. No text deltas unless asked for.

    `redact` takes secrets out of every text before it is written. A reader that went away is no fault of the loop: the rest is dropped.
    """

    def __init__(
        self, stream: BinaryIO, *, deltas: bool = False, redact: Callable[[str], str] | None = None, owned: bool = False
    ) -> None:
        self._stream: BinaryIO | None = stream
        self._deltas, self._redact, self._owned = deltas, redact, owned
        self.wants_text = deltas
        self._unsuspicious = b""  # what was looked at last, and had no secret: the arguments of a call come twice

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
            self._stream.write(self._bytes(line) + b"\n")
            if not self._owned:
                self._stream.flush()
        except OSError:
            self._stream = None

    def flush(self) -> None:
        if self._stream is None:
            return
        try:
            self._stream.flush()
        except OSError:
            self._stream = None

    def _bytes(self, line: dict[str, Any]) -> bytes:
        encoded = _encode(line)
        if self._redact is None or line["kind"] in _CLEAN:
            return encoded
        suspect = _suspect(line["kind"], line["data"], encoded)
        if not suspect or suspect in self._unsuspicious:
            return encoded
        text = suspect.decode()
        if self._redact(text) == text:
            self._unsuspicious = suspect
            return encoded
        # Text by text, so that it stays JSON.
        return _encode(redacted(msgspec.json.decode(encoded), self._redact))

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if self._owned and stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _suspect(kind: str, data: Any, encoded: bytes) -> bytes:
    """The part of a line that nobody has redacted yet: what a model wrote was redacted where it entered, its calls were not."""
    match kind:
        case "model.responded" if isinstance(data, ModelResponded):
            arguments = [call.args for call in data.calls]
            return _encode((arguments, data.extra)) if data.extra or any(arguments) else b""
        case "tool.started":
            return _encode(data["args"]) if data["args"] else b""
        case "tool.intended" if isinstance(data, ToolIntended) and not data.probes:
            return b""
        case _:
            return encoded


def redacted(value: Any, redact: Callable[[str], str]) -> Any:
    """JSON with every text in it redacted: names stay, and so do numbers."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redacted(one, redact) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {name: redacted(one, redact) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


class Recording(Observer):
    """Keeps what it was told, oldest first. For tests and notebooks: it grows without bound."""

    def __init__(self) -> None:
        self.progress: list[Progress] = []

    def notify(self, progress: Progress) -> None:
        self.progress.append(progress)


class Aside(Observer):
    """Another observer on a thread of its own: the loop never waits for it, and it loses some where it is too slow.

    It gets what has gathered for 50 ms. What it has lost it is told by an ephemeral `dropped` with a count; what it raises is
    counted in `errors`.
    """

    def __init__(self, observer: Observer, *, size: int = SIZE) -> None:
        self._observer, self.wants_text, self.hears_children = observer, observer.wants_text, observer.hears_children
        self.ignores = observer.ignores
        self._ring: Ring[Progress] = Ring(size)
        self._told = 0
        self._pump = Pump(self._ring, self._take, lag=size, gather_s=GATHER_S, idle=observer.flush)

    @property
    def dropped(self) -> int:
        """How many notes it has lost."""
        return self._pump.dropped

    @property
    def errors(self) -> int:
        """How often it raised."""
        return self._pump.errors

    def notify(self, progress: Progress) -> None:
        if progress.kind not in self.ignores:
            self._ring.publish(progress)

    def _take(self, progress: Progress) -> None:
        if (lost := self._pump.dropped - self._told) > 0:
            self._told += lost
            self._observer.notify(progress._replace(seq=0, kind="dropped", data={"count": lost}))
        self._observer.notify(progress)

    def close(self) -> None:
        """Gives it some seconds for what waits."""
        self._ring.close()
        self._pump.join(CLOSE_S)
        self._observer.close()
