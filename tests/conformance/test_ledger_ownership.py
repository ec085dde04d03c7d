"""Who may commit: one owner at a time, fenced by its epoch; the dead are taken over, the living are not."""

import asyncio

import pytest

from conformance.ledger_kit import commit, record, records, started, submit
from treadle.core.errors import InputError, LedgerGap, OwnerAlive, StaleEpoch, UnknownExecution
from treadle.ports.ledger import Batch

pytestmark = pytest.mark.anyio


async def test_a_new_execution_is_owned_at_epoch_one_with_nothing_in_it(ledger):
    own = await ledger.create("run-1", kind="loop", owner="me", at_us=7)
    assert (own.execution_id, own.epoch, own.head) == ("run-1", 1, 0)
    row = await ledger.row("run-1")
    assert row[:7] == ("run-1", "loop", 7, 0, 1, "me", True)
    assert row.summary is None


async def test_an_id_that_is_taken_is_refused(ledger, other):
    await started(ledger)
    for each in (ledger, other):
        with pytest.raises(InputError, match="run-1"):
            await each.create("run-1", kind="loop", owner="me", at_us=1)


@pytest.mark.req("TC-26")
async def test_a_living_owner_is_not_taken_over_unless_by_force(ledger, other):
    own = await started(ledger, count=2)
    with pytest.raises(OwnerAlive, match="tester"):
        await other.acquire("run-1", owner="second")
    await commit(ledger, Batch(own, [record(3)]))

    taken = await other.acquire("run-1", owner="second", force=True)
    assert (taken.epoch, taken.head) == (2, 3)
    row = await ledger.row("run-1")
    assert (row.epoch, row.owner, row.owner_alive) == (2, "second", True)


@pytest.mark.req("TC-26", "RT-03")
async def test_two_that_both_believe_they_own_it_cannot_both_commit(ledger, other):
    first = await started(ledger, count=2)
    second = await other.acquire("run-1", owner="second", force=True)
    mine, theirs = submit(ledger, Batch(first, [record(3, text="stale")])), submit(other, Batch(second, [record(3)]))
    assert isinstance(await mine, StaleEpoch)
    assert await theirs is None
    assert await ledger.records("run-1") == [*records(1, 2), record(3)]


@pytest.mark.req("RT-03")
async def test_an_owner_that_was_taken_over_and_back_does_not_wake_up_valid(ledger, other):
    old = await started(ledger)
    await other.acquire("run-1", owner="second", force=True)
    new = await ledger.acquire("run-1", owner="third", force=True)
    assert isinstance(await submit(ledger, Batch(old, [record(1)])), StaleEpoch)
    await commit(ledger, Batch(new, [record(1)]))
    stale = await submit(ledger, Batch(old, [record(2)]))  # what the new owner has in memory is not the old one's
    assert isinstance(stale, StaleEpoch)


@pytest.mark.req("RT-03")
async def test_an_epoch_of_another_process_cannot_be_borrowed(ledger, other):
    own = await started(ledger)
    assert isinstance(await submit(other, Batch(own, [record(1)])), StaleEpoch)


@pytest.mark.req("TC-26")
async def test_a_process_that_is_gone_is_taken_over_without_force(store, ledger):
    gone = await store.open()
    await started(gone, count=2)
    await started(ledger, "run-2")
    assert (await ledger.row("run-1")).owner_alive
    await gone.close()
    row = await ledger.row("run-1")
    assert (row.owner, row.owner_alive) == ("tester", False)
    taken = await ledger.acquire("run-1", owner="second")
    assert (taken.epoch, taken.head) == (2, 2)


async def test_the_same_process_cannot_own_an_execution_twice_by_accident(ledger):
    await started(ledger)
    with pytest.raises(OwnerAlive):
        await ledger.acquire("run-1", owner="again")


async def test_an_owner_that_was_refused_something_may_acquire_anew_at_once(ledger, other):
    own = await started(ledger)
    assert isinstance(await submit(ledger, Batch(own, [record(2)])), LedgerGap)
    assert not (await ledger.row("run-1")).owner_alive
    assert (await other.row("run-1")).owner_alive
    assert (await ledger.acquire("run-1", owner="again")).epoch == 2


async def test_a_released_execution_has_no_owner_and_keeps_its_epoch(ledger, other):
    own = await started(ledger)
    await ledger.release(own)
    row = await other.row("run-1")
    assert (row.owner, row.owner_alive, row.epoch) == ("", False, 1)
    assert isinstance(await submit(ledger, Batch(own, [record(1)])), StaleEpoch)
    assert (await other.acquire("run-1", owner="second")).epoch == 2


async def test_releasing_what_was_taken_over_changes_nothing(ledger, other):
    own = await started(ledger)
    taken = await other.acquire("run-1", owner="second", force=True)
    await ledger.release(own)
    row = await ledger.row("run-1")
    assert (row.owner, row.owner_alive) == ("second", True)
    await commit(other, Batch(taken, [record(1)]))


async def test_one_process_owns_many_executions(ledger, other):
    for name in ("run-1", "run-2", "run-3"):
        await started(ledger, name)
    assert [row.owner_alive for row in await other.rows()] == [True] * 3


async def test_unknown_executions_are_named(ledger):
    await started(ledger, "run-apple")
    for call in (
        ledger.acquire("run-aple", owner="me"),
        ledger.post("run-aple", "cancel", b"", at_us=1),
        ledger.records("run-aple"),
        ledger.chain("run-aple", None),
        ledger.snapshot("run-aple"),
        ledger.receipts("run-aple", "loop"),
        ledger.suspensions("run-aple"),
        ledger.posted("run-aple"),
    ):
        with pytest.raises(UnknownExecution, match="run-apple"):
            await call


async def test_processes_commit_side_by_side_to_executions_of_their_own(ledger, other):
    mine, theirs = await started(ledger, "run-1"), await started(other, "run-2")

    async def work(each, own):
        for seq in range(1, 31):
            await commit(each, Batch(own, [record(seq)]))

    await asyncio.gather(work(ledger, mine), work(other, theirs))
    assert [row.head for row in await ledger.rows()] == [30, 30]
    assert await ledger.verify() == []


async def test_only_one_of_many_that_acquire_at_once_gets_it(ledger, other):
    own = await started(ledger)
    await ledger.release(own)
    calls = [each.acquire("run-1", owner=f"{number}") for number in range(5) for each in (ledger, other)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["OwnerAlive"] * 9 + ["Ownership"]
