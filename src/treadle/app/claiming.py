"""Executions that nobody owns any more, and the right to go on with one: the same for every worker, whatever tells it where to look."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from treadle.kernel.states import LoopState
from treadle.ports.ledger import ExecutionRow, Ledger

from .definition import defined, workflow_of
from .listing import UNREADABLE, listed, parents_of, state_of
from .runtime import Reopening
from .workflow_runtime import workflows_of

if TYPE_CHECKING:
    from .runtime import Runtime, Session
    from .workflow_runtime import WorkflowSession

Standing = Literal["goes on", "waits", "rests"]


def standing(document: dict[str, Any]) -> Standing:
    """Whether it goes on by itself: nobody asked it to stop, and it waits for nobody (case 33). A quota is back at a known time."""
    if document["status"] == "running":
        return "goes on"
    pending = document["pending"]
    if document["code"] == "quota" and pending is not None and pending["until_us"] is not None:
        return "goes on"
    return "waits" if document["status"] == "waiting-input" else "rests"


class Abandoned:
    """Finds executions without an owner that go on by themselves. What does not is looked at again when it has grown.

    One that cannot be read here, since a newer Treadle has gone on with it, is left alone, and `say` is told why.
    """

    def __init__(self, ledger: Ledger, say: Callable[[str], None]) -> None:
        self._ledger, self._say = ledger, say
        self._left: dict[str, int] = {}  # execution -> its head when it was left alone

    async def find(self) -> list[ExecutionRow]:
        """Newest first. An execution inside a workflow is left to that."""
        found: list[ExecutionRow] = []
        for row in await self._ledger.rows():
            if row.owner_alive or not row.head or self._left.get(row.execution_id) == row.head:
                continue
            try:
                entry = await listed(self._ledger, row)
            except UNREADABLE as error:
                self._say(f"{row.execution_id}: left alone: {error}")
                entry = None
            if entry is not None and standing(entry.document) == "goes on":
                found.append(row)
            else:
                self.leave(row)
        inside = await parents_of(self._ledger, [row.execution_id for row in found])
        return [row for row in found if row.execution_id not in inside]

    def leave(self, row: ExecutionRow) -> None:
        """It cannot be gone on with here as it stands."""
        self._left[row.execution_id] = row.head


async def claimed(runtime: Runtime, execution_id: str) -> Session | WorkflowSession:
    """Takes it over, ready to run. OwnerAlive where another was quicker; InputError where it cannot go on here; LedgerError."""
    state = await state_of(runtime.ledger, await runtime.ledger.row(execution_id))
    if isinstance(state, LoopState):
        loop, definition, _ = defined(state.definition, None)
        return await runtime.resume(execution_id, loop, Reopening(), definition=definition)
    workflow = workflow_of(state.definition, execution_id)
    return await workflows_of(runtime).resume(execution_id, workflow, Reopening(), definition=state.definition)
