"""A branch of messages read from the ledger: as the model sees it after its compactions, or whole."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.codec import decode, encode
from treadle.core.errors import LedgerDamaged
from treadle.core.messages import MESSAGES, Compacted, Message
from treadle.kernel.view import View
from treadle.ports.ledger import Ledger, Record

Head = tuple[int, Compacted]
Row = tuple[int, Message, bytes]
Piece = tuple[Head | None, list[Row]]  # a compaction, and the messages after it


async def fill(
    view: View, ledger: Ledger, execution_id: str, leaf: int | None, examples: Sequence[Message] = ()
) -> None:
    """The view that ends at `leaf`, examples first: each compaction is done again to the branch that it left."""
    found = await pieces(ledger, execution_id, leaf)
    view.reset((0, example, encode(example)[2]) for example in examples)
    for head, messages in found:
        if head is not None:
            view.compact(*head)
        view.extend(messages)
    view.leaf = leaf


async def past(ledger: Ledger, execution_id: str, leaf: int | None) -> list[tuple[int, Message]]:
    """Every message that led there, oldest first, folded ones included."""
    return [(seq, message) for _, rows in await pieces(ledger, execution_id, leaf) for seq, message, _ in rows]


async def pieces(ledger: Ledger, execution_id: str, leaf: int | None) -> list[Piece]:
    """What came before the first compaction, then each compaction with what followed it."""
    found: list[Piece] = []
    while leaf is not None:
        head, rows = _last_piece(await ledger.chain(execution_id, leaf))
        found.append((head, rows))
        if head is None:
            break
        seq, event = head
        if event.base >= seq:
            raise LedgerDamaged(f"{execution_id}: compaction {seq} starts from {event.base}, which came after it")
        leaf = event.base
    return found[::-1]


def _last_piece(chain: Sequence[Record]) -> tuple[Head | None, list[Row]]:
    """The last compaction of a chain, and the messages after it, oldest first."""
    rows: list[Row] = []
    head: Head | None = None
    for seq, kind, version, _, _, body in chain:
        event = decode(kind, version, body)
        if isinstance(event, MESSAGES):
            rows.append((seq, event, body))
        elif isinstance(event, Compacted):
            head, rows = (seq, event), []
        else:
            raise LedgerDamaged(f"record {seq} is no message, and stands in a conversation")
    return head, rows
