"""Patterns as in .gitignore files, by pathspec."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_WARNINGS = threading.Lock()  # their filters belong to the whole process


def ignore_spec(lines: Iterable[str]) -> GitIgnoreSpec:
    """Matches paths relative to where the lines stand. ValueError for a line that cannot be understood."""
    from pathspec import GitIgnoreSpec

    try:
        with _WARNINGS, warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # `[[]` is a fine pattern, but makes an odd expression
            return GitIgnoreSpec.from_lines(list(lines))
    except re.error as error:
        raise ValueError(f"not a pattern: {error}") from error
