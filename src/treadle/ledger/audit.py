"""What `verify` looks for in any store: holes, lost parents, unreadable bodies, early snapshots, altered blobs; and what is named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from treadle.core.codec import decode
from treadle.core.digests import blob_address
from treadle.core.errors import TreadleError
from treadle.ports.ledger import Record

_ADDRESS = re.compile(rb'"([0-9a-f]{40})"')
LINES_MAX = 20  # findings listed of one execution; a damaged one could have as many as records


class Audited(NamedTuple):
    """One execution as stored. `folded` are its snapshots and summary: (what, seq)."""

    execution_id: str
    records: Iterable[Record]  # in order of seq
    folded: Iterable[tuple[str, int]]


def audit(executions: Iterable[Audited], blobs: Iterable[tuple[str, bytes]]) -> Iterator[str]:
    """What is wrong, a line each."""
    for execution in executions:
        findings = _of_execution(execution)
        for finding in islice(findings, LINES_MAX):
            yield f"{execution.execution_id}: {finding}"
        if left := sum(1 for _ in findings):
            yield f"{execution.execution_id}: {left} more findings"
    for address, content in blobs:
        if blob_address(content) != address:
            yield f"blob {address}: the content is not what was stored"


def _of_execution(execution: Audited) -> Iterator[str]:
    head, missing = 0, set[int]()
    for seq, kind, version, parent, _, body in execution.records:
        if seq != head + 1:
            yield f"records {head + 1} to {seq - 1} are missing" if seq > head else f"record {seq} is out of place"
            missing.update(range(head + 1, seq))
        head = seq
        if parent is not None and (not 0 < parent < seq or parent in missing):
            yield f"record {seq}: its parent {parent} is not there"
        try:
            decode(kind, version, body)
        except TreadleError as error:
            yield f"record {seq}: {error}"
    for what, seq in execution.folded:
        if seq > head:
            yield f"the {what} of {seq} is beyond the last record {head}"


def named_blobs(bodies: Iterable[bytes]) -> set[str]:
    """Addresses that records may name. What only looks like one keeps a blob, too: that costs room, the opposite would cost an output."""
    return {found.decode() for body in bodies for found in _ADDRESS.findall(body)}
