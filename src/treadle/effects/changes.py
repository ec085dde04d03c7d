"""Which files somebody changed after an instant, told by their times: a hint for person and model, never a decision."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def changed_since(root: str | os.PathLike[str], paths: Iterable[str], since_us: int) -> tuple[str, ...]:
    """Those of `paths` (relative to root) that were written after `since_us`, or whose folder was when they are gone."""
    return tuple(path for path in paths if _changed_us(Path(root) / path) > since_us)


def _changed_us(file: Path) -> int:
    try:
        return max(file.lstat().st_mtime_ns, file.lstat().st_ctime_ns) // 1000
    except FileNotFoundError:
        try:
            return file.parent.stat().st_mtime_ns // 1000
        except FileNotFoundError:
            return 0


def gone(root: str | os.PathLike[str], paths: Iterable[str]) -> tuple[str, ...]:
    """Those of `paths` (relative to root) that are not there."""
    return tuple(path for path in paths if not os.path.lexists(Path(root) / path))
