"""A sandbox for commands by bubblewrap: the workspace and a fresh /tmp can be written, everything else only read."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from treadle.core.errors import ConfigurationError

_CHECK_S = 10.0
_SECRET_FOLDERS = (".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".config/gh", ".config/gcloud")
_SECRET_FILES = (".netrc", ".git-credentials", ".pypirc", ".npmrc")


class Sandbox:
    """Wraps commands; no network unless asked for. ConfigurationError where bubblewrap is missing or cannot work."""

    def __init__(self, environ: Mapping[str, str], *, network: bool = False) -> None:
        found = shutil.which("bwrap", path=environ.get("PATH"))
        if found is None:
            raise ConfigurationError(
                "The sandbox needs bubblewrap (bwrap), which is not installed. Install it, or run without."
            )
        self._program, self._network = found, network
        self._home = Path(environ.get("HOME", "/nonexistent"))
        _check((*self._isolation(), "true"))

    def describe(self) -> str:
        """How far a sandboxed command reaches."""
        network = "the network is open" if self._network else "no network"
        return (
            f"sandboxed: only the workspace and a fresh /tmp can be written, {network}, its processes cannot see others"
        )

    def prefix(self, root: Path) -> tuple[str, ...]:
        """What goes before a command that works in `root`."""
        writable = ("--bind", str(root), str(root))
        git = [("--ro-bind-try", str(root / part), str(root / part)) for part in (".git/hooks", ".git/config")]
        return (*self._isolation(), *writable, *(word for triple in git for word in triple), "--chdir", str(root), "--")

    def _isolation(self) -> tuple[str, ...]:
        words = [self._program, "--die-with-parent", "--new-session", "--unshare-all"]
        if self._network:
            words.append("--share-net")
        words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108 - a fresh one
        for folder in _SECRET_FOLDERS:
            if (self._home / folder).is_dir():
                words += ["--tmpfs", str(self._home / folder)]
        for file in _SECRET_FILES:
            if (self._home / file).is_file():
                words += ["--ro-bind", "/dev/null", str(self._home / file)]
        return tuple(words)


def _check(argv: tuple[str, ...]) -> None:
    """Many systems have the program but forbid what it does."""
    try:
        tried = subprocess.run(argv, capture_output=True, timeout=_CHECK_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"The sandbox does not work here: {error}. Run without it.") from error
    if tried.returncode != 0:
        message = tried.stderr.decode(errors="replace").strip()
        raise ConfigurationError(
            f"The sandbox does not work here: {message}. Allow user namespaces, or run without it."
        )
