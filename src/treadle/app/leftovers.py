"""Takes away what speculations have left in repositories and on disk, where a process was killed after the last word on them."""

from __future__ import annotations

from anyio import to_thread

from treadle.core.endings import is_final
from treadle.core.errors import UnknownExecution
from treadle.effects.candidates import let_go, read_kept
from treadle.ports.ledger import Ledger
from treadle.settings import Settings

from .listing import document_of, state_of


async def clear_leftovers(ledger: Ledger, settings: Settings) -> int:
    """Of how many speculations: those whose execution has ended for good in this store. Others may still go on."""
    root, cleared = settings.state_dir / "candidates", 0
    folders = await to_thread.run_sync(lambda: sorted(root.iterdir()) if root.is_dir() else [])
    for folder in folders:
        kept = await to_thread.run_sync(read_kept, folder)
        if kept is not None and await _has_ended(ledger, kept.execution):
            await let_go(folder, settings.state_dir / "trees")
            cleared += 1
    return cleared


async def _has_ended(ledger: Ledger, execution_id: str) -> bool:
    try:
        row = await ledger.row(execution_id)
    except UnknownExecution:  # of another store
        return False
    if row.execution_id != execution_id or not row.head or row.owner_alive:
        return False
    found = document_of(execution_id, await state_of(ledger, row))
    return found["status"] != "running" and is_final(found["status"], found["code"])
