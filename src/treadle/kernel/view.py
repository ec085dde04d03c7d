"""The branch of messages that a model sees: append-only while the branch only grows, so that a turn costs the same at any length."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from treadle.core.codec import encode
from treadle.core.messages import Message


class View:
    """Messages from the root to `leaf`. `generation` moves when it was rebuilt: what was derived from it must be, too.

    `digest` is kept up with the branch, so that a request's digest needs no walk over the history (AG-27).
    """

    __slots__ = ("__weakref__", "_running", "generation", "leaf", "messages", "size")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.leaf: int | None = None
        self.generation = 0
        self.size = 0  # bytes of the messages as stored: an upper bound of their tokens
        self._running = blake2b(digest_size=12)

    @property
    def digest(self) -> str:
        """Of the messages as stored, in order."""
        return self._running.hexdigest()

    def append(self, seq: int, message: Message, body: bytes | None = None) -> None:
        """The branch grew by one. `body` is the message as stored, where it is at hand."""
        body = encode(message)[2] if body is None else body
        self.messages.append(message)
        self.leaf = seq
        self.size += len(body)
        self._running.update(body)

    def reset(self, rows: Iterable[tuple[int, Message, bytes]]) -> None:
        """Another branch, oldest first."""
        self.messages, self.leaf, self.size = [], None, 0
        self._running = blake2b(digest_size=12)
        self.generation += 1
        for seq, message, body in rows:
            self.append(seq, message, body)
