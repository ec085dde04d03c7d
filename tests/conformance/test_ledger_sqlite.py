"""What only a file can show: unchangeable records, the order of syncs, shared commits, readers, bytes."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from conformance.ledger_kit import Gate, commit, record, records, started, submit
from treadle.core.errors import LedgerGap, OwnerAlive
from treadle.ledger.sqlite import open_sqlite
from treadle.ports.ledger import Batch, Snapshot, Summary

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def raw(path, sql, *values):
    """Another program's hands on the file."""
    with closing(sqlite3.connect(path)) as db, db:
        return db.execute(sql, values).fetchall()


def pragma(ledger, name):
    """As the writing connection has it."""
    return ledger._changes._db.execute(f"PRAGMA {name}").fetchone()[0]


async def passes_of_the_loop():
    for _ in range(100):
        await asyncio.sleep(0)


@pytest.mark.req("LG-01")
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE records SET body = x'00' WHERE seq = 2",
        "UPDATE records SET seq = 9 WHERE seq = 3",
        "DELETE FROM records WHERE seq = 3",
        "DELETE FROM records",
    ],
)
async def test_records_cannot_be_changed_or_removed(path, sql):
    ledger = await open_sqlite(path)
    await started(ledger, count=3)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw(path, sql)
    assert await ledger.records("run-1") == records(1, 3)
    await ledger.close()


@pytest.mark.req("LG-05")
async def test_commits_are_synced_in_a_write_ahead_log(path):
    ledger = await open_sqlite(path)
    assert (pragma(ledger, "journal_mode"), pragma(ledger, "synchronous")) == ("wal", 2)
    await ledger.close()


@pytest.mark.req("LG-03")
async def test_done_is_called_only_after_the_commit_has_returned(path):
    gate = Gate()
    ledger = await open_sqlite(path, points=gate)
    own = await started(ledger)
    for point in ("ledger.before-commit", "ledger.in-transaction", "ledger.after-commit"):
        gate.close(point)
        head = (await ledger.row("run-1")).head
        outcome = submit(ledger, Batch(own, [record(head + 1)]))
        await asyncio.to_thread(gate.arrived.wait, 60)
        await passes_of_the_loop()
        assert not outcome.done()
        assert (await ledger.row("run-1")).head == head + (point == "ledger.after-commit")
        gate.open()
        assert await outcome is None
    await ledger.close()


@pytest.mark.req("LG-05")
async def test_batches_that_wait_for_a_sync_share_the_next_one(path):
    gate = Gate()
    ledger = await open_sqlite(path, points=gate)
    owners = [await started(ledger, f"run-{number}") for number in range(200)]
    gate.close("ledger.in-transaction")
    gate.seen.clear()
    first = submit(ledger, Batch(owners[0], [record(1)]))
    await asyncio.to_thread(gate.arrived.wait, 60)
    rest = [submit(ledger, Batch(own, [record(1)])) for own in owners[1:]]
    rest += [submit(ledger, Batch(own, [record(2)])) for own in owners]
    gate.open()
    assert set(await asyncio.gather(first, *rest)) == {None}
    assert gate.seen.count("ledger.after-commit") == 2
    assert {row.head for row in await ledger.rows()} == {2}
    await ledger.close()


@pytest.mark.req("LG-05")
async def test_a_reader_in_a_long_transaction_does_not_hold_up_commits(path):
    ledger = await open_sqlite(path, busy_timeout_s=0.2)
    own = await started(ledger, count=100)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        cursor = reader.execute("SELECT seq FROM records")
        cursor.fetchone()
        for seq in range(101, 111):
            await commit(ledger, Batch(own, [record(seq)]))
        assert len(cursor.fetchall()) == 99
        assert await ledger.records("run-1", after=109) == [record(110)]
    await ledger.close()


@pytest.mark.req("LG-05")
async def test_the_writer_in_a_transaction_does_not_hold_up_readers(path):
    gate = Gate()
    ledger = await open_sqlite(path, points=gate, busy_timeout_s=0.2)
    own = await started(ledger, count=3)
    gate.close("ledger.in-transaction")
    outcome = submit(ledger, Batch(own, [record(4)]))
    await asyncio.to_thread(gate.arrived.wait, 60)
    assert await ledger.records("run-1") == records(1, 3)
    assert (await ledger.rows())[0].head == 3
    assert await ledger.verify() == []
    gate.open()
    assert await outcome is None
    await ledger.close()


async def grown(path, own_of, turns):
    """The file's size, checkpointed, after so many more turns of about 1.6 KB in four records."""
    ledger = await open_sqlite(path, synchronous="OFF")
    own = await own_of(ledger)
    for turn in range(own.head // 4, own.head // 4 + turns):
        seq = 4 * turn
        text = ["i" * 150, "r" * 600, "t" * 100, "o" * 600]
        batches = [[1, 2], [3, 4]]
        for pair in batches:
            await commit(ledger, Batch(own, [record(seq + k, text=text[k - 1]) for k in pair]))
    await ledger.close()
    return path.stat().st_size


@pytest.mark.req("LG-02")
async def test_a_turn_takes_as_many_bytes_at_the_start_as_later_and_little_more_than_its_payload(path):
    async def new(ledger):
        return await started(ledger)

    async def again(ledger):
        return await ledger.acquire("run-1", owner="tester")

    empty = await grown(path, new, 0)
    early = await grown(path, again, 200)
    middle = await grown(path, again, 600)
    late = await grown(path, again, 200)
    assert (late - middle) <= 1.05 * (early - empty)
    payload = sum(int(length) for (length,) in raw(path, "SELECT length(body) FROM records"))
    assert payload >= 1000 * 1450
    assert late <= 1.4 * payload


@pytest.mark.req("LG-02")
async def test_an_owner_that_rests_often_does_not_fill_the_store_with_snapshots(path):
    ledger = await open_sqlite(path, synchronous="OFF")
    own = await started(ledger)
    for seq in range(1, 1301):
        await commit(
            ledger, Batch(own, [record(seq)], snapshot=Snapshot(seq, 1, b"s" * 500), summary=Summary(seq, b""))
        )
    await ledger.close()
    assert [seq for (seq,) in raw(path, "SELECT seq FROM snapshots ORDER BY seq")] == [511, 1023, 1300]
    assert raw(path, "SELECT count(*) FROM summaries") == [(1,)]


async def test_closing_leaves_one_file_and_nothing_beside_it(path):
    ledger = await open_sqlite(path)
    await started(ledger, count=10)
    assert len(list(path.parent.iterdir())) > 1
    await ledger.close()
    assert list(path.parent.iterdir()) == [path]


async def test_closing_empties_the_log_while_another_process_has_the_store_open(path):
    ledger, other = await open_sqlite(path), await open_sqlite(path)
    await started(ledger, count=50)
    log = path.with_name("store.db-wal")
    assert log.stat().st_size > 0
    await ledger.close()
    assert log.stat().st_size == 0
    await other.close()


async def test_a_store_is_one_store_by_whatever_name(path, tmp_path):
    (tmp_path / "link.db").symlink_to(path)
    ledger, other = await open_sqlite(path), await open_sqlite(tmp_path / "link.db")
    await started(ledger)
    assert ledger.url == other.url == f"sqlite:///{path.resolve()}"
    with pytest.raises(OwnerAlive):
        await other.acquire("run-1", owner="second")
    await other.close()
    await ledger.close()


async def test_an_acquire_that_was_cancelled_natively_leaves_no_owner_behind(path):
    gate = Gate()
    ledger, other = await open_sqlite(path, points=gate), await open_sqlite(path)
    await ledger.release(await started(ledger))
    gate.close("ledger.before-commit")
    acquiring = asyncio.create_task(ledger.acquire("run-1", owner="gone"))
    await asyncio.to_thread(gate.arrived.wait, 60)
    acquiring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await acquiring
    gate.open()
    for _ in range(2):  # the first is committed after the acquire was told, the second after its release
        await ledger.post("run-1", "cancel", b"", at_us=1)
    row = await other.row("run-1")
    assert (row.epoch, row.owner_alive) == (2, False)
    await other.acquire("run-1", owner="second")
    await other.close()
    await ledger.close()


async def test_a_done_that_raises_does_not_keep_the_others_from_hearing(path):
    gate = Gate()
    ledger = await open_sqlite(path, points=gate)
    own = await started(ledger)
    reported = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
    gate.close("ledger.before-commit")

    def bad(error):
        raise RuntimeError("of the caller")

    ledger.submit(Batch(own, [record(1)]), bad)
    waiting = [submit(ledger, Batch(own, [record(seq)])) for seq in (2, 3)]
    gate.open()
    async with asyncio.timeout(60):
        assert await asyncio.gather(*waiting) == [None, None]
    assert [str(error) for error in reported] == ["of the caller"]
    await ledger.close()


async def test_what_cannot_be_stored_fails_alone(path):
    gate = Gate()
    ledger = await open_sqlite(path, points=gate)
    good, bad = await started(ledger, "run-1"), await started(ledger, "run-2")
    gate.close("ledger.in-transaction")
    first = submit(ledger, Batch(good, [record(1)]))
    await asyncio.to_thread(gate.arrived.wait, 60)
    surrogate = submit(ledger, Batch(bad, [record(1)._replace(kind="\ud800")]))
    second = submit(ledger, Batch(good, [record(2)]))
    huge = submit(ledger, Batch(bad, [record(1)._replace(at_us=2**70)]))
    gate.open()
    assert await asyncio.gather(first, second) == [None, None]
    assert "cannot be stored" in str(await surrogate)
    assert isinstance(await huge, LedgerGap)
    assert [row.head for row in await ledger.rows()] == [0, 2]
    await ledger.close()


async def test_a_kind_that_was_first_used_in_a_refused_batch_can_be_used_again(path):
    ledger = await open_sqlite(path)
    own = await started(ledger)
    new = record(1)._replace(kind="brand.new")
    assert isinstance(await submit(ledger, Batch(own, [new], taken=[7])), LedgerGap)
    again = await ledger.acquire("run-1", owner="tester")
    await commit(ledger, Batch(again, [new]))
    assert (await ledger.records("run-1"))[0].kind == "brand.new"
    await ledger.close()


async def test_verify_finds_pages_that_belong_to_nothing(path):
    ledger = await open_sqlite(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("DELETE FROM sqlite_master WHERE name = 'posted_by_execution'")
    (line,) = [line for line in await ledger.verify() if line.startswith("file: ")]
    assert "never used" in line
    await ledger.close()


async def test_verify_finds_holes_lost_parents_and_early_snapshots_made_by_other_hands(path):
    ledger = await open_sqlite(path)
    await started(ledger, count=3)
    await started(ledger, "run-2", count=1)
    columns = "execution, seq, kind, version, parent, at_us, body"
    row = f"INSERT INTO records ({columns}) SELECT ?, ?, kind, 1, ?, 0, body FROM records LIMIT 1"
    raw(path, row, 1, 6, 5)
    raw(path, row, 99, 1, None)
    raw(path, "INSERT INTO snapshots VALUES (2, 5, 1, x'')")
    raw(path, "INSERT INTO summaries VALUES (2, 4, x'')")
    assert await ledger.verify() == [
        "1 records belong to no execution (handle 99)",
        "run-1: records 4 to 5 are missing",
        "run-1: record 6: its parent 5 is not there",
        "run-2: the snapshot of 5 is beyond the last record 1",
        "run-2: the summary of 4 is beyond the last record 1",
    ]
    await ledger.close()
