"""What happens to the isolated scope of a loop (FR-16): where it is, how it was closed, and that it had to be restored."""

from __future__ import annotations

from typing import Literal

from .values import Value

OnAccept = Literal["merge", "branch"]
Closing = Literal["merged", "branch", "kept", "unchanged"]


class Isolation(Value, frozen=True, kw_only=True):
    """A git worktree on a branch of its own. `base` is the commit that both began at."""

    origin: str  # the workspace that was named
    folder: str  # the worktree
    branch: str  # without refs/heads/
    base: str
    target: str  # the branch that was checked out at the start, without refs/heads/; empty: HEAD was detached
    on_accept: OnAccept


class ScopeRestored(Value, frozen=True, kw_only=True):
    """The worktree had been deleted by somebody and was made anew with the files of `tree`; the model is told."""

    tree: str


class ScopeClosed(Value, frozen=True, kw_only=True):
    """What became of accepted work: merged, left as a branch as told, kept because it could not be merged, or there was none."""

    how: Closing
    commit: str = ""
    note: str = ""  # why it was kept
