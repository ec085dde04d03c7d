"""What an effect may ask of the execution that it works for."""

from __future__ import annotations

from abc import ABC, abstractmethod

from treadle.core.events import Event, Phase
from treadle.core.messages import Message
from treadle.kernel.states import LoopState
from treadle.kernel.view import View


class Host(ABC):
    """One execution, seen from an effect. `emit`, `tell`, `put_blob` and `flush_soon` may be called from any thread."""

    state: LoopState

    @property
    @abstractmethod
    def execution_id(self) -> str:
        """The execution's id."""

    @property
    @abstractmethod
    def watched(self) -> bool:
        """Whether anybody reads a response while it is being written, so that streaming is worth it."""

    @abstractmethod
    def emit(self, event: Event) -> None:
        """Folds an interim event and queues its record."""

    @abstractmethod
    def flush_soon(self) -> None:
        """Queues what is buffered for the ledger and returns."""

    @abstractmethod
    async def flush(self) -> None:
        """Returns when everything emitted so far is durable, and the execution still ours. LedgerError where it is not."""

    @abstractmethod
    async def confirm(self) -> None:
        """Before something further is begun within an effect: returns where the execution is still ours. LedgerError where it is not."""

    @abstractmethod
    def tell(self, kind: str, data: object) -> None:
        """An ephemeral note to observers."""

    @abstractmethod
    def put_blob(self, content: bytes) -> str:
        """Keeps content with the next commit; its address."""

    @abstractmethod
    async def blob(self, address: str) -> bytes:
        """Content kept earlier."""

    @abstractmethod
    async def view(self, phase: Phase, examples: tuple[Message, ...] = ()) -> View:
        """The branch that the agent of this phase is on."""

    @abstractmethod
    async def past(self) -> list[tuple[int, Message]]:
        """Every message that led to the agent's leaf, oldest first, those included that a compaction has folded."""

    @abstractmethod
    async def receipts(self) -> set[str]:
        """Receipts used so far: one set, shared, to be added to by whoever emits one."""
