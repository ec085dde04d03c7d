"""Batches: whole or not at all, in order, fenced, and refused for good after a refusal."""

import asyncio

import pytest

from conformance.ledger_kit import commit, record, records, started, submit
from treadle.core.errors import LedgerGap, LedgerUnavailable, StaleEpoch, TreadleError
from treadle.ports.ledger import Batch, Snapshot, Summary

pytestmark = pytest.mark.anyio


async def test_done_is_called_by_the_event_loop_and_never_within_submit(ledger):
    own = await started(ledger)
    called = []
    ledger.submit(Batch(own, records(1, 1)), called.append)
    assert called == []
    await commit(ledger, Batch(own, records(2, 2)))
    assert called == [None]


async def test_batches_of_an_execution_are_committed_in_the_order_of_submit(ledger):
    own = await started(ledger)
    order = []
    for seq in range(1, 41):
        ledger.submit(Batch(own, [record(seq)]), lambda error, seq=seq: order.append((seq, error)))
    await commit(ledger, Batch(own, [record(41)]))
    assert order == [(seq, None) for seq in range(1, 41)]
    assert [found.seq for found in await ledger.records("run-1")] == list(range(1, 42))


@pytest.mark.parametrize("wrong", [[5], [4, 6], [3], [2, 3, 4]])
async def test_records_that_do_not_follow_the_last_one_are_refused_whole(ledger, wrong):
    own = await started(ledger, count=3)
    with pytest.raises(LedgerGap, match="run-1"):
        await commit(ledger, Batch(own, [record(seq) for seq in wrong], receipts=[("loop", "r")]))
    assert (await ledger.row("run-1")).head == 3
    assert await ledger.receipts("run-1", "loop") == set()


async def test_after_a_refusal_every_later_batch_of_that_owner_is_refused_until_it_acquires_anew(ledger):
    own = await started(ledger)
    waiting = [submit(ledger, Batch(own, [record(seq)])) for seq in (1, 3, 2, 3)]
    outcomes = await asyncio.gather(*waiting)
    assert outcomes[0] is None
    assert [type(error) for error in outcomes[1:]] == [LedgerGap] * 3
    for late in (Batch(own, [], receipts=[("loop", "r")]), Batch(own, [record(2)])):
        with pytest.raises(LedgerGap):
            await commit(ledger, late)

    again = await ledger.acquire("run-1", owner="tester")
    assert (again.epoch, again.head) == (2, 1)
    await commit(ledger, Batch(again, [record(2)]))
    assert (await ledger.row("run-1")).head == 2


async def test_a_refused_batch_does_not_harm_the_others_that_wait_with_it(ledger):
    owners = [await started(ledger, f"run-{name}") for name in "abcde"]
    bad = owners[2]._replace(epoch=9)
    waiting = [submit(ledger, Batch(own, records(1, 2))) for own in (*owners[:2], bad, *owners[3:])]
    outcomes = await asyncio.gather(*waiting)
    assert [type(error) for error in outcomes] == [type(None), type(None), StaleEpoch, type(None), type(None)]
    assert [row.head for row in await ledger.rows()] == [2, 2, 0, 2, 2]


@pytest.mark.req("TC-11")
async def test_records_and_receipts_land_together_and_a_refused_batch_leaves_its_receipts_free(ledger):
    own = await started(ledger)
    await commit(ledger, Batch(own, [record(1)], receipts=[("loop", "one"), ("side", "one")]))
    with pytest.raises(LedgerGap):
        await commit(ledger, Batch(own, [record(3)], receipts=[("loop", "two")]))
    again = await ledger.acquire("run-1", owner="tester")
    await commit(ledger, Batch(again, [record(2)], receipts=[("loop", "two")]))
    assert await ledger.receipts("run-1", "loop") == {"one", "two"}
    assert await ledger.receipts("run-1", "side") == {"one"}


@pytest.mark.req("TC-11")
async def test_a_receipt_that_is_stored_already_refuses_the_whole_batch(ledger):
    own = await started(ledger)
    await commit(ledger, Batch(own, [record(1)], receipts=[("loop", "one")]))
    with pytest.raises(LedgerGap):
        await commit(ledger, Batch(own, [record(2)], receipts=[("loop", "one")]))
    assert (await ledger.row("run-1")).head == 1


async def test_everything_of_a_batch_is_stored_and_read_back(ledger):
    own = await started(ledger)
    posted = await ledger.post("run-1", "answer", b"yes", at_us=5)
    batch = Batch(
        own,
        records(1, 2),
        receipts=[("loop", "r1")],
        blobs=[("6f8b71ca0c0f44dd1fbf8ddf3a3b1d0ec5e7c1b7", b"never read here")],
        opened=[("s1", "question", b"which?")],
        closed=[("s1", b"that one")],
        taken=[posted],
        snapshot=Snapshot(2, 1, b"folded"),
        summary=Summary(2, b"short"),
    )
    await commit(ledger, batch)
    assert await ledger.records("run-1") == records(1, 2)
    assert await ledger.suspensions("run-1") == [("s1", "question", b"which?", b"that one")]
    assert await ledger.posted("run-1") == []
    assert await ledger.snapshot("run-1") == Snapshot(2, 1, b"folded")
    assert (await ledger.row("run-1")).summary == Summary(2, b"short")


async def test_a_batch_without_records_may_carry_the_rest(ledger):
    own = await started(ledger, count=2)
    await commit(ledger, Batch(own, [], snapshot=Snapshot(2, 1, b"x"), summary=Summary(2, b"y")))
    assert await ledger.snapshot("run-1") == Snapshot(2, 1, b"x")


async def test_a_snapshot_beyond_the_last_record_is_refused(ledger):
    own = await started(ledger, count=2)
    with pytest.raises(LedgerGap, match="snapshot"):
        await commit(ledger, Batch(own, [], snapshot=Snapshot(3, 1, b"x")))


@pytest.mark.parametrize(
    "parts",
    [
        {"closed": [("s2", b"")]},
        {"opened": [("s1", "question", b"")]},
        {"closed": [("s1", b"again")]},
        {"taken": [99]},
        {"taken": [1, 1]},
    ],
    ids=["answer to nothing", "opened twice", "second answer", "unknown request", "taken twice"],
)
async def test_what_contradicts_the_store_is_refused_whole(ledger, parts):
    own = await started(ledger)
    assert await ledger.post("run-1", "cancel", b"", at_us=1) == 1
    await commit(ledger, Batch(own, [record(1)], opened=[("s1", "question", b"")], closed=[("s1", b"first")]))
    with pytest.raises(LedgerGap):
        await commit(ledger, Batch(own, [record(2)], **parts))
    assert (await ledger.row("run-1")).head == 1
    assert await ledger.suspensions("run-1") == [("s1", "question", b"", b"first")]
    assert len(await ledger.posted("run-1")) == 1


async def test_a_closed_store_refuses_with_a_typed_error(store):
    ledger = await store.open()
    own = await started(ledger)
    await ledger.close()
    await ledger.close()
    outcome = await submit(ledger, Batch(own, [record(1)]))
    assert isinstance(outcome, LedgerUnavailable)
    for call in (ledger.rows(), ledger.row("run-1"), ledger.verify(), ledger.acquire("run-1", owner="x")):
        with pytest.raises(LedgerUnavailable, match="closed"):
            await call


async def test_close_writes_what_is_queued_and_tells_before_it_returns(store):
    ledger = await store.open()
    own = await started(ledger)
    outcomes: list[TreadleError | None] = []
    for seq in range(1, 11):
        ledger.submit(Batch(own, [record(seq)]), outcomes.append)
    await ledger.close()
    assert outcomes == [None] * 10
    again = await store.open()
    assert (await again.row("run-1")).head == 10
    await again.close()
