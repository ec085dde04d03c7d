"""Which executions a store need not keep any longer, by age and count, and what goes with them. Never one that can still go on (LG-09)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from treadle.core.errors import OwnerAlive, UnknownExecution
from treadle.effects.worktrees import facts_file
from treadle.ports.ledger import ExecutionRow, Ledger
from treadle.settings import Settings

from .ending import artifact_path
from .isolating import scopes_folder
from .listing import children_of, document_of, parents_of, state_of

LIVE = ("running", "paused", "waiting-input")


class Old(NamedTuple):
    """One execution that may go, with all that ran inside it. `ended_us`: wall time of its last record."""

    execution_id: str
    status: str
    ended_us: int
    inside: tuple[str, ...]


async def prunable(
    ledger: Ledger, settings: Settings, *, now_us: int, older_than_us: int | None, keep: int | None
) -> list[Old]:
    """Ended executions, oldest first: those older than that, but for the `keep` newest that have ended.

    What runs, waits or is paused is live, and so is what runs inside it or has a scope that holds work.
    """
    rows = [row for row in await ledger.rows() if row.head]
    parents = await parents_of(ledger, [row.execution_id for row in rows])
    ended = [one for row in rows if row.execution_id not in parents and (one := await _ended(ledger, settings, row))]
    ended.sort(key=lambda one: one.ended_us)
    candidates = ended[: max(0, len(ended) - keep)] if keep is not None else ended
    if older_than_us is None:
        return candidates
    return [one for one in candidates if one.ended_us <= now_us - older_than_us]


async def _ended(ledger: Ledger, settings: Settings, row: ExecutionRow) -> Old | None:
    status = document_of(row.execution_id, await state_of(ledger, row))["status"]
    inside = tuple(await _all_inside(ledger, row.execution_id))
    alive = row.owner_alive or any([(await ledger.row(name)).owner_alive for name in inside])
    held = any(facts_file(scopes_folder(settings) / name).exists() for name in (row.execution_id, *inside))
    if status in LIVE or alive or held or await ledger.posted(row.execution_id):
        return None
    (last,) = await ledger.records(row.execution_id, after=row.head - 1, to=row.head)
    return Old(row.execution_id, status, last.at_us, inside)


async def _all_inside(ledger: Ledger, execution_id: str) -> list[str]:
    found: list[str] = []
    waiting = [execution_id]
    while waiting:
        below = list(await children_of(ledger, waiting.pop()))
        found += below
        waiting += below
    return found


async def remove(ledger: Ledger, settings: Settings, old: Old) -> bool:
    """Takes it out of the store, what ran inside it first, and its artifacts; False where somebody has taken it up meanwhile.

    Killed in between, the rest goes the next time.
    """
    for name in (*reversed(old.inside), old.execution_id):
        try:
            await ledger.remove(name)
        except UnknownExecution:
            continue
        except OwnerAlive:
            return False
        await to_thread.run_sync(_remove_artifacts, artifact_path(settings.state_dir, name).parent)
    return True


def _remove_artifacts(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
