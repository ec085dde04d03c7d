"""Reading back: rows, records, branches, blobs, snapshots, suspensions, requests."""

import pytest

from conformance.ledger_kit import commit, record, records, started
from treadle.core.digests import blob_address
from treadle.core.errors import DanglingMessage, LedgerDamaged, UnknownExecution
from treadle.ports.ledger import Batch, Posted, Snapshot, Summary

pytestmark = pytest.mark.anyio


async def test_rows_are_listed_newest_first(ledger):
    for name in ("run-b", "run-a", "run-c"):
        await started(ledger, name, count=1)
    assert [row.execution_id for row in await ledger.rows()] == ["run-c", "run-a", "run-b"]
    assert [row.execution_id for row in await ledger.rows(limit=2)] == ["run-c", "run-a"]
    assert await ledger.rows(limit=0) == []


async def test_an_execution_is_found_by_id_by_unique_prefix_and_as_last(ledger):
    for name in ("run-1", "run-10", "run-2x", "chat"):
        await started(ledger, name)
    for wanted, found in {"run-1": "run-1", "run-10": "run-10", "run-2": "run-2x", "last": "chat"}.items():
        assert (await ledger.row(wanted)).execution_id == found


async def test_an_execution_that_is_called_last_is_found_by_its_name(ledger):
    await started(ledger, "last")
    await started(ledger, "newer")
    assert (await ledger.row("last")).execution_id == "last"


async def test_an_ambiguous_prefix_names_what_it_could_be(ledger):
    for name in ("run-1a", "run-1b"):
        await started(ledger, name)
    with pytest.raises(UnknownExecution, match="ambiguous: run-1a, run-1b"):
        await ledger.row("run-1")


@pytest.mark.parametrize("wanted", ["run", "", "%", "run-?", "run_1", "run-2", "x" * 3000, "run-\ud800"])
async def test_what_names_no_execution_is_refused(ledger, wanted):
    await started(ledger, "run-1a")
    with pytest.raises(UnknownExecution, match="There is no execution"):
        await ledger.row(wanted)


async def test_an_empty_store_says_so(ledger):
    assert await ledger.rows() == []
    with pytest.raises(UnknownExecution, match="empty"):
        await ledger.row("last")


@pytest.mark.req("LG-01")
async def test_the_records_of_any_moment_can_be_read_back(ledger):
    own = await started(ledger, count=1200)
    everything = records(1, 1200)
    assert await ledger.records("run-1") == everything
    for seq in (1, 499, 500, 501, 1000, 1200):
        assert await ledger.records("run-1", to=seq) == everything[:seq]
        assert await ledger.records("run-1", after=seq) == everything[seq:]
    assert await ledger.records("run-1", after=3, to=9, limit=4) == everything[3:7]
    assert await ledger.records("run-1", limit=700) == everything[:700]
    assert await ledger.records("run-1", limit=0) == await ledger.records("run-1", after=own.head + 1200) == []


async def test_a_record_keeps_every_field_and_every_byte(ledger):
    own = await started(ledger)
    odd = record(1)._replace(kind="some.kind", version=7, at_us=-5, body=bytes(range(256)))
    await commit(ledger, Batch(own, [odd]))
    assert await ledger.records("run-1") == [odd]


async def test_a_branch_is_read_oldest_first_without_the_other_branches(ledger):
    own = await started(ledger)
    tree = {1: None, 2: 1, 3: 2, 4: None, 5: 2, 6: 3, 7: 5, 8: 4}
    await commit(ledger, Batch(own, [record(seq, parent=parent) for seq, parent in tree.items()]))
    branches = {7: [1, 2, 5, 7], 6: [1, 2, 3, 6], 8: [4, 8], 4: [4], 1: [1]}
    for leaf, branch in branches.items():
        assert [found.seq for found in await ledger.chain("run-1", leaf)] == branch
    assert await ledger.chain("run-1", None) == []


async def test_a_long_branch_that_skips_another_long_one_is_read_whole(ledger):
    own = await started(ledger)
    first, second = range(1, 701), range(701, 1901)
    parents = {seq: seq - 1 if seq > 1 else None for seq in first}
    parents |= {seq: seq - 1 if seq > 701 else None for seq in second}
    parents[1901] = 700
    await commit(ledger, Batch(own, [record(seq, parent=parent) for seq, parent in parents.items()]))
    assert [found.seq for found in await ledger.chain("run-1", 1901)] == [*first, 1901]
    assert [found.seq for found in await ledger.chain("run-1", 1900)] == [*second]


@pytest.mark.parametrize("leaf", [0, 3, 4, 99])
async def test_a_missing_message_is_named(ledger, leaf):
    own = await started(ledger)
    await commit(ledger, Batch(own, [record(1), record(2, parent=1), record(3, parent=9), record(4, parent=4)][:4]))
    with pytest.raises(DanglingMessage, match=r"9|4|0"):
        await ledger.chain("run-1", leaf)


async def test_a_branch_belongs_to_one_execution(ledger):
    await started(ledger, "run-1", count=5)
    await started(ledger, "run-2", count=2)
    with pytest.raises(DanglingMessage):
        await ledger.chain("run-2", 4)


@pytest.mark.req("LG-01")
async def test_a_snapshot_is_the_latest_at_or_before_a_moment_and_never_later(ledger):
    own = await started(ledger, count=2000)
    for seq in (400, 700, 1500, 1600, 2000):
        await commit(ledger, Batch(own, [], snapshot=Snapshot(seq, 1, b"%d" % seq)))
    assert await ledger.snapshot("run-1") == Snapshot(2000, 1, b"2000")
    assert await ledger.snapshot("run-1", at=1599) in (Snapshot(1500, 1, b"1500"), Snapshot(700, 1, b"700"))
    assert await ledger.snapshot("run-1", at=700) == Snapshot(700, 1, b"700")
    assert await ledger.snapshot("run-1", at=399) is None
    await commit(ledger, Batch(own, [], snapshot=Snapshot(2000, 2, b"newer")))
    assert await ledger.snapshot("run-1") == Snapshot(2000, 2, b"newer")


async def test_a_summary_is_replaced(ledger):
    own = await started(ledger, count=1)
    for text in (b"one", b"two"):
        await commit(ledger, Batch(own, [], summary=Summary(1, text)))
    assert [row.summary for row in await ledger.rows()] == [Summary(1, b"two")]


async def test_receipts_are_read_by_task_however_many(ledger):
    own = await started(ledger)
    names = [f"receipt-{number:05d}" for number in range(1300)]
    await commit(ledger, Batch(own, [], receipts=[("loop", name) for name in names]))
    await commit(ledger, Batch(own, [], receipts=[("side", "ключ 🔑")]))
    assert await ledger.receipts("run-1", "loop") == set(names)
    assert await ledger.receipts("run-1", "side") == {"ключ 🔑"}
    assert await ledger.receipts("run-1", "none") == set()


@pytest.mark.parametrize("size", [0, 1000, 3_000_000])
async def test_a_blob_is_read_by_its_address_and_stored_once(ledger, size):
    own = await started(ledger)
    content = b"x" * size
    address = blob_address(content)
    await commit(ledger, Batch(own, [], blobs=[(address, content)]))
    await commit(ledger, Batch(own, [], blobs=[(address, content)]))
    assert await ledger.blob(address) == content
    assert len(address) == 40


@pytest.mark.parametrize("size", [10, 3_000_000])
async def test_a_blob_that_does_not_fit_its_address_is_damage(ledger, size):
    own = await started(ledger)
    address = blob_address(b"this")
    await commit(ledger, Batch(own, [], blobs=[(address, b"x" * size)]))
    with pytest.raises(LedgerDamaged, match=address):
        await ledger.blob(address)


async def test_a_blob_that_is_missing_is_damage(ledger):
    with pytest.raises(LedgerDamaged, match="missing"):
        await ledger.blob(blob_address(b"never stored"))


async def test_suspensions_are_listed_in_order_of_opening_with_their_answers(ledger):
    own = await started(ledger)
    await commit(ledger, Batch(own, [], opened=[("z", "question", b"1"), ("a", "approval", b"2")]))
    await commit(ledger, Batch(own, [], closed=[("z", b"yes")]))
    assert await ledger.suspensions("run-1") == [("z", "question", b"1", b"yes"), ("a", "approval", b"2", None)]


async def test_requests_wait_until_a_batch_takes_them_and_their_ids_are_never_reused(ledger, other):
    own = await started(ledger)
    first = await other.post("run-1", "answer", b"a", at_us=5)
    second = await other.post("run-1", "cancel", b"b", at_us=6)
    waiting = [Posted(first, "answer", b"a", 5), Posted(second, "cancel", b"b", 6)]
    assert await ledger.posted("run-1") == waiting
    await commit(ledger, Batch(own, [record(1)], taken=[first, second]))
    assert await ledger.posted("run-1") == []
    assert await ledger.post("run-1", "answer", b"c", at_us=7) > second


async def test_requests_of_another_execution_cannot_be_taken(ledger):
    own = await started(ledger, "run-1")
    await started(ledger, "run-2")
    foreign = await ledger.post("run-2", "cancel", b"", at_us=1)
    with pytest.raises(Exception, match="run-1"):
        await commit(ledger, Batch(own, [record(1)], taken=[foreign]))
    assert len(await ledger.posted("run-2")) == 1


async def test_what_one_process_commits_another_reads_at_once(ledger, other):
    own = await started(ledger)
    assert await other.records("run-1") == []
    await commit(ledger, Batch(own, [record(1)]))
    assert await other.records("run-1") == [record(1)]
    await commit(ledger, Batch(own, [record(2)._replace(kind="brand.new")]))
    assert [found.kind for found in await other.records("run-1")] == ["prompted", "brand.new"]
