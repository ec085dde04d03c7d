"""An execution is removed whole or not at all, never while it is owned; `vacuum` drops what nothing names any more."""

import pytest

from conformance.ledger_kit import commit, record, records, started
from treadle.core.codec import encode
from treadle.core.digests import blob_address
from treadle.core.errors import InputError, OwnerAlive, StaleEpoch, UnknownExecution
from treadle.core.messages import ToolResult, ToolsFinished
from treadle.ports.ledger import Batch, Record, Snapshot, Summary

pytestmark = pytest.mark.anyio


def naming(seq: int, address: str) -> Record:
    result = ToolResult(id="i", content="c", status="ok", blob=address)
    kind, version, body = encode(ToolsFinished(parent=1, results=(result,), us=1))
    return Record(seq, kind, version, 1, 1, body)


@pytest.mark.req("LG-09")
async def test_everything_of_an_execution_goes_and_nothing_of_the_others(ledger):
    own = await started(ledger, "goes-1", count=3)
    batch = Batch(
        own,
        [record(4)],
        receipts=[("t", "r")],
        opened=[("q", "question", b"{}")],
        snapshot=Snapshot(4, 1, b""),
        summary=Summary(4, b"{}"),
    )
    await commit(ledger, batch)
    await ledger.post("goes-1", "cancel", b"{}", at_us=1)
    stays = await started(ledger, "stays-1", count=3)
    await commit(ledger, Batch(stays, [], receipts=[("t", "r")]))
    await ledger.release(own)
    await ledger.remove("goes-1")
    assert [row.execution_id for row in await ledger.rows()] == ["stays-1"]
    with pytest.raises(UnknownExecution):
        await ledger.records("goes-1")
    assert len(await ledger.records("stays-1")) == 3
    assert await ledger.receipts("stays-1", "t") == {"r"}
    assert await ledger.verify() == []
    again = await started(ledger, "goes-1", count=1)
    assert (len(await ledger.records("goes-1")), await ledger.posted("goes-1")) == (1, [])
    assert await ledger.receipts("goes-1", "t") == set()
    assert again.epoch == 1


@pytest.mark.req("LG-09")
async def test_what_is_owned_is_not_removed(ledger, other):
    own = await started(ledger, count=2)
    for one in (ledger, other):
        with pytest.raises(OwnerAlive):
            await one.remove("run-1")
    await commit(ledger, Batch(own, records(3, 3)))
    assert len(await ledger.records("run-1")) == 3


async def test_an_owner_that_released_before_it_was_removed_writes_no_more(ledger):
    own = await started(ledger, count=2)
    await ledger.release(own)
    await ledger.remove("run-1")
    with pytest.raises(StaleEpoch):
        await commit(ledger, Batch(own, records(3, 3)))
    with pytest.raises(UnknownExecution):
        await ledger.remove("run-1")
    with pytest.raises(InputError):
        await ledger.acquire("run-1", owner="me")


@pytest.mark.req("LG-09")
async def test_blobs_go_once_no_record_names_them(ledger):
    shared, single = b"of both" * 9000, b"of one" * 9000
    gone = await started(ledger, "goes-1", count=1)
    stays = await started(ledger, "stays-1", count=1)
    both, one = blob_address(shared), blob_address(single)
    await commit(ledger, Batch(gone, [naming(2, both), naming(3, one)], blobs=[(both, shared), (one, single)]))
    await commit(ledger, Batch(stays, [naming(2, both)], blobs=[(both, shared)]))
    await ledger.release(gone)
    await ledger.release(stays)
    assert (await ledger.vacuum()).blobs == 0
    await ledger.remove("goes-1")
    done = await ledger.vacuum()
    assert done.blobs == 1
    assert done.after <= done.before
    assert await ledger.blob(both) == shared
    assert await ledger.verify() == []
