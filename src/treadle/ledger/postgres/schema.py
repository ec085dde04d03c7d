"""Numbered, forward-only migrations of a Postgres store (LG-07), one transaction, under a lock that many first openers share."""

from __future__ import annotations

from treadle.core.errors import LedgerTooNew
from treadle.ledger.statements import Migration, migrations

from .writer import Connection

LOCK = 0x7472646C  # "trdl"


async def migrate(
    connection: Connection, where: str, *, create: bool = True, steps: tuple[Migration, ...] | None = None
) -> int:
    """Brings the store to the newest version, which is returned; 0 where there is none and none is to be made.

    LedgerTooNew; psycopg.Error.
    """
    steps = migrations("postgres") if steps is None else steps
    newest = steps[-1].number
    version = await _version(connection)
    if version > newest:
        raise LedgerTooNew(f"{where}: the store has version {version}, this Treadle knows {newest}. Update Treadle.")
    if version == newest or (not version and not create):
        return version
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        version = await _version(connection)  # another process may have been quicker
        if not version:
            await connection.execute("CREATE TABLE treadle_schema (version integer NOT NULL)")
            await connection.execute("INSERT INTO treadle_schema (version) VALUES (0)")
        for step in steps:
            if step.number > version:
                await connection.execute(step.sql.encode())
                await connection.execute("UPDATE treadle_schema SET version = %s", (step.number,))
    return newest


async def _version(connection: Connection) -> int:
    # Not by to_regclass: inside a transaction it may not see yet what another process has made meanwhile.
    there = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'treadle_schema'"
    if await (await connection.execute(there)).fetchone() is None:
        return 0
    found = await (await connection.execute("SELECT version FROM treadle_schema")).fetchone()
    return 0 if found is None else found[0]
