"""Leases of an execution that is taken over, held against its records: a snapshot saves time, and permits nothing by itself."""

from __future__ import annotations

from treadle.core.codec import decode
from treadle.core.errors import UnfoundedLease
from treadle.kernel.grants import check_lease
from treadle.kernel.states import LoopState
from treadle.ports.ledger import Ledger

from .journal import load_state


async def check_leases(ledger: Ledger, execution_id: str, state: LoopState) -> None:
    """UnfoundedLease for one that no record grants. A read or two a lease; nothing where there is none."""
    for lease in state.carried.leases:
        number = lease.record or 1
        records = await ledger.records(execution_id, after=number - 1, to=number) if number <= state.seq else []
        if number < 1 or not records:
            raise UnfoundedLease(f"{lease.id!r}: there is no record {number}", path="$.frame.grantedLoopLeases")
        before = (await load_state(ledger, execution_id, at=number - 1)).state if number > 1 else LoopState()
        (record,) = records
        check_lease(lease, before, decode(record.kind, record.version, record.body))
