"""Lays out the folder that the demo works in: a module without bodies, and its tests."""

from __future__ import annotations

import shutil
from pathlib import Path

from .state import KIT, STATE

_WORLD = Path(__file__).parent / "world"
FILES = (KIT, "test_kit.py")


def lay_out(folder: Path) -> None:
    """Fills an empty or new folder. The notes of the tools stay out of git's sight."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(_WORLD / name, folder / name)
    (folder / ".gitignore").write_text(f"{STATE}*\n__pycache__/\n", encoding="utf-8")
