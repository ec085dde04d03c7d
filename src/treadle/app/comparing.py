"""Two executions side by side: where they part, what each has cost, and how their files differ (CV-25)."""

from __future__ import annotations

from typing import Any

from treadle.core.errors import InputError
from treadle.kernel.states import LoopState
from treadle.ports.ledger import ExecutionRow, Ledger, Record
from treadle.runtime.document import document
from treadle.runtime.journal import load_state

from .history import RoundRecord, round_document, rounds

ACCOUNTS = ("status", "code", "rounds", "turns_taken", "cost_usd", "in_doubt_usd", "elapsed_ms", "model")


async def compare(ledger: Ledger, left: ExecutionRow, right: ExecutionRow) -> dict[str, Any]:
    """`parted_at`: the first record by which they differ. `trees`: what each has left, or began its round with; empty without git.

    InputError where one of them is no loop, or where both are one.
    """
    if left.execution_id == right.execution_id:
        raise InputError(f"{left.execution_id} is named twice: there is nothing to compare it with.")
    sides: list[dict[str, Any]] = []
    kept: list[list[Record]] = []
    for row in (left, right):
        if row.kind != "loop":
            raise InputError(f"{row.execution_id} is a {row.kind}: only loops are compared.")
        records = await ledger.records(row.execution_id)
        state = (await load_state(ledger, row.execution_id)).state
        sides.append(_side(row.execution_id, state, records))
        kept.append(records)
    pairs = zip(kept[0], kept[1], strict=False)
    same = next((n for n, (a, b) in enumerate(pairs) if a.body != b.body or a.kind != b.kind), min(map(len, kept)))
    return {"parted_at": same + 1, "sides": sides, "trees": [side.pop("tree") for side in sides]}


def _side(execution_id: str, state: LoopState, records: list[Record]) -> dict[str, Any]:
    found = document(execution_id, state)
    known = rounds(records)
    return {
        "execution_id": execution_id,
        "forked": state.forked or None,
        **{name: found[name] for name in ACCOUNTS},
        "outcome": found["outcome"],
        "round_records": [round_document(one) for one in known],
        "tree": _tree(known),
    }


def _tree(known: list[RoundRecord]) -> str:
    last = known[-1]
    return last.head or last.baseline
