"""What happens to the permissions of a loop (FR-12)."""

from __future__ import annotations

from typing import Literal

from .values import Value


class LeaseChanged(Value, frozen=True, kw_only=True):
    """A capability was granted or revoked, by a person, by a policy, or at a gate that the agent asked at."""

    id: str
    op: Literal["grant", "revoke"]
    capability: str
    scope: Literal["turn", "step", "loop"] = "loop"
    expires_at_us: int | None = None
    by: Literal["person", "policy", "gate"] = "person"
    actor: str = ""
    reason: str = ""
    at_us: int = 0
