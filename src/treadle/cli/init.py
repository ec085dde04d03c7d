"""`treadle init`: a commented configuration file for a workspace."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from .arguments import Namespace, Parser

TEMPLATE = """\
# What treadle run takes here when a flag does not say otherwise. Keys do not belong in this file.

# model = "anthropic:NAME"          # provider:model; the provider's key comes from the environment
{check}
# max_rounds = 10                   # rounds of acting and checking
# max_turns = 60                    # model calls that act may make, over all rounds
# max_cost = "2.00"                 # US dollars, everything together
# max_time = "30m"                  # active time
# map_budget = 4000                 # tokens for a map of the workspace in the first prompt; 0: none
# protect = ["tests/**"]            # paths that the agent may not write
"""


def parser(name: str) -> Parser:
    """Its arguments."""
    text = "Write DIR/.treadle/config.toml with the defaults as comments and a guess at the check. Never overwrites."
    made = Parser(name, init, text)
    made.add_argument("folder", metavar="DIR", nargs="?", type=Path, default=Path(), help="default: the current folder")
    return made


def init(given: Namespace) -> int:
    """Writes the file."""
    from treadle.core.errors import ConfigurationError
    from treadle.settings import WORKSPACE_FILE

    folder: Path = given.folder
    if not folder.is_dir():
        raise ConfigurationError(f"{folder} is no folder. Name one: treadle init DIR.")
    path = folder / WORKSPACE_FILE
    guess = guessed_check(folder)
    line = f"check = {json.dumps(guess)}" if guess else '# check = "make test"'
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.format(check=f"{line:<36}# exit code 0 accepts"))
    except FileExistsError as error:
        raise ConfigurationError(f"{path} is there already; it is left as it is.") from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}.") from error
    said = f"the check is {guess!r}" if guess else "no check was found: name one"
    sys.stderr.write(f"treadle: wrote {path}; {said}.\n")
    return 0


def guessed_check(folder: Path) -> str:
    """The command that most likely runs this project's tests; empty where none shows."""
    if _has_script(folder / "package.json"):
        return "npm test"
    if (folder / "Cargo.toml").is_file():
        return "cargo test"
    if (folder / "go.mod").is_file():
        return "go test ./..."
    if any(
        (folder / name).is_file() for name in ("pytest.ini", "conftest.py", "tox.ini", "setup.py", "pyproject.toml")
    ):
        return "pytest -q"
    if any(folder.glob("test_*.py")) or any(folder.glob("tests/test_*.py")):
        return "pytest -q"
    if re.search(r"^test\s*:", _text(folder / "Makefile"), re.MULTILINE):
        return "make test"
    return ""


def _has_script(file: Path) -> bool:
    try:
        package: object = json.loads(_text(file) or "{}")
    except ValueError:
        return False
    scripts: object = package.get("scripts") if isinstance(package, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return isinstance(scripts, dict) and "test" in scripts


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
