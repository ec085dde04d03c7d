"""How many tokens a text is taken for. An estimate that leans to too many, since the budgets measured by it are hard."""

from __future__ import annotations

from collections.abc import Callable

from treadle.core.tokens import CHARACTERS, FOREIGN, estimate, weight

__all__ = ["CHARACTERS", "FOREIGN", "Measure", "estimate", "weight"]

Measure = Callable[[str], int]
"""The tokens of a text. It must not shrink when text is appended. A provider's own count, where it is known, may serve."""
