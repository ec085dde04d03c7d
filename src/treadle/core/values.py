"""The base of every value that is stored or folded: frozen, keyword-only, strict about unknown fields."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["Value", "replace"]


class Value(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value. Subclasses repeat `kw_only=True`, since msgspec does not inherit it for new fields."""
