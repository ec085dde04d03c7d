"""Stores of every released version are brought to today's, in place and whole; newer and foreign ones are refused untouched."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from migration.make_golden import GOLDEN, dump
from treadle.core.errors import LedgerDamaged, LedgerTooNew
from treadle.ledger.migrate import APPLICATION_ID, migrate, version_of
from treadle.ledger.sqlite import open_sqlite
from treadle.ledger.statements import Migration, migrations

VERSIONS = [migration.number for migration in migrations()]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def asked(path, *queries):
    with closing(sqlite3.connect(path)) as db:
        return [db.execute(query).fetchall() for query in queries]


def test_migrations_are_numbered_from_one_without_holes():
    assert list(range(1, len(VERSIONS) + 1)) == VERSIONS


@pytest.mark.anyio
@pytest.mark.req("LG-07")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_store_of_every_released_version_opens_lists_and_reads_back(path, version):
    shutil.copyfile(GOLDEN / f"v{version}.db", path)
    ledger = await open_sqlite(path)
    assert await dump(ledger) == json.loads((GOLDEN / f"v{version}.json").read_text("utf-8"))
    assert await ledger.verify() == []
    own = await ledger.acquire("run-golden-1", owner="tester")
    assert (own.epoch, own.head) == (2, 7)
    await ledger.close()


@pytest.mark.anyio
@pytest.mark.req("LG-07")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_migrated_store_has_the_tables_of_a_new_one(path, tmp_path, version):
    shutil.copyfile(GOLDEN / f"v{version}.db", path)
    for each in (path, tmp_path / "new.db"):
        await (await open_sqlite(each)).close()
    schema = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    numbers = ("PRAGMA user_version", "PRAGMA application_id")
    assert asked(path, schema, *numbers) == asked(tmp_path / "new.db", schema, *numbers)
    assert asked(path, *numbers) == [[(VERSIONS[-1],)], [(APPLICATION_ID,)]]


@pytest.mark.anyio
@pytest.mark.req("LG-07")
async def test_a_newer_store_is_refused_and_left_as_it_was(path):
    shutil.copyfile(GOLDEN / "v1.db", path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")
    before = path.read_bytes()
    with pytest.raises(LedgerTooNew, match=r"store\.db.*999.*Update Treadle"):
        await open_sqlite(path)
    assert path.read_bytes() == before


@pytest.mark.anyio
@pytest.mark.req("LG-07")
@pytest.mark.parametrize(
    "sql", ["CREATE TABLE notes (text)", "PRAGMA application_id = 7", "PRAGMA user_version = 3; CREATE TABLE t (x)"]
)
async def test_a_database_of_another_program_is_refused_and_left_as_it_was(path, sql):
    with closing(sqlite3.connect(path)) as db:
        db.executescript(sql)
    before = path.read_bytes()
    with pytest.raises(LedgerDamaged, match="no Treadle store"):
        await open_sqlite(path)
    assert path.read_bytes() == before


@pytest.mark.anyio
async def test_an_empty_file_becomes_a_store(path):
    path.touch()
    ledger = await open_sqlite(path)
    assert await ledger.rows() == []
    await ledger.close()


@pytest.mark.req("LG-07")
def test_a_migration_that_fails_changes_nothing_and_can_be_taken_later(path):
    first = Migration(1, "CREATE TABLE a (x);\nINSERT INTO a VALUES (1);\n")
    broken = Migration(2, "ALTER TABLE a ADD COLUMN y;\nINSERT INTO nowhere VALUES (1);\n")
    mended = Migration(2, "-- Why.\nALTER TABLE a ADD COLUMN y;\nUPDATE a SET y = x;\n")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            migrate(db, path, (first, broken))
        assert not db.in_transaction
        assert version_of(db, path) == 1
        assert db.execute("SELECT * FROM a").fetchall() == [(1,)]
        assert migrate(db, path, (first, mended)) == 2
        assert db.execute("SELECT * FROM a").fetchall() == [(1, 1)]
        assert migrate(db, path, (first, mended)) == 2


@pytest.mark.req("LG-07")
def test_a_migration_that_another_process_has_taken_meanwhile_is_not_taken_twice(path):
    steps = (Migration(1, "CREATE TABLE a (x);\n"),)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:

        class Slow(tuple):
            """The other process takes the step after this one has read the version."""

            def __iter__(self):
                with closing(sqlite3.connect(path, isolation_level=None)) as other:
                    migrate(other, path, steps)
                return super().__iter__()

        assert migrate(db, path, Slow(steps)) == 1
        assert db.execute("SELECT * FROM a").fetchall() == []
