"""The workspace as something with a past: baselines, what changed since, and the way back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import NamedTuple


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
