#!/usr/bin/env python3
"""Says which files and functions have grown too long to be read in one go, and fails above the limits.

    python tools/sizes.py [PATH ...]

Without paths it measures src, tools, bench, examples and tests of the current folder. A function counts from its `def`
to its last line, docstring and nested functions included. Tests are held to the file limit only: a long scenario is
clearest in one piece.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FILE_AIM, FILE_LIMIT = 150, 500  # lines
FUNCTION_AIM, FUNCTION_LIMIT = 45, 60  # lines
PLACES = ("src", "tools", "bench", "examples", "tests")


class Size(NamedTuple):
    """One measured thing: where it is, how long it is, and what it should be and may be at most."""

    where: str
    lines: int
    aim: int
    limit: int


def measure(path: Path, *, functions: bool) -> Iterator[Size]:
    """The file itself and, where asked, every function in it. SyntaxError for a file that is no Python."""
    text = path.read_text(encoding="utf-8")
    yield Size(str(path), text.count("\n"), FILE_AIM if functions else FILE_LIMIT, FILE_LIMIT)
    if functions:
        for node in ast.walk(ast.parse(text, filename=str(path))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                yield Size(f"{path}:{node.lineno} {node.name}", lines, FUNCTION_AIM, FUNCTION_LIMIT)


def sources(arguments: list[str]) -> Iterator[tuple[Path, bool]]:
    """The files to measure, each with whether its functions count."""
    for base in map(Path, arguments or PLACES):
        for path in [base] if base.is_file() else sorted(base.rglob("*.py")):
            yield path, "tests" not in path.parts


def main(arguments: list[str]) -> int:
    """Prints what is over an aim or a limit. The exit status is 1 when something is over a limit."""
    sizes = [size for path, functions in sources(arguments) for size in measure(path, functions=functions)]
    over = [size for size in sizes if size.lines > size.limit]
    for size in sorted((s for s in sizes if s.lines > s.aim), key=lambda s: (s.lines <= s.limit, s.where)):
        grade = "error" if size.lines > size.limit else "warning"
        print(f"{grade}: {size.where}: {size.lines} lines (aim {size.aim}, limit {size.limit})")
    print(f"sizes: {len(sizes)} files and functions, {len(over)} over the limit")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
