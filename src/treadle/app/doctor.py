"""What Treadle needs on this machine, looked at one by one, each with what to do about it. Only names of keys are ever shown."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from treadle.core.errors import ConfigurationError, TreadleError
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.settings import Settings

from .stores import is_absent, open_store

Grade = Literal["ok", "warn", "fail"]
LITTLE_BYTES, TOO_LITTLE_BYTES = 1_000_000_000, 100_000_000
LEAST_PYTHON = (3, 11)


class Finding(NamedTuple):
    """One thing that was looked at. `advice` is empty where there is nothing to do."""

    name: str
    grade: Grade
    found: str
    advice: str = ""


async def examine(settings: Settings, store: str, model: str | None, base_url: str | None) -> list[Finding]:
    """All findings. `model` and `base_url` are looked at where they are given."""
    found = [
        _python(),
        _program("git", "warn", "without it there is no diff, no revert and no note of what changed", "Install git."),
        _program("rg", "warn", "search is slower without ripgrep", "Install ripgrep."),
        _program("bwrap", "warn", "--sandbox needs bubblewrap", "Install bubblewrap, or do without --sandbox."),
        _space(settings.state_dir),
        await _store(store),
        _keys(settings),
    ]
    if model:
        found.append(_model(settings, model, base_url))
    return found


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < LEAST_PYTHON:
        return Finding("python", "fail", version, "Use Python 3.11 or newer.")
    return Finding("python", "ok", version)


def _program(name: str, missing: Grade, why: str, advice: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(name, missing, f"not found: {why}", advice)
    try:
        ended = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(name, missing, f"{path} does not run: {error}", advice)
    first = (ended.stdout or ended.stderr).strip().splitlines()
    return Finding(name, "ok", first[0] if first else path)


def _space(state_dir: Path) -> Finding:
    there = state_dir
    while not there.exists() and there != there.parent:
        there = there.parent
    free = shutil.disk_usage(there).free
    text = f"{free / 1e9:,.1f} GB free for {state_dir}"
    if not os.access(there, os.W_OK | os.X_OK):
        return Finding("disk", "fail", f"{there} cannot be written", "Mend its permissions, or set TREADLE_STATE.")
    if free < TOO_LITTLE_BYTES:
        return Finding("disk", "fail", text, "Free some space: runs stop when the store is full.")
    if free < LITTLE_BYTES:
        return Finding("disk", "warn", text, "Free some space soon.")
    return Finding("disk", "ok", text)


async def _store(url: str) -> Finding:
    try:
        if is_absent(url):
            return Finding("store", "ok", f"{url}: none yet, the first run makes it")
        ledger = await open_store(url, NO_CRASH_POINTS, create=False)
    except TreadleError as error:
        return Finding("store", "fail", str(error), "Mend it, or name another: --store sqlite:///FILE.")
    try:
        faults = await ledger.verify()
        rows = await ledger.rows()
    except TreadleError as error:
        return Finding("store", "fail", str(error), "Restore it from a copy, or name another.")
    finally:
        await ledger.close()
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return Finding("store", "fail", f"{url}: {faults[0]}{more}", "Restore it from a copy, or name another.")
    return Finding("store", "ok", f"{url}: sound, {len(rows)} executions")


def _keys(settings: Settings) -> Finding:
    from treadle.models.providers import PROVIDERS

    known = [variable for row in PROVIDERS.values() for variable in row.key]
    there = [variable for variable in dict.fromkeys(known) if settings.environ.get(variable, "").strip()]
    if there:
        return Finding("keys", "ok", ", ".join(there))
    return Finding(
        "keys",
        "warn",
        "no provider's key is set",
        "Set one (such as ANTHROPIC_API_KEY), or use a server of your own with --base-url.",
    )


def _model(settings: Settings, model: str, base_url: str | None) -> Finding:
    from treadle.models.registry import model_from_name

    now_us: Callable[[], int] = lambda: 0  # noqa: E731 - nothing is priced here
    try:
        made = model_from_name(model, base_url=base_url, now_us=now_us, environ=settings.environ)
    except ConfigurationError as error:
        return Finding("model", "fail", str(error), "Name a model that can be used: --model provider:model.")
    return Finding("model", "ok", f"{made.name}: can be addressed; no request was sent")
