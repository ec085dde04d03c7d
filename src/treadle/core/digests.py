"""Digests that name stored content."""

from __future__ import annotations

from hashlib import blake2b

ADDRESS_BYTES = 20


def blob_address(content: bytes) -> str:
    """The address of a blob: 40 hexadecimal digits that only this content has."""
    return blake2b(content, digest_size=ADDRESS_BYTES).hexdigest()
