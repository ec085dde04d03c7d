"""What the acting agent of a loop was granted and had revoked, as people are shown it (FR-12)."""

from __future__ import annotations

import time
from typing import Any

from treadle.kernel.states import LoopState
from treadle.runtime.document import iso


def leases_of(state: LoopState) -> dict[str, Any]:
    """In order: of those that match, the last decides. `ceiling`: what may be granted; None: everything."""
    ceiling, now_us = state.settings.ceiling, time.time_ns() // 1000
    return {
        "ceiling": None if ceiling is None else list(ceiling),
        "leases": [
            {
                "id": lease.id,
                "op": lease.op,
                "capability": lease.capability,
                "scope": lease.scope,
                "by": lease.by,
                "expires_at": None if lease.expires_at_us is None else iso(lease.expires_at_us),
                "expired": lease.expires_at_us is not None and lease.expires_at_us <= now_us,
            }
            for lease in state.carried.leases
        ],
    }
