"""Engines by name: what needs an extra is imported when it is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.core.errors import ConfigurationError

if TYPE_CHECKING:
    from types import ModuleType


def temporal() -> ModuleType:
    """`app.temporal`. ConfigurationError without the extra."""
    try:
        from . import temporal as found
    except ImportError as error:
        raise ConfigurationError("Temporal needs an extra: pip install 'treadle[temporal]'.") from error
    return found
