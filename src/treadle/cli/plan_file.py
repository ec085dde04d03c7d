"""A plan as a file that a person edits: steps as YAML, read as strictly as what a model writes."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.core.errors import ConfigurationError, PlanRefused
from treadle.core.plans import PlanStep, read_steps

if TYPE_CHECKING:
    from treadle.kernel.states import LoopState

MOST_BYTES = 256 * 1024
HEAD = """\
# The plan, a list of steps in order. A step has a title, and may have
#   id      what others call it (default: its number)
#   check   what verifies it: a command, a tool's name, or {tool, args}
#   after   [ids of steps that must be done before]
# Steps that stay as they are keep their progress. Nothing is changed when you leave this as it is.
"""


def read_file(name: str) -> tuple[PlanStep, ...]:
    """The steps in a file, or on stdin for '-'. ConfigurationError, PlanRefused."""
    if name == "-":
        return parsed(sys.stdin.buffer.read(MOST_BYTES + 1), "stdin")
    try:
        with Path(name).open("rb") as file:
            return parsed(file.read(MOST_BYTES + 1), name)
    except OSError as error:
        raise ConfigurationError(f"{name} cannot be read: {error.strerror}.") from error


def parsed(content: bytes, where: str) -> tuple[PlanStep, ...]:
    """The steps in a document. PlanRefused for anything else, with line and column where it is no YAML."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if len(content) > MOST_BYTES:
        raise PlanRefused(where, f"is larger than {MOST_BYTES // 1024} KiB: that is no plan")
    try:
        found: Any = YAML(typ="safe", pure=True).load(content.decode())  # pyright: ignore[reportUnknownMemberType]
    except (YAMLError, ValueError, RecursionError) as error:
        raise PlanRefused(where, f"is no YAML: {' '.join(str(error).split())[:300]}") from error
    if isinstance(found, dict) and set(found) == {"steps"}:  # pyright: ignore[reportUnknownArgumentType]
        found = found["steps"]  # pyright: ignore[reportUnknownVariableType]
    return read_steps(found)


def written(state: LoopState) -> str:
    """The plan for an editor."""
    from ruamel.yaml import YAML

    from treadle.kernel.plan_words import steps_as_written

    yaml = YAML()
    yaml.width = 110
    text = io.StringIO()
    rows = steps_as_written(tuple(step.step for step in state.plan.steps))
    yaml.dump(rows or [{"title": "what is to be done first"}], text)  # pyright: ignore[reportUnknownMemberType]
    return HEAD + text.getvalue()


def edited(state: LoopState, environ: Mapping[str, str]) -> tuple[PlanStep, ...]:
    """What a person makes of the plan in an editor. ConfigurationError where there is none, or it fails."""
    editor = environ.get("VISUAL") or environ.get("EDITOR")
    if not editor:
        raise ConfigurationError(
            "No editor: set VISUAL or EDITOR, or name a file of steps (treadle plan edit EXEC FILE)."
        )
    number, name = tempfile.mkstemp(prefix="treadle-plan-", suffix=".yaml")
    path = Path(name)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(written(state))
        try:
            ended = subprocess.run([*shlex.split(editor), name], check=False)
        except OSError as error:
            raise ConfigurationError(f"The editor {editor!r} cannot be started: {error.strerror}.") from error
        if ended.returncode:
            raise ConfigurationError(
                f"The editor {editor!r} ended with exit code {ended.returncode}; nothing was changed."
            )
        return parsed(path.read_bytes(), "what was edited")
    finally:
        path.unlink(missing_ok=True)
