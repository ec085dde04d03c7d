"""Proofs of single charges: what may be one, and how many a task may have (TC-11)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from .errors import InvalidReceipt

LONGEST = 512  # characters
MOST = 65_536  # of one task, or of one loop


def accounted_for(receipt: object, known: AbstractSet[str]) -> bool:
    """Whether this receipt is among the known ones. InvalidReceipt where it is none, or would be one too many."""
    if not isinstance(receipt, str) or not 1 <= len(receipt) <= LONGEST:
        raise InvalidReceipt(f"a receipt has 1 to {LONGEST} characters, not {receipt!r:.60}")
    if receipt in known:
        return True
    if len(known) >= MOST:
        raise InvalidReceipt(f"a task has at most {MOST:,} receipts")
    return False
