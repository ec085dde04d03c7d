"""What happens to the permissions of a loop (FR-12)."""

from __future__ import annotations

from typing import Literal

from .values import Value

LeaseScope = Literal["turn", "step", "loop"]
LeaseOp = Literal["grant", "revoke"]


class Lease(Value, frozen=True, kw_only=True):
    """One grant or revocation as it was given."""

    id: str
    op: LeaseOp
    capability: str
    scope: LeaseScope
    expires_at_us: int | None = None
    by: str = ""  # a person's name, policy, or gate
    record: int = 0  # the one that granted or revoked it; 0: the definition did, at the start


class Held(Value, frozen=True, kw_only=True):
    """What a loop may touch at a moment: today's ceiling (None: there is none), cut by its leases in the order in which they came."""

    ceiling: tuple[str, ...] | None = None
    leases: tuple[Lease, ...] = ()


class LeaseChanged(Value, frozen=True, kw_only=True):
    """A capability was granted or revoked, by a person, by a policy, or at a gate that the agent asked at."""

    id: str
    op: LeaseOp
    capability: str
    scope: LeaseScope = "loop"
    expires_at_us: int | None = None
    by: Literal["person", "policy", "gate"] = "person"
    actor: str = ""
    reason: str = ""
    at_us: int = 0
