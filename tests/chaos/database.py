"""A Postgres server of the harness' own, on a small disk where the machine allows one: it can be restarted, and its disk filled."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from support.postgres import binaries

DISK_MB = 300
USER = "postgres"


class Database:
    """Durable as in production: fsync is on."""

    def __init__(self) -> None:
        programs = binaries()
        assert programs is not None, "no Postgres server is installed"
        self.folder = Path(tempfile.mkdtemp(prefix="chaos-pg-"))
        self.data, self.ballast = self.folder / "disk" / "data", self.folder / "disk" / "ballast"
        self.data.parent.mkdir()
        self.small = self._small_disk()
        self._as = ["runuser", "-u", USER, "--"] if os.getuid() == 0 else []
        if self._as:
            for folder in (self.folder, self.data.parent):
                shutil.chown(folder, USER)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._control = [*self._as, str(programs / "pg_ctl"), "-D", str(self.data)]
        self._run([*self._as, str(programs / "initdb"), "-D", str(self.data), "-U", USER, "--auth=trust", "-E", "UTF8"])
        self.start()

    def _small_disk(self) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(self.data.parent)]
        return os.getuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0

    def _run(self, command: list[str], *, check: bool = True) -> int:
        return subprocess.run(
            command, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
        ).returncode

    def url(self, port: int | None = None, host: str = "127.0.0.1") -> str:
        return f"postgresql://{USER}@{host}:{port or self.port}/postgres"

    def start(self) -> bool:
        where = f"-k {self.folder} -c listen_addresses=127.0.0.1 -p {self.port}"
        options = f"{where} -c max_connections=200 -c max_wal_size=64MB -c min_wal_size=32MB -c restart_after_crash=on"
        command = [*self._control, "-w", "-l", str(self.folder / "log"), "-o", options, "start"]
        return self._run(command, check=False) == 0

    def runs(self) -> bool:
        return self._run([*self._control, "status"], check=False) == 0

    def restart(self) -> None:
        """As after a crash of the server."""
        self._run([*self._control, "-m", "immediate", "-w", "stop"], check=False)
        self.start()

    def fill(self) -> None:
        """The disk is full from now on."""
        size = os.statvfs(self.data.parent)
        with self.ballast.open("wb") as file, contextlib.suppress(OSError):  # the server may have been quicker
            os.posix_fallocate(file.fileno(), 0, max(1, size.f_bavail * size.f_frsize))

    def free(self) -> None:
        """There is room again; a server that gave up is started."""
        self.ballast.unlink(missing_ok=True)
        while not self.runs() and not self.start():
            pass

    def close(self) -> None:
        self._run([*self._control, "-m", "immediate", "stop"], check=False)
        if self.small:
            self._run(["umount", str(self.data.parent)], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
