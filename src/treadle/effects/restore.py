"""Puts files of a workspace back from a staged copy: each whole or not at all, and nothing through a symbolic link."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple


class Restored(NamedTuple):
    """Which paths were put back, and which could not be, with the reason. Relative to the workspace."""

    paths: list[str]
    failed: dict[str, str]


def restore(root: Path, stage: Path, removals: Iterable[str], installs: Iterable[str]) -> Restored:
    """Removes files, and folders that this leaves empty; then moves files from `stage`, laid out as under `root`."""
    done = Restored([], {})

    def attempt(path: str, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            done.failed[path] = error.strerror or str(error)
        else:
            done.paths.append(path)

    for path in removals:
        attempt(path, lambda path=path: _remove(root, path))
    for path in installs:
        attempt(path, lambda path=path: _install(root, stage / path, path))
    return done


def _remove(root: Path, path: str) -> None:
    target = root / path
    if not _inside_real_folders(root, target):
        return
    target.unlink(missing_ok=True)
    for folder in target.parents:
        if folder == root or any(folder.iterdir()):
            return
        folder.rmdir()


def _install(root: Path, staged: Path, path: str) -> None:
    target = root / path
    _make_folders(root, target.parent)
    if target.is_dir() and not target.is_symlink():
        target.rmdir()  # fails unless it is empty
    if not staged.is_symlink():
        _take_permissions(staged, target)
        _sync(staged)
    try:
        staged.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        beside = target.with_name(f".treadle-revert-{sha256(os.fsencode(path)).hexdigest()[:16]}")
        beside.unlink(missing_ok=True)  # of a revert that was killed
        shutil.copy2(staged, beside, follow_symlinks=False)
        if not beside.is_symlink():
            _sync(beside)
        beside.replace(target)


def _inside_real_folders(root: Path, target: Path) -> bool:
    folders = [folder for folder in target.parents if folder.is_relative_to(root)]
    return all(folder.is_dir() and not folder.is_symlink() for folder in folders if folder != root)


def _make_folders(root: Path, folder: Path) -> None:
    if folder == root:
        return
    _make_folders(root, folder.parent)
    if folder.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, f"{folder.relative_to(root)} is a symbolic link")
    folder.mkdir(exist_ok=True)


def _take_permissions(staged: Path, target: Path) -> None:
    """git knows of the execute bit alone; the rest is as the file that is there has it."""
    if target.is_symlink() or not target.is_file():
        return
    mode = stat.S_IMODE(target.stat().st_mode)
    executable = staged.stat().st_mode & 0o100
    staged.chmod(mode | (mode & 0o444) >> 2 if executable else mode & ~0o111)


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
