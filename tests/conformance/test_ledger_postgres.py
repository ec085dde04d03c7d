"""What only a server does: leases that lapse, requests that are announced, connections and servers that go away."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from conformance.ledger_kit import commit, record, records, started, submit
from support import postgres
from treadle.core.errors import (
    ConfigurationError,
    LedgerTooNew,
    LedgerUnavailable,
    OwnerAlive,
    StaleEpoch,
)
from treadle.ledger.postgres import open_postgres
from treadle.ports.clock import CrashPoints
from treadle.ports.ledger import Batch, Posted

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(postgres.binaries() is None, reason="no Postgres server is installed"),
]

OWNER = """
import asyncio, sys
from treadle.ledger.postgres import open_postgres

async def main():
    ledger = await open_postgres(sys.argv[1])
    own = [await ledger.create(name, kind="loop", owner="other machine", at_us=1) for name in ("run-1", "run-2")]
    print("owned", *(ledger.lapsed(one) for one in own), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print(*(ledger.lapsed(one) for one in own), flush=True)
    await ledger.confirm(own[1])
    print(*(ledger.lapsed(one) for one in own), flush=True)

asyncio.run(main())
"""


@pytest.fixture
def url():
    return postgres.new_store()


@pytest.fixture
async def ledger(url):
    ledger = await open_postgres(url)
    yield ledger
    await ledger.close()


@pytest.fixture
def owner(url):
    """A process that owns run-1."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "owned False False\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()
    process.stdin.close()


async def cut(url: str) -> None:
    """Ends every connection to this store, as a server that fails over does."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def taken_over_in_the_end(ledger):
    while True:
        try:
            return await ledger.acquire("run-1", owner="second")
        except OwnerAlive:
            await asyncio.sleep(0.05)


@pytest.mark.req("LG-06", "RT-03")
async def test_an_owner_that_was_killed_is_taken_over_when_its_lease_has_lapsed(ledger, owner):
    assert (await ledger.row("run-1")).owner_alive
    with pytest.raises(OwnerAlive, match="other machine"):
        await ledger.acquire("run-1", owner="second")
    os.kill(owner.pid, signal.SIGKILL)
    assert (await taken_over_in_the_end(ledger)).epoch == 2


@pytest.mark.req("LG-06", "RT-03")
async def test_an_owner_that_slept_asks_although_it_has_renewed_its_lease_on_waking(ledger, owner):
    os.kill(owner.pid, signal.SIGSTOP)
    await taken_over_in_the_end(ledger)
    os.kill(owner.pid, signal.SIGCONT)
    while not (await ledger.row("run-2")).owner_alive:  # noqa: ASYNC110 - another process' lease
        await asyncio.sleep(0.05)
    owner.stdin.write("\n")
    owner.stdin.flush()
    assert await asyncio.to_thread(owner.stdout.readline) == "True True\n"  # nobody took run-2, but it cannot know
    assert await asyncio.to_thread(owner.stdout.readline) == "True False\n"


@pytest.mark.req("RT-03")
async def test_an_owner_that_was_away_asks_and_hears_that_it_is_over(url, ledger):
    own = await started(ledger)
    await ledger.confirm(own)
    second = await open_postgres(url)
    await second.acquire("run-1", owner="second", force=True)
    with pytest.raises(StaleEpoch, match="taken over"):
        await ledger.confirm(own)
    await second.close()


@pytest.mark.req("LG-08")
async def test_a_connection_that_breaks_is_made_anew_and_nothing_is_lost_or_written_twice(url, ledger):
    own = await started(ledger, count=2)
    for first in range(3, 60, 3):
        waiting = submit(ledger, Batch(own, records(first, first + 2)))
        await cut(url)
        assert await waiting is None
    assert [found.seq for found in await ledger.records("run-1")] == list(range(1, 60))


@pytest.mark.req("LG-08")
async def test_a_commit_that_landed_though_its_connection_broke_is_not_written_again(url):
    class Cut(CrashPoints):
        """Breaks the connection once after the commit, before anybody is told."""

        point = ""

        def reach(self, name):
            if name == self.point:
                self.point = ""
                raise OSError("the network is gone")

    points = Cut()
    ledger = await open_postgres(url, points=points)
    own = await started(ledger, count=1)
    points.point = "ledger.after-commit"
    await commit(ledger, Batch(own, [record(2)], receipts=[("loop", "paid")]))
    assert (await ledger.row("run-1")).head == 2
    await commit(ledger, Batch(own, [record(3)]))
    await ledger.close()


@pytest.mark.req("LG-08", "TC-26")
async def test_what_was_taken_over_without_anybody_hearing_of_it_is_given_up_and_blocks_nobody(url, ledger):
    class Cut(CrashPoints):
        """Breaks the connection once after the commit, before anybody is told."""

        armed = False

        def reach(self, name):
            if self.armed and name == "ledger.after-commit":
                self.armed = False
                raise OSError("the network is gone")

    points = Cut()
    other = await open_postgres(url, points=points)
    await ledger.release(await started(ledger))
    points.armed = True
    with pytest.raises(LedgerUnavailable):
        await other.acquire("run-1", owner="other")
    assert (await taken_over_in_the_end(ledger)).epoch == 3  # though it lives, and renews its lease each second
    await other.close()


@pytest.mark.req("LG-08")
async def test_a_server_that_stays_away_is_named_and_the_password_is_not():
    with pytest.raises(LedgerUnavailable) as refusal:
        await open_postgres("postgresql://me:hunter22@127.0.0.1:1/none")
    assert "me@127.0.0.1" in str(refusal.value)
    assert "hunter22" not in str(refusal.value)


async def test_requests_are_heard_of_without_being_asked_for(url, ledger):
    await started(ledger)
    second = await open_postgres(url)
    while await ledger.posted("run-1") or not ledger.hears("run-1"):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    posted = await second.post("run-1", "cancel", b"now", at_us=5)
    while not (found := await ledger.posted("run-1")):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert found == [Posted(posted, "cancel", b"now", 5)]
    await second.close()


@pytest.mark.req("LG-07")
async def test_many_may_make_the_same_store_at_once_and_a_newer_one_is_refused(url):
    ledgers = await asyncio.gather(*(open_postgres(url) for _ in range(5)))
    for ledger in ledgers:
        await ledger.close()
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("UPDATE treadle_schema SET version = 99")
    with pytest.raises(LedgerTooNew, match="99"):
        await open_postgres(url)


async def test_a_command_that_only_reads_makes_no_store(url):
    with pytest.raises(ConfigurationError, match="no store"):
        await open_postgres(url, create=False)


@pytest.mark.parametrize("sql", ["UPDATE treadle_records SET body = ''", "DELETE FROM treadle_records"])
async def test_records_cannot_be_changed_or_removed(url, ledger, sql):
    await started(ledger, count=2)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            await connection.execute(sql)


@pytest.mark.req("LG-06")
def test_a_loop_runs_on_it_by_the_command_line(url, tmp_path):
    run = [Path(sys.executable).with_name("treadle"), "run", "Say hello", "--store", url, "--workspace", tmp_path]
    ended = subprocess.run(
        [*run, "--agent-command", "echo hello > hello.txt", "--check", "grep hello hello.txt", "--json"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stderr
    listed = subprocess.run([run[0], "ls", "--store", url], capture_output=True, text=True, check=True)
    assert "accepted" in listed.stdout
