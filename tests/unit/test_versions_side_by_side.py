"""Two versions of Treadle on one store: what the newer one has gone on with is left alone by the older one, and stops nothing else."""

from __future__ import annotations

import anyio
import pytest

from treadle.app.claiming import Abandoned
from treadle.app.listing import listing
from treadle.core.codec import encode
from treadle.core.errors import TreadleError
from treadle.core.messages import Prompted
from treadle.ledger.inmemory import InMemoryLedger
from treadle.ports.ledger import Batch, Record


async def begun(ledger: InMemoryLedger, name: str, kind: str) -> None:
    """An execution that nobody owns, whose one record is of that kind."""
    _, version, body = encode(Prompted(parent=None, text="Do it"))
    owned = await ledger.create(name, kind="loop", owner="gone:1", at_us=1)
    outcome: list[TreadleError | None] = []
    ended = anyio.Event()

    def done(error: TreadleError | None) -> None:
        outcome.append(error)
        ended.set()

    ledger.submit(Batch(owned, [Record(1, kind, version, None, 1, body)]), done)
    await ended.wait()
    assert outcome == [None]
    await ledger.release(owned)


@pytest.mark.req("LG-07", "RT-02")
def test_an_execution_that_only_a_newer_version_can_read_is_left_alone_and_hides_no_other() -> None:
    async def scenario() -> None:
        ledger, said = InMemoryLedger(), list[str]()
        await begun(ledger, "ours", "prompted")
        await begun(ledger, "theirs", "invented.later")
        abandoned = Abandoned(ledger, said.append)
        assert [row.execution_id for row in await abandoned.find()] == ["ours"]
        assert len(said) == 1
        assert said[0].startswith("theirs: left alone: Record of kind 'invented.later'")
        assert [row.execution_id for row in await abandoned.find()] == ["ours"]
        assert len(said) == 1  # told once, not each second
        statuses = {one.document["execution_id"]: one.document["status"] for one in await listing(ledger)}
        assert statuses == {"ours": "running", "theirs": "unreadable"}

    anyio.run(scenario)
