"""The branch of messages that a model sees: append-only while the branch only grows, so that a turn costs the same at any length."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from treadle.core.codec import encode
from treadle.core.messages import Compacted, Message, ModelResponded, Prompted
from treadle.core.tokens import weight

from .compress import Row, compacted

FRAMING = 16  # quarter tokens that a message costs besides its content
DIGEST_BYTES = 12
BOOKKEEPING = 120  # bytes of a stored response that are never sent: usage, times, ids


class View:
    """Messages from the root to `leaf`. `generation` moves when it was rebuilt: what was derived from it must be, too.

    `digest` is kept up with the branch, so that a request's digest needs no walk over the history (AG-27).
    `known_from` is the place of the first message after the last compaction: what a provider counted before it holds no more.
    """

    __slots__ = (
        "__weakref__",
        "_running",
        "_stored",
        "generation",
        "known_from",
        "leaf",
        "messages",
        "seqs",
        "size",
        "weight",
        "weights",
    )

    def __init__(self) -> None:
        self.generation = 0
        self._clear()

    def _clear(self) -> None:
        self.messages: list[Message] = []
        self.seqs: list[int] = []  # the record that each came with; 0: an example
        self.weights: list[int] = []  # quarter tokens of each, estimated
        self.weight = 0  # ... of all
        self.known_from = 0
        self.leaf: int | None = None
        self.size = 0  # bytes of the messages as stored: an upper bound of their tokens
        self._stored: list[tuple[int, bytes]] = []  # bytes of each, and their digest
        self._running = blake2b(digest_size=DIGEST_BYTES)

    @property
    def digest(self) -> str:
        """Of the digests of the messages as stored, in order."""
        return self._running.hexdigest()

    def append(self, seq: int, message: Message, body: bytes | None = None) -> None:
        """The branch grew by one. `body` is the message as stored, where it is at hand."""
        self.extend(((seq, message, encode(message)[2] if body is None else body),))

    def extend(self, rows: Iterable[tuple[int, Message, bytes]]) -> None:
        """The branch grew by these, each with its record's number and its bytes as stored; a resume adds thousands at once."""
        messages, seqs, weights, stored = self.messages, self.seqs, self.weights, self._stored
        update, total, size, seq = self._running.update, self.weight, self.size, self.leaf
        for seq, message, body in rows:
            length = len(body)
            heavy = weight_of(message, length)
            digest = blake2b(body, digest_size=DIGEST_BYTES).digest()
            update(digest)
            messages.append(message)
            seqs.append(seq)
            weights.append(heavy)
            stored.append((length, digest))
            total += heavy
            size += length
        self.weight, self.size, self.leaf = total, size, seq

    def _again(self, row: Row, heavy: int, stored: tuple[int, bytes]) -> None:
        self.messages.append(row.message)
        self.seqs.append(row.seq)
        self.weights.append(heavy)
        self.weight += heavy
        self.size += stored[0]
        self._stored.append(stored)
        self._running.update(stored[1])

    def reset(self, rows: Iterable[tuple[int, Message, bytes]]) -> None:
        """Another branch, oldest first."""
        self._clear()
        self.generation += 1
        self.extend(rows)

    def compact(self, seq: int, event: Compacted) -> None:
        """The branch that this compaction has made of it; its record is the leaf."""
        stored, weights = self._stored, self.weights
        places = {id(message): place for place, message in enumerate(self.messages)}
        rows = compacted([Row(*pair) for pair in zip(self.seqs, self.messages, strict=True)], seq, event)
        self._clear()
        self.generation += 1
        for row in rows:
            place = places.get(id(row.message))
            if place is None:
                self.append(row.seq, row.message)
            else:  # most stay as they are: nothing of them is made again
                self._again(row, weights[place], stored[place])
        self.leaf, self.known_from = seq, len(self.messages)


def weight_of(message: Message, stored: int) -> int:
    """Quarter tokens that a message comes to; `stored` are the bytes of its record."""
    if isinstance(message, ModelResponded):
        return FRAMING + max(stored - BOOKKEEPING, weight(message.text))
    if isinstance(message, Prompted):
        return FRAMING + weight(message.text)
    total = FRAMING
    for result in message.results:
        total += FRAMING + weight(result.content)
    return total
