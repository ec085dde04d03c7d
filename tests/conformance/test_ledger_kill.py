"""Real deaths: SIGKILL at each point of a commit, owners that are stopped, and what is left of them."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.ledger_kit import commit, record, started
from treadle.core.errors import OwnerAlive
from treadle.ledger.sqlite import open_sqlite
from treadle.ports.ledger import Batch

pytestmark = pytest.mark.anyio

TESTS = Path(__file__).parents[1]
PROGRAM = [sys.executable, "-m", "conformance.ledger_victim"]
NAMES = ["run-1", "run-2", "run-3", "run-4"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


async def prepared(path):
    """Executions that nobody owns."""
    ledger = await open_sqlite(path)
    for name in NAMES:
        await ledger.release(await started(ledger, name))
    await ledger.close()


@contextmanager
def victim(*words):
    process = subprocess.Popen(
        [*PROGRAM, *map(str, words)], cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


POINTS = ["ledger.before-commit", "ledger.in-transaction", "ledger.after-commit", "ledger.in-acquire"]


@pytest.mark.req("LG-03", "TC-11", "TC-26")
@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_loses_nothing_that_was_acknowledged_and_leaves_no_half_batch(path, point, nth):
    await prepared(path)
    with victim("kill", path, point, nth) as process:
        said = await asyncio.to_thread(lambda: process.communicate(timeout=60)[0])
    assert process.returncode == -signal.SIGKILL
    durable = dict.fromkeys(NAMES, 0)
    acquired = dict.fromkeys(NAMES, 1)
    for line in said.splitlines():
        what, name, number = line.split()
        {"durable": durable, "acquired": acquired}[what][name] = int(number)

    ledger = await open_sqlite(path)
    assert await ledger.verify() == []
    for row in await ledger.rows():
        name = row.execution_id
        assert row.head in (durable[name], durable[name] + 2)
        assert row.epoch in (acquired[name], acquired[name] + (acquired[name] == 1))
        assert not row.owner_alive
        assert await ledger.records(name) == [record(seq) for seq in range(1, row.head + 1)]
        assert await ledger.receipts(name, "loop") == {f"for {seq}" for seq in range(2, row.head + 1, 2)}
        own = await ledger.acquire(name, owner="next")
        assert own.head == row.head
        await commit(ledger, Batch(own, [record(own.head + 1)]))
    await ledger.close()
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.req("TC-26")
async def test_a_stopped_owner_counts_as_alive_and_a_killed_one_does_not(path):
    await prepared(path)
    ledger = await open_sqlite(path)
    with victim("wait", path) as process:
        while (await asyncio.to_thread(process.stdout.readline)) != "finished\n":
            assert process.poll() is None
        os.kill(process.pid, signal.SIGSTOP)
        assert all(row.owner_alive for row in await ledger.rows())
        with pytest.raises(OwnerAlive, match="victim"):
            await ledger.acquire("run-1", owner="next")
        forced = await ledger.acquire("run-1", owner="next", force=True)
        await commit(ledger, Batch(forced, [record(forced.head + 1)]))

        process.kill()
        await asyncio.to_thread(process.wait)
        assert [row.owner_alive for row in await ledger.rows()] == [False, False, False, True]
        await ledger.acquire("run-2", owner="next")
    await ledger.close()


async def test_lock_files_of_the_dead_are_swept_by_the_next_owner(path):
    await prepared(path)
    with victim("kill", path, "ledger.in-acquire", 1) as process:
        await asyncio.to_thread(process.communicate)
    owners = path.with_name("store.db.owners")
    assert len(list(owners.iterdir())) == 1
    ledger = await open_sqlite(path)
    await ledger.acquire("run-1", owner="next")
    assert len(list(owners.iterdir())) == 1
    await ledger.close()
    assert not owners.exists()
