"""Digests by which guards tell that a call, or a call with its result, has been there before (AG-11)."""

from __future__ import annotations

import re
from hashlib import blake2b

import msgspec

from treadle.core.messages import ToolCall

_SIZE = 8
_encode = msgspec.json.Encoder(order="deterministic").encode
# Each form begins with a digit that begins a word: said so first, since a search that begins with a set of characters is quick.
_PASSING = re.compile(
    r"[0-9](?<!\w.)(?:[0-9]*(?:\.\d+)?\s?(?:ms|s|sec|seconds?)\b|(?<=0)x[0-9a-fA-F]{6,16}\b|[0-9]:\d\d:\d\d(?:[.,]\d+)?\b)"
)


def call_mark(call: ToolCall) -> str:
    """The same for the same tool with the same arguments, in whatever order these came."""
    return blake2b(_encode((call.name, call.args)), digest_size=_SIZE).hexdigest()


def mark_of(call: ToolCall, content: str) -> str:
    """The same for the same call with the same result. Durations, clock times and addresses are no part of a result."""
    same = _PASSING.sub("", content)
    digest = blake2b(_encode((call.name, call.args)), digest_size=_SIZE)
    digest.update(same.encode(errors="surrogatepass"))
    return digest.hexdigest()


def joined(marks: tuple[str, ...]) -> str:
    """One mark for the batch."""
    return marks[0] if len(marks) == 1 else blake2b("".join(marks).encode(), digest_size=_SIZE).hexdigest()
