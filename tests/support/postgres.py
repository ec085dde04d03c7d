"""A Postgres server of the tests' own, for as long as they run; the store of each test is a schema of its own."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

NUMBERS = itertools.count(1)


def binaries() -> Path | None:
    """Where the server's programs are; None where it is not installed, but in CI, where nothing may be left out in silence."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not installed and os.environ.get("CI"):
        raise AssertionError("CI is to have a Postgres server: see .ci/run")
    return installed[-1].parent if installed else None


@functools.cache
def server() -> str:
    """The address of the running server's default database, without options."""
    programs = binaries()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="treadle-pg-"))
    as_user = []
    if os.getuid() == 0:  # the server refuses to run as root
        shutil.chown(folder, "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]
    data = folder / "data"
    run = functools.partial(subprocess.run, check=True, stdout=subprocess.DEVNULL, cwd="/")
    run([*as_user, programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8"])
    options = f"-k {folder} -c listen_addresses= -c fsync=off -c max_connections=200"
    control = [*as_user, programs / "pg_ctl", "-D", data]
    run([*control, "-w", "-l", folder / "log", "-o", options, "start"])

    def stop() -> None:
        run([*control, "-m", "immediate", "stop"])
        shutil.rmtree(folder)

    atexit.register(stop)
    return f"postgresql:///postgres?host={quote(str(folder), safe='')}&user=postgres"


def new_store() -> str:
    """The address of an empty store."""
    import psycopg

    schema = f"store_{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    return f"{server()}&options={quote(f'-csearch_path={schema}', safe='')}"
