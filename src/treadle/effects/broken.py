"""What an effect that raised says to a person: most often a fault of a tool, sometimes that its workspace is gone."""

from __future__ import annotations

import os

from treadle.core.errors import ScopeError


def what_broke(error: Exception, workspace: str) -> tuple[str, str]:
    """(the evidence, the advice)."""
    if isinstance(error, OSError | ScopeError) and workspace and not os.path.isdir(workspace):  # noqa: PTH112 - no path to keep
        return f"the workspace {workspace} is gone", "Restore it, then resume --retry-incomplete."
    return (
        f"{type(error).__name__}: {error}",
        "This is a fault of a tool or of Treadle. Mend it, then resume --retry-incomplete.",
    )
