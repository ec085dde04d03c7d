"""A Temporal server of the tests' own, from the package that carries one; it forgets everything when they end."""

from __future__ import annotations

import atexit
import functools
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("temporal")
TICK = "history.transferProcessorMaxPollRPS=1000"  # or a tick of 50 ms hides how long anything takes


@functools.cache
def server() -> str:
    """The address of the running server."""
    folder = Path(tempfile.mkdtemp(prefix="treadle-temporal-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    port = address.rpartition(":")[2]
    command = [PROGRAM, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port]
    pragmas = ["--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=1"]
    store = ["--db-filename", str(folder / "temporal.db"), *pragmas, "--dynamic-config-value", TICK]
    log = (folder / "log").open("wb")
    process = subprocess.Popen([*command, *store, "--log-level", "error"], stdout=log, stderr=log)

    def stop() -> None:
        process.kill()
        process.wait()
        log.close()
        shutil.rmtree(folder)

    atexit.register(stop)
    subprocess.run(
        [PROGRAM, "operator", "cluster", "health", "--address", address, "--command-timeout", "60s"],
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return address
