"""The base of every value that is stored or folded: frozen, keyword-only, strict about unknown fields."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["Value", "replace"]


class Value(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A frozen value, and never part of a cycle, so the collector need not look at it.

    Subclasses repeat `kw_only=True`, since msgspec does not inherit it for new fields.
    """
