"""A PostgreSQL server for the peers that need one: as initdb leaves it, synced, on a socket; a database for each run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "tests"))
from support.postgres import binaries


@contextmanager
def server() -> Generator[str | None]:
    """Its address up to the database's name; None where no server is installed."""
    programs = binaries()
    if programs is None:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="treadle-bench-pg-"))
    as_user = []
    if os.getuid() == 0:  # the server refuses to run as root
        shutil.chown(folder, "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]

    def run(*command: object) -> None:
        subprocess.run([*as_user, *map(str, command)], check=True, stdout=subprocess.DEVNULL, cwd="/")

    programs = (programs / "initdb").resolve().parent  # a link may stand for it
    data = folder / "data"
    run(programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8")
    serving = [*as_user, programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses="]
    process = subprocess.Popen([*map(str, serving)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
    while not (folder / ".s.PGSQL.5432").exists():
        time.sleep(0.1)
    try:
        yield f"postgresql:///{{}}?host={quote(str(folder), safe='')}&user=postgres"
    finally:
        run(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")
        process.wait()
        shutil.rmtree(folder)


class Database:
    """An empty one, and what it has grown by."""

    def __init__(self, address: str, name: str) -> None:
        import psycopg

        self._admin, self.url, self._name = address.format("postgres"), address.format(name), name
        with psycopg.connect(self._admin, autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}".encode())
        self._before = self._size()

    def grown(self) -> int:
        """Bytes of the database and of the write-ahead log since then."""
        return self._size() - self._before

    def _size(self) -> int:
        import psycopg

        sizes = b"SELECT pg_database_size(current_database()) + pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
        with psycopg.connect(self.url, autocommit=True) as db:
            found = db.execute(sizes).fetchone()
        return int(found[0]) if found else 0

    def drop(self) -> None:
        import psycopg

        with psycopg.connect(self._admin, autocommit=True) as db:
            db.execute(f"DROP DATABASE {self._name} WITH (FORCE)".encode())
