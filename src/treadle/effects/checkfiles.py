"""Which files a check command reads, told from its words alone: an acceptance whose act changed some of them says so (AG-29).

A guess by convention, never a decision. A changed path counts when it is

- a file that the command names, with or without `--option=`, a pytest node id behind it, or as a module after `-m`;
- inside a folder that the command names, where the program is a test runner: its arguments are where tests are;
- a test by its name or folder: `test_*.py`, `*_test.go`, `*.spec.ts`, `conftest.py`, `tests/`, `__tests__/` and so on;
- a file that configures the program: `pyproject.toml` for pytest, `package.json` for npm, `Makefile` for make and so on.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import PurePosixPath
from posixpath import normpath, relpath

_TEST_NAMES = (
    *("test_*.py", "*_test.py", "conftest.py", "*_test.go", "*_spec.rb", "*_test.rb", "*test.php", "*tests.cs"),
    *("*.test.[cm][jt]s", "*.test.[jt]s*", "*.spec.[cm][jt]s", "*.spec.[jt]s*", "*_test.c*", "*_test.exs"),
    *("*test.java", "*tests.java", "*test.kt", "*.snap", "*.bats", "spec_helper.rb"),
)
_TEST_FOLDERS = frozenset("test tests __tests__ __snapshots__ e2e testdata".split())
_PYTHON = "pyproject.toml setup.cfg tox.ini"
_NODE = "package.json tsconfig*.json"
_CONFIGURES: dict[str, str] = {
    "pytest": f"{_PYTHON} pytest.ini .pytest.ini .coveragerc",
    "tox": f"{_PYTHON} pytest.ini",
    "nox": f"{_PYTHON} noxfile.py pytest.ini",
    "python": f"{_PYTHON} pytest.ini",
    "uv": f"{_PYTHON} pytest.ini uv.toml uv.lock",
    "poetry": f"{_PYTHON} pytest.ini poetry.lock",
    "ruff": "pyproject.toml ruff.toml .ruff.toml",
    "mypy": "pyproject.toml setup.cfg mypy.ini .mypy.ini",
    "pyright": "pyproject.toml pyrightconfig.json",
    "npm": f"{_NODE} package-lock.json",
    "npx": _NODE,
    "pnpm": f"{_NODE} pnpm-lock.yaml",
    "yarn": f"{_NODE} yarn.lock",
    "bun": _NODE,
    "node": _NODE,
    "jest": f"{_NODE} jest.config.*",
    "vitest": f"{_NODE} vitest.config.* vite.config.*",
    "playwright": f"{_NODE} playwright.config.*",
    "eslint": "package.json eslint.config.* .eslintrc*",
    "tsc": "tsconfig*.json",
    "make": "Makefile makefile GNUmakefile *.mk",
    "just": "justfile Justfile .justfile",
    "cargo": "Cargo.toml Cargo.lock build.rs clippy.toml",
    "go": "go.mod go.sum",
    "gradle": "build.gradle* settings.gradle* gradle.properties",
    "mvn": "pom.xml",
    "cmake": "CMakeLists.txt CMakePresets.json *.cmake",
    "ctest": "CMakeLists.txt CTestTestfile.cmake",
    "rake": "Rakefile Gemfile Gemfile.lock",
    "rspec": ".rspec Gemfile Gemfile.lock",
    "phpunit": "phpunit.xml* composer.json",
    "dotnet": "*.csproj *.sln Directory.Build.props",
    "mix": "mix.exs mix.lock",
    "pre-commit": ".pre-commit-config.yaml",
}
_RUNNERS = frozenset("pytest jest vitest playwright rspec phpunit ctest bats unittest".split())
_ALIASES = {"py.test": "pytest", "python3": "python", "gradlew": "gradle", "mvnw": "mvn", "gmake": "make"}
_VERSIONED = re.compile(r"(python)\d[\d.]*$")


def reads(command: str | Sequence[str], workspace: str) -> Callable[[str], bool]:
    """Says of a workspace-relative path whether the check probably reads that file. Looks at no file itself."""
    words = _words(command)
    programs = {_program(word) for word in words}
    named = {path for word in words for path in _paths(word, workspace)} | _modules(words)
    folders = tuple(f"{path}/" for path in named) if programs & _RUNNERS else ()
    settings = {pattern for program in programs for pattern in _CONFIGURES.get(program, "").split()}

    def matches(path: str) -> bool:
        pure = PurePosixPath(path)
        return (
            path in named
            or path.startswith(folders)
            or any(fnmatchcase(path, pattern) for pattern in named if _is_pattern(pattern))
            or not _TEST_FOLDERS.isdisjoint(part.lower() for part in pure.parts[:-1])
            or any(fnmatchcase(pure.name.lower(), pattern) for pattern in _TEST_NAMES)
            or any(fnmatchcase(pure.name, pattern) for pattern in settings)
        )

    return matches


def _words(command: str | Sequence[str]) -> list[str]:
    if not isinstance(command, str):
        return [word for part in command for word in (part, *(_words(part) if " " in part else ()))]  # such as sh -c
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # quotes that only the shell can pair
        return command.split()


def _program(word: str) -> str:
    name = PurePosixPath(word).name
    name = _VERSIONED.sub(r"\1", name)
    return _ALIASES.get(name, name)


def _paths(word: str, workspace: str) -> list[str]:
    """Paths in the workspace that a word may stand for."""
    candidates = [word, word.partition("=")[2], word.partition("::")[0]]
    found: list[str] = []
    for candidate in candidates:
        if not candidate or candidate.startswith("-"):
            continue
        path = relpath(candidate, workspace) if candidate.startswith("/") else normpath(candidate)
        if path != "." and not path.startswith(".."):
            found.append(path)
    return found


def _modules(words: list[str]) -> set[str]:
    names = [after for before, after in pairwise(words) if before == "-m"]
    paths = [name.replace(".", "/") for name in names]
    return {f"{path}{end}" for path in paths for end in (".py", "/__main__.py")}


def _is_pattern(path: str) -> bool:
    return any(character in path for character in "*?[")
