"""A fork: another execution that shares the past of one up to a record, and goes its own way from there."""

from __future__ import annotations

from treadle.core import events as ev
from treadle.core.errors import InputError
from treadle.kernel.continuation import frame_of
from treadle.kernel.states import LoopState

from .carry import Carried, import_into
from .runtime import Runtime


async def forked(runtime: Runtime, execution_id: str, at: int, new_id: str) -> LoopState:
    """Writes it into the same store, at rest. Its files are those of the workspace as they are when it is resumed.

    What the past had in flight at that record is in doubt, as after a lost process. InputError where there is no such record.
    """
    row = await runtime.ledger.row(execution_id)
    if not 1 <= at <= row.head:
        raise InputError(f"There is no record {at} to fork from: {execution_id} has 1 to {row.head}.")
    records = tuple(await runtime.ledger.records(execution_id, to=at))
    state = await runtime.state(execution_id, at=at)
    carried = Carried(new_id, frame_of(state), state, records, ())
    more = [ev.Interrupted(epoch=state.epoch, reason="signal")] if state.status == "running" else []
    return await import_into(runtime.ledger, carried, more, owner=runtime.owner, at_us=runtime.clock.wall_us())
