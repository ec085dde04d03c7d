"""Executions as a listing shows them: from their stored summaries where these are exact, folded where they are not."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, NamedTuple

from treadle.ports.ledger import ExecutionRow, Ledger
from treadle.runtime.document import document
from treadle.runtime.journal import load_state


class Listed(NamedTuple):
    """One execution: its document (SV-03) and what only a listing needs. Where it runs, that says `owner_alive`."""

    document: dict[str, Any]
    created_us: int
    owner_alive: bool


async def listing(ledger: Ledger, *, limit: int | None = None, status: str = "") -> list[Listed]:
    """Newest first, at most `limit`. One that was killed before its first record was never started and is left out."""
    found: list[Listed] = []
    for row in await ledger.rows(limit=None if status else limit):
        entry = await _listed(ledger, row)
        if entry is not None and status in ("", entry.document["status"]):
            found.append(entry)
        if limit is not None and len(found) >= limit:
            break
    return found


async def _listed(ledger: Ledger, row: ExecutionRow) -> Listed | None:
    if not row.head:
        return None
    summary = row.summary
    if summary is not None and summary.seq == row.head:
        found: dict[str, Any] = json.loads(summary.body, parse_float=Decimal)
    else:
        state, _, _ = await load_state(ledger, row.execution_id)
        found = document(row.execution_id, state)
    if found["status"] == "running":
        found["owner_alive"] = row.owner_alive
    return Listed(found, row.created_us, row.owner_alive)
