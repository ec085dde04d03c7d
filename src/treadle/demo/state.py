"""Where the work on a kit stands, from two files of the workspace alone: a run killed at any instant goes on rightly.

Each step of the tools and of the check replaces exactly one of the two, atomically. That a function has been written in
this round is not noted anywhere: it returns something else than when it was checked.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from .kit_file import Function, functions

KIT, STATE = "kit.py", ".kit-state.json"
REFUSALS = 3  # after as many the function is left for the next round


class Notes(msgspec.Struct, frozen=True, kw_only=True):
    """What the code itself does not tell."""

    failing: dict[str, str]  # function -> what it returned when it was last checked; empty: nothing
    tried: dict[str, tuple[str, ...]] = {}  # function -> expressions that a check has found wrong
    reading: str = ""  # the function read last
    refused: dict[str, tuple[str, ...]] = {}  # function -> calls of this round that would have written what cannot be


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Code and notes at one instant."""

    source: str
    kit: dict[str, Function]
    notes: Notes

    @property
    def todo(self) -> list[str]:
        """Functions that this round still has to write, in the order of the file."""
        return [name for name in self.kit if self._open(name)]

    @property
    def reading(self) -> Function | None:
        """The function that has been read and not yet written."""
        return self.kit[self.notes.reading] if self._open(self.notes.reading) else None

    def _open(self, name: str) -> bool:
        failing = self.notes.failing
        unwritten = name in failing and name in self.kit and self.kit[name].expression == failing[name]
        return unwritten and len(self.notes.refused.get(name, ())) < REFUSALS


def load(workspace: Path) -> Standing:
    """How it stands. Before the first check, what has no body counts as failing."""
    source = (workspace / KIT).read_text(encoding="utf-8")
    kit = functions(source)
    try:
        notes = msgspec.json.decode((workspace / STATE).read_bytes(), type=Notes)
    except FileNotFoundError:
        notes = Notes(failing={name: "" for name, function in kit.items() if not function.expression})
    return Standing(source=source, kit=kit, notes=notes)


def note(workspace: Path, notes: Notes) -> None:
    """Keeps the notes."""
    replace_file(workspace / STATE, msgspec.json.format(msgspec.json.encode(notes)))


def next_round(standing: Standing, failing: list[str]) -> Notes:
    """The notes after a check that named these functions. Made again from the same check, they are the same."""
    tried = dict(standing.notes.tried)
    now = {name: standing.kit[name].expression for name in failing if name in standing.kit}
    for name, expression in now.items():
        if expression and expression not in tried.get(name, ()):
            tried[name] = (*tried.get(name, ()), expression)
    return Notes(failing=now, tried=tried)


def replace_file(path: Path, content: bytes) -> None:
    """Old content or new, never a part of it, whenever the process or the machine ends."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f"{STATE}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
