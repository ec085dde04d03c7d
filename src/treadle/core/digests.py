"""Digests that name stored content."""

from __future__ import annotations

from hashlib import blake2b

ADDRESS_BYTES = 20
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


def blob_address(content: bytes) -> str:
    """The address of a blob: 40 hexadecimal digits that only this content has."""
    return blake2b(content, digest_size=ADDRESS_BYTES).hexdigest()


def child_id(*path: str) -> str:
    """The id of an execution inside another one: the same for every replay, and no prefix of its parent's. 16 letters and digits."""
    number = int.from_bytes(blake2b("\0".join(path).encode(), digest_size=10).digest(), "big")
    return "".join(_LETTERS[number >> shift & 31] for shift in range(75, -5, -5))
