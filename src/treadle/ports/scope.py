"""The workspace as something with a past: baselines, what changed since, and the way back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import NamedTuple

from treadle.core.scope_events import Closing


class ScopeReceipt(NamedTuple):
    """What act did to the workspace: from tree to tree, by which paths. `digest` covers the paths and their content."""

    base: str
    head: str
    paths: tuple[str, ...]
    digest: str


class Scope(ABC):
    """A workspace. Trees are git trees kept in an object store; the user's index and branches are never touched (AG-28)."""

    root: str

    @abstractmethod
    async def baseline(self, execution_id: str, round: int) -> tuple[str, str]:
        """Keeps the workspace as it is now. (tree, "") or ("", why there is none)."""

    @abstractmethod
    async def receipt(self, base: str) -> ScopeReceipt:
        """What changed since `base`."""

    @abstractmethod
    async def diff(self, base: str, head: str | None = None) -> str:
        """A unified diff from `base` to `head`, or to the workspace as it is."""

    @abstractmethod
    async def revert(self, base: str, *, only: Collection[str] | None = None) -> tuple[str, ...]:
        """Puts the workspace back to `base`, or only these paths of it. The paths that it changed. Ignored files are left alone."""


class Conflicts(NamedTuple):
    """Whether `commit` can be merged into its target at `onto`: not where there are paths."""

    onto: str
    paths: tuple[str, ...]


class Closed(NamedTuple):
    """What became of a scope's work."""

    how: Closing
    note: str = ""


class Isolated(ABC):
    """A workspace of a loop's own, on a branch of its own, and the way of accepted work out of it (FR-16).

    Every method may be run again after a kill at any instant, and then goes on. Faults are ScopeErrors.
    """

    @abstractmethod
    async def commit(self, base: str, head: str, *, message: str, settles: bool = True) -> str:
        """Commits what differs between the trees `base` and `head`, as it is now, to the branch. The commit at its tip.

        `settles`: whether the target may have been brought in before; that commit becomes one with this.
        """

    @abstractmethod
    async def conflicts(self, commit: str, marked: Collection[str]) -> Conflicts:
        """With what the target has become. `marked`: paths that had conflict markers, and are a conflict while they do."""

    @abstractmethod
    async def bring_in(self, onto: str) -> None:
        """Merges this commit into the scope, with markers where both differ."""

    @abstractmethod
    async def close(self, commit: str, *, message: str) -> Closed:
        """Merges or leaves the branch, as it was told at the start; an empty `commit`: there is no work. Never raises ScopeError."""
