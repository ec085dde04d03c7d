"""Every write carries a key of its sender's: sent again, it gets the first answer and does nothing (SV-04)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

import anyio

from .problems import Problem

if TYPE_CHECKING:
    from pydantic import BaseModel

KEPT = (
    4_096  # keys; a repeated write comes within seconds, and what it asked for is checked against the sequence besides
)


@dataclass(slots=True)
class _Entry:
    digest: bytes
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: BaseModel | None = None


class Once:
    """Answers by key, of this process."""

    def __init__(self, kept: int = KEPT) -> None:
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._kept = kept

    async def run(self, key: str, what: str, body: BaseModel, act: Callable[[], Awaitable[BaseModel]]) -> BaseModel:
        """The answer of `act`, or the one that this key got before. Problem 422 for a key that was used for something else.

        A failure is not kept: the same key may try again.
        """
        digest = blake2b(f"{what}\n{body.model_dump_json()}".encode(), digest_size=16).digest()
        while (entry := self._entries.get(key)) is not None:
            if entry.digest != digest:
                raise Problem(422, "key-reused", "This Idempotency-Key was used for another request: take a new one.")
            await entry.done.wait()
            if entry.answer is not None:
                return entry.answer
        entry = self._entries[key] = _Entry(digest)
        try:
            entry.answer = await act()
            return entry.answer
        finally:
            if entry.answer is None:
                self._entries.pop(key, None)
            entry.done.set()
            while len(self._entries) > self._kept:
                self._entries.popitem(last=False)
