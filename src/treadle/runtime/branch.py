"""A branch of messages read from the ledger: as the model sees it after its compactions, or whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from treadle.core.codec import decode, encode
from treadle.core.errors import LedgerDamaged
from treadle.core.messages import BRANCHING, Compacted, Message
from treadle.kernel.view import View
from treadle.ports.ledger import Ledger, Record

Node = tuple[int, Message | Compacted, bytes]


async def fill(
    view: View, ledger: Ledger, execution_id: str, leaf: int | None, examples: Sequence[Message] = ()
) -> None:
    """The view that ends at `leaf`, examples first: each compaction is done again to the branch that it left."""
    pieces = await _pieces(ledger, execution_id, leaf)
    view.reset((0, example, encode(example)[2]) for example in examples)
    for piece in pieces:
        for seq, node, body in piece:
            if isinstance(node, Compacted):
                view.compact(seq, node)
            else:
                view.append(seq, node, body)
    view.leaf = leaf


async def past(ledger: Ledger, execution_id: str, leaf: int | None) -> list[tuple[int, Message]]:
    """Every message that led there, oldest first, folded ones included."""
    pieces = await _pieces(ledger, execution_id, leaf)
    return [(seq, node) for piece in pieces for seq, node, _ in piece if not isinstance(node, Compacted)]


async def _pieces(ledger: Ledger, execution_id: str, leaf: int | None) -> list[list[Node]]:
    """What came before the first compaction, then each compaction with what followed it."""
    pieces: list[list[Node]] = []
    while leaf is not None:
        nodes = list(_nodes(await ledger.chain(execution_id, leaf)))
        at = next((i for i in range(len(nodes) - 1, -1, -1) if isinstance(nodes[i][1], Compacted)), None)
        pieces.append(nodes if at is None else nodes[at:])
        if at is None:
            break
        event = nodes[at][1]
        assert isinstance(event, Compacted)
        if event.base >= nodes[at][0]:
            raise LedgerDamaged(
                f"{execution_id}: compaction {nodes[at][0]} starts from {event.base}, which came after it"
            )
        leaf = event.base
    return pieces[::-1]


def _nodes(records: Iterable[Record]) -> Iterable[Node]:
    for record in records:
        event = decode(record.kind, record.version, record.body)
        if not isinstance(event, BRANCHING):
            raise LedgerDamaged(f"record {record.seq} is no message, and stands in a conversation")
        yield record.seq, event, record.body
