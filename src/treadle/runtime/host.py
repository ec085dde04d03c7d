"""The journal as effects see it."""

from __future__ import annotations

from treadle.core.events import Event, Phase
from treadle.core.messages import Message
from treadle.effects.host import Host
from treadle.kernel.states import LoopState
from treadle.kernel.view import View

from .branch import past
from .journal import Journal


class JournalHost(Host):
    """One execution for its effects."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._receipts: set[str] | None = None

    @property
    def state(self) -> LoopState:  # type: ignore[override]
        """Read anew at each use: it changes with every event."""
        return self._journal.state

    @property
    def execution_id(self) -> str:
        return self._journal.execution_id

    @property
    def watched(self) -> bool:
        # Asked at each request: somebody may have begun to look.
        return any(observer.wants_text for observer in self._journal.observers)

    def emit(self, event: Event) -> None:
        self._journal.emit(event)

    def flush_soon(self) -> None:
        self._journal.flush_soon()

    async def flush(self) -> None:
        await self._journal.barrier()

    async def confirm(self) -> None:
        await self._journal.confirm()

    def tell(self, kind: str, data: object) -> None:
        self._journal.tell(kind, data)

    def put_blob(self, content: bytes) -> str:
        return self._journal.put_blob(content)

    async def blob(self, address: str) -> bytes:
        await self._journal.flush()
        return await self._journal.ledger.blob(address)

    async def view(self, phase: Phase, examples: tuple[Message, ...] = ()) -> View:
        return await self._journal.view(phase, examples)

    async def past(self) -> list[tuple[int, Message]]:
        await self._journal.flush()
        return await past(self._journal.ledger, self.execution_id, self.state.agent.leaf)

    async def receipts(self) -> set[str]:
        if self._receipts is None:
            self._receipts = await self._journal.ledger.receipts(self.execution_id, "loop")
        return self._receipts
