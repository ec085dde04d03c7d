"""`treadle lint`: a loop file against the patterns, before anything runs or costs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.core.errors import ConfigurationError

from .arguments import Namespace, Parser

if TYPE_CHECKING:
    from treadle.spec.lint import Lint

REFUSED = 2


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name,
        check,
        "Check a loop file: what cannot be read, an input that nothing produces, and pitfalls of the patterns that it runs\n"
        "into, each with its line. Nothing is started and no model is asked.\n\n"
        "Exit codes: 0 nothing wrong, warnings or not; 2 something is.",
    )
    made.add_argument("file", metavar="FILE", type=Path, help="a loop file (YAML); '-' reads it from stdin")
    return made.json()


def check(given: Namespace) -> int:
    """Prints what was found. ConfigurationError for a file that cannot be read."""
    from treadle.spec.lint import lint

    text = _text(given.file)
    found = lint(text)
    refused = any(one.severity == "error" for one in found)
    if given.json:
        from .output import print_json

        print_json({"file": str(given.file), "ok": not refused, "findings": [document(one) for one in found]})
    else:
        _print(str(given.file), found)
    return REFUSED if refused else 0


def document(one: Lint) -> dict[str, Any]:
    """What --json prints of a finding. Lines and columns count from 1."""
    return {
        "severity": one.severity,
        "line": one.finding.line,
        "column": one.finding.column,
        "path": one.finding.path,
        "message": one.finding.message,
        "pattern": one.pattern,
    }


def _text(file: Path) -> str:
    try:
        if str(file) == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        return file.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}. Name a loop file.") from error


def _print(name: str, found: tuple[Lint, ...]) -> None:
    from treadle.core.spoken import count, plain

    for one in found:
        place = f"{name}:{one.finding.line}:{one.finding.column}"
        more = f" ({one.pattern})" if one.pattern else ""
        sys.stdout.write(plain(f"{place}: {one.severity}: {one.finding.message}{more}") + "\n")
    errors = sum(one.severity == "error" for one in found)
    warnings = len(found) - errors
    if not found:
        sys.stdout.write(f"{name}: nothing to say against it.\n")
    else:
        hint = " treadle patterns ID says more of a pattern." if any(one.pattern for one in found) else ""
        sys.stdout.write(f"{count(errors, 'error')}, {count(warnings, 'warning')}.{hint}\n")
