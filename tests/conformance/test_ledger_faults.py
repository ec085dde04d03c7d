"""Faults of the disk and of the file: a typed error that says where, and work goes on when it is gone (LG-08)."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from conformance.ledger_kit import Gate, commit, record, records, started, submit
from treadle.core.errors import (
    ConfigurationError,
    LedgerDamaged,
    LedgerFull,
    LedgerGap,
    LedgerLocked,
    LedgerReadOnly,
    LedgerUnavailable,
)
from treadle.ledger.faults import fault
from treadle.ledger.sqlite import open_sqlite
from treadle.ports.clock import CrashPoints
from treadle.ports.ledger import Batch

pytestmark = pytest.mark.anyio

TESTS = Path(__file__).parents[1]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def on_a_disk_of_its_own(folder, mount, *words):
    """Runs the victim where `mount`, a shell command, has changed what `folder` is. Its lines."""
    try:
        subprocess.run(["unshare", "-rm", "true"], check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("this machine lets nobody mount a disk for a test")
    command = f'{mount} && exec "$PYTHON" -m conformance.ledger_victim "$@"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", command, "sh", *map(str, words)],
        cwd=TESTS,
        env={**os.environ, "PYTHON": sys.executable, "DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.req("LG-08")
async def test_a_full_disk_is_named_and_work_goes_on_when_there_is_room(tmp_path):
    lines = await asyncio.to_thread(
        on_a_disk_of_its_own, tmp_path, 'mount -t tmpfs -o size=1m tmpfs "$DIR"', "fill", tmp_path
    )
    assert lines[0].startswith(f"{tmp_path}/store.db: no space is left. Free some, then resume.")
    assert lines[1] == "refused after the hole"
    assert lines[2].startswith(f"{tmp_path}/second.db: no space is left. Free some, then resume.")
    assert lines[3:] == ["went on"]


@pytest.mark.req("LG-08")
async def test_a_read_only_disk_is_named(path):
    await (await open_sqlite(path)).close()
    mount = 'mount --bind "$DIR" "$DIR" && mount -o remount,ro,bind "$DIR"'
    (line,) = await asyncio.to_thread(on_a_disk_of_its_own, path.parent, mount, "read-only", path)
    assert line.startswith(f"{path.parent}: cannot be written. Check the permissions of the file and of its folder. ")
    assert line.endswith(f"copy {path.name} and {path.name}-wal elsewhere and name the copy.")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.req("LG-08")
async def test_a_read_only_file_or_folder_is_named(path):
    await (await open_sqlite(path)).close()
    for place, mode in ((path, 0o444), (path.parent, 0o555)):
        before = place.stat().st_mode
        place.chmod(mode)
        try:
            with pytest.raises(LedgerReadOnly, match=str(place)):
                await open_sqlite(path)
        finally:
            place.chmod(before)
    await (await open_sqlite(path)).close()


class FailOnce(CrashPoints):
    """The disk fails once, as SQLite would say it."""

    def __init__(self):
        self.code = None

    def reach(self, name):
        if name == "ledger.in-transaction" and self.code is not None:
            error = sqlite3.OperationalError("injected")
            error.sqlite_errorcode, self.code = self.code, None
            error.sqlite_errorname = "INJECTED"
            raise error


@pytest.mark.req("LG-08")
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, LedgerFull),
        (sqlite3.SQLITE_READONLY, LedgerReadOnly),
        (sqlite3.SQLITE_READONLY_DBMOVED, LedgerReadOnly),
        (sqlite3.SQLITE_IOERR_WRITE, LedgerUnavailable),
        (sqlite3.SQLITE_IOERR_FSYNC, LedgerUnavailable),
        (sqlite3.SQLITE_IOERR_CORRUPTFS, LedgerDamaged),
        (sqlite3.SQLITE_CORRUPT, LedgerDamaged),
        (sqlite3.SQLITE_CANTOPEN, LedgerUnavailable),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, LedgerLocked),
    ],
)
async def test_a_commit_that_fails_is_typed_poisons_its_owner_and_a_new_one_goes_on(path, code, kind):
    points = FailOnce()
    ledger = await open_sqlite(path, points=points)
    own = await started(ledger, count=2)
    points.code = code
    with pytest.raises(kind, match=r"store\.db: .*injected"):
        await commit(ledger, Batch(own, [record(3)]))
    with pytest.raises(LedgerGap):
        await commit(ledger, Batch(own, [record(3)]))
    again = await ledger.acquire("run-1", owner="tester")
    assert again.head == 2
    await commit(ledger, Batch(again, [record(3)]))
    assert await ledger.records("run-1") == [*records(1, 2), record(3)]
    await ledger.close()


async def test_a_transaction_that_fails_is_tried_again_batch_by_batch(path):
    class FailGate(FailOnce, Gate):
        def __init__(self):
            FailOnce.__init__(self)
            Gate.__init__(self)

        def reach(self, name):
            Gate.reach(self, name)
            FailOnce.reach(self, name)

    points = FailGate()
    ledger = await open_sqlite(path, points=points)
    owners = [await started(ledger, f"run-{number}") for number in range(5)]
    points.close("ledger.after-commit")
    first = submit(ledger, Batch(owners[0], [record(1)]))
    await asyncio.to_thread(points.arrived.wait, 60)
    waiting = [submit(ledger, Batch(own, [record(1)])) for own in owners[1:]]
    points.code = sqlite3.SQLITE_FULL
    points.seen.clear()
    points.open()
    assert set(await asyncio.gather(first, *waiting)) == {None}
    assert points.seen.count("ledger.before-commit") == 1 + len(waiting)
    await ledger.close()


@pytest.mark.req("LG-08")
async def test_a_lock_of_another_process_is_waited_for_no_longer_than_it_was_said(path):
    gate = Gate()
    ledger = await open_sqlite(path, points=gate, busy_timeout_s=0.05)
    first, *others = [await started(ledger, f"run-{number}") for number in range(1, 7)]
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        gate.close("ledger.before-commit")
        gate.seen.clear()
        waiting = [submit(ledger, Batch(first, [record(1)]))]
        await asyncio.to_thread(gate.arrived.wait, 60)
        waiting += [submit(ledger, Batch(own, [record(1)])) for own in others]
        gate.open()
        outcomes = await asyncio.gather(*waiting)
        assert [type(error) for error in outcomes] == [LedgerLocked] * 6
        assert gate.seen == ["ledger.before-commit"] * 2, "a group waits for the lock once"
        assert ledger._changes._db.execute("PRAGMA busy_timeout").fetchone() == (50,)
        assert str(path) in str(outcomes[0])
        with pytest.raises(LedgerLocked):
            await ledger.acquire("run-1", owner="tester")
        assert await ledger.records("run-1") == []
    again = await ledger.acquire("run-1", owner="tester")
    await commit(ledger, Batch(again, [record(1)]))
    await ledger.close()


@pytest.mark.req("LG-08")
async def test_a_file_that_another_process_holds_exclusively_cannot_be_opened(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerLocked, match="another process"):
            await open_sqlite(path, busy_timeout_s=0.05)
    await (await open_sqlite(path)).close()


@pytest.mark.req("LG-08")
async def test_corrupt_pages_are_damage_wherever_they_are_met(path):
    ledger = await open_sqlite(path)
    await started(ledger, count=400)
    await ledger.close()
    sound = path.read_bytes()
    size = 8192
    pages = len(sound) // size
    garbled = bytearray(sound)
    for page in range(pages // 2, pages - 2):
        garbled[page * size : page * size + 200] = b"\xa5" * 200
    path.write_bytes(garbled)

    ledger = await open_sqlite(path)
    with pytest.raises(LedgerDamaged, match=r"store\.db"):
        await ledger.records("run-1")
    findings = await ledger.verify()
    assert findings
    assert all(line.startswith(("file: ", "run-1: ")) for line in findings)
    await ledger.close()

    path.write_bytes(sound)
    ledger = await open_sqlite(path)
    own = await ledger.acquire("run-1", owner="tester")
    await commit(ledger, Batch(own, [record(401)]))
    await ledger.close()


@pytest.mark.req("LG-08")
@pytest.mark.parametrize(
    "content",
    [b"no database at all, but long enough " * 200, b"SQLite format 3\0" + b"\xff" * 4080],
    ids=["text", "header"],
)
async def test_a_file_that_is_no_database_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerDamaged, match=r"store\.db"):
        await open_sqlite(path)
    assert path.read_bytes() == content


async def test_missing_folders_are_made(tmp_path):
    path = tmp_path / "some" / "where" / "store.db"
    ledger = await open_sqlite(path)
    assert path.exists()
    await ledger.close()


@pytest.mark.req("LG-08")
async def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LedgerUnavailable, match="file"):
        await open_sqlite(tmp_path / "file" / "sub" / "store.db")
    with pytest.raises(LedgerUnavailable, match="folder"):
        await open_sqlite(tmp_path)


@pytest.mark.req("LG-08")
async def test_nothing_is_acknowledged_that_went_into_a_removed_file(path):
    ledger = await open_sqlite(path)
    own = await started(ledger)
    path.unlink()
    with pytest.raises(LedgerUnavailable, match="removed"):
        await commit(ledger, Batch(own, [record(1)]))
    await ledger.close()


async def test_a_wrong_setting_is_refused(path):
    with pytest.raises(ConfigurationError, match="synchronous"):
        await open_sqlite(path, synchronous="MAYBE")
    assert not path.exists()


async def test_many_processes_may_make_the_same_store_at_once(path):
    ledgers = await asyncio.gather(*(open_sqlite(path) for _ in range(8)))
    for number, ledger in enumerate(ledgers):
        await started(ledger, f"run-{number}", count=1)
    assert len(await ledgers[0].rows()) == 8
    for ledger in ledgers:
        await ledger.close()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc here")
async def test_a_file_system_without_room_for_files_is_not_called_full() -> None:
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_CANTOPEN, "SQLITE_CANTOPEN"
    assert "no space" not in str(fault(error, Path("/proc/x.db")))
