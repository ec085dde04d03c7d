"""Which owners still live: each process holds a lock on a file of its own, and the kernel unlocks it when it dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from pathlib import Path


class Owners:
    """Owners of executions of one store, by token. Exact, and independent of process ids, containers and clocks.

    The living owner of a token holds its file `<store>.owners/<token>` locked exclusively. Who asks takes a shared lock
    for an instant, so that askers do not take one another for an owner. A stopped (SIGSTOP) process keeps its lock: it
    counts as alive.
    """

    def __init__(self, store: Path) -> None:
        self.folder = store.with_name(f"{store.name}.owners")
        self.token = secrets.token_hex(8)
        self._lock: int | None = None

    def hold(self) -> str:
        """Our token, from now on alive until `release`. OSError where the lock file cannot be made."""
        if self._lock is None:
            self._lock = self._take()
            self._sweep()
        return self.token

    def alive(self, token: str) -> bool:
        """Whether another process, or another ledger of this one, holds that token."""
        return not self._is_stale(self.folder / token)

    def release(self) -> None:
        """Nothing is owned any more. A file that cannot be removed is harmless: the next owner sweeps it."""
        if self._lock is None:
            return
        with contextlib.suppress(OSError):
            (self.folder / self.token).unlink()
        os.close(self._lock)
        self._lock = None
        with contextlib.suppress(OSError):  # not empty: others own as well
            self.folder.rmdir()

    def _take(self) -> int:
        path = self.folder / self.token
        while True:
            try:
                with contextlib.suppress(
                    FileExistsError
                ):  # `exist_ok` would look again, and the folder may be gone then
                    self.folder.mkdir()
                lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except FileNotFoundError:  # another owner, leaving, removed the empty folder in between
                if self.folder.parent.is_dir():
                    continue
                raise
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_open_at(lock, path):
                return lock
            os.close(lock)  # swept between its making and its locking

    def _sweep(self) -> None:
        for path in list(self.folder.iterdir()):
            if path.name != self.token:
                with contextlib.suppress(OSError):  # what cannot be removed harms nobody
                    self._is_stale(path, remove=True)

    @staticmethod
    def _is_stale(path: Path, *, remove: bool = False) -> bool:
        try:
            lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        except PermissionError:  # another person's process: nobody can tell, so it must not be taken over
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if remove:
                path.unlink(missing_ok=True)
        except BlockingIOError:
            return False
        finally:
            os.close(lock)
        return True


def _is_open_at(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)
