"""The files of a workspace as paths, sizes and kinds: what git would list, or else a walk that honours .gitignore."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from typing import TYPE_CHECKING, Literal, NamedTuple

from .languages import EXTENSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pathspec import GitIgnoreSpec

Kind = Literal["source", "test", "example", "docs", "setup", "other", "vendored", "asset"]

MOST_BYTES = 1 << 20  # larger files are known by path alone
GIT_SECONDS = 60.0
GIT = (
    "git",
    "--no-pager",
    "--literal-pathspecs",
    *("-c", "core.quotepath=off", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false"),
)
GIT_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

SCRIPTS = frozenset(
    "sh bash zsh fish vue svelte kt kts swift scala php cs fs lua zig ex exs erl hs ml mli clj pl pm pyx pxd dart jl nim"
    " groovy m mm sql proto graphql y yy l ll asm s cu r".split()
)
SOURCE = SCRIPTS | frozenset(EXTENSIONS)
ASSETS = frozenset(
    "png jpg jpeg gif ico svg webp bmp pdf zip gz tgz bz2 xz 7z tar jar war whl woff woff2 ttf eot otf mp3 mp4 mov wav"
    " ogg webm so dylib dll exe o a class pyc wasm db sqlite bin dat pack idx snap lock map".split()
)
DOCUMENTS = frozenset("md rst txt adoc mdx org tex man 1 3 5 7 html htm ipynb".split())

VENDORED = re.compile(
    r"(^|/)(vendor|_vendor|vendored|third_party|thirdparty|node_modules|bower_components|dist|\.yarn)/"
    r"|\.min\.\w+$|(^|/)(package-lock\.json|pnpm-lock\.yaml|uv\.lock|go\.sum)$|_pb2\.pyi?$|\.pb\.(go|cc|h)$",
    re.I,
)
TEST = re.compile(
    r"(^|/)(tests?|testing|testdata|__tests__|__mocks__|specs?|e2e|cypress|fixtures|testsuite)/"
    r"|(^|/)(test_[^/]*\.py|tests?\.\w+|conftest\.py|[^/]*(_tests?|_spec|[.-](test|spec|test-d))\.\w+|\w*Tests?\.(java|kt|cs))$",
    re.I,
)
EXAMPLE = re.compile(
    r"(^|/)(examples?|samples?|demos?|bench(mark)?s?|benches|play(ground)?|scripts?|tools?|websites?|sites?)/", re.I
)
DOCS = re.compile(r"(^|/)(docs?|documentation|man)/|(^|/)(readme|changelog|changes|history|license|contributing|authors)\b", re.I)
SETUP = re.compile(
    r"(^|/)(setup\.(py|cfg)|pyproject\.toml|package\.json|go\.mod|cargo\.toml|pom\.xml|build\.gradle(\.kts)?|makefile"
    r"|makefile\.am|cmakelists\.txt|configure\.ac|gemfile|rakefile|[^/]*\.gemspec|dockerfile|readme(\.\w+)?)$",
    re.I,
)


class ScannedFile(NamedTuple):
    """One file: its path from the root with `/`, undecodable bytes as surrogates; `mtime_ns` is its time of change.

    `readable` is false for links and for files too large: they are known by path alone.
    """

    path: str
    size: int
    mtime_ns: int
    kind: Kind
    readable: bool


class Scan(NamedTuple):
    """All files in order of their paths. `git` says whether git listed them; `unreadable` counts folders that could not be."""

    files: list[ScannedFile]
    git: bool
    unreadable: int


def kind_of(path: str) -> Kind:
    """What a file is for, from its path alone."""
    extension = path.rsplit(".", 1)[-1].lower() if "." in path.rsplit("/", 1)[-1] else ""
    if VENDORED.search(path):
        return "vendored"
    if extension in ASSETS:
        return "asset"
    if SETUP.search(path) and extension not in ("py", "gemspec"):
        return "setup"
    if TEST.search(path):
        return "test"
    if DOCS.search(path) or extension in DOCUMENTS:
        return "docs"
    if extension in SOURCE:
        return "example" if EXAMPLE.search(path) else "source"
    return "other"


def run_git(root: Path, *arguments: str, seconds: float = GIT_SECONDS) -> bytes | None:
    """What a git command prints; nothing where git is missing, refuses, or takes too long."""
    try:
        done = subprocess.run(
            [*GIT, *arguments],
            cwd=root,
            env={**os.environ, **GIT_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def scan(root: Path) -> Scan:
    """Lists the files below a folder. Links are not followed, and what is no file (pipes, sockets) is left out."""
    listed = _git_paths(root)
    unreadable: list[OSError] = []
    paths = _walk(root, unreadable) if listed is None else iter(listed)
    base = os.fsencode(root)
    files = [file for path in paths if (file := _file(base, path))]
    files.sort()
    return Scan(files, listed is not None, len(unreadable))


def _git_paths(root: Path) -> list[str] | None:
    out = run_git(root, "ls-files", "-co", "--exclude-standard", "--deduplicate", "-z")
    if out is None:
        return None
    paths = [os.fsdecode(path) for path in out.split(b"\0") if path]
    if not paths and run_git(root, "rev-parse", "--show-prefix") != b"\n":
        return None  # a folder that the repository around it ignores
    return paths


def _file(base: bytes, path: str) -> ScannedFile | None:
    try:
        found = os.lstat(os.path.join(base, os.fsencode(path)))
    except OSError:
        return None  # deleted since it was listed, or below a folder that cannot be entered
    if stat.S_ISLNK(found.st_mode):
        return ScannedFile(path, found.st_size, found.st_mtime_ns, "other", readable=False)
    if not stat.S_ISREG(found.st_mode):
        return None
    return ScannedFile(path, found.st_size, found.st_mtime_ns, kind_of(path), found.st_size <= MOST_BYTES)


def _walk(root: Path, unreadable: list[OSError]) -> Iterator[str]:
    specs: dict[str, GitIgnoreSpec | None] = {}
    top = os.fspath(root)
    for folder, folders, names in os.walk(top, onerror=unreadable.append):
        prefix = os.path.relpath(folder, top).replace(os.sep, "/")
        prefix = "" if prefix == "." else prefix + "/"
        specs[prefix] = _ignore_file(folder) if ".gitignore" in names else None
        folders[:] = sorted(
            name for name in folders if name != ".git" and not _ignored(specs, prefix, name + "/")
        )
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*names, *links):
            if not _ignored(specs, prefix, name):
                yield prefix + name


def _ignore_file(folder: str) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="replace") as lines:
            return GitIgnoreSpec.from_lines(lines)
    except (OSError, ValueError):
        return None  # a broken pattern hides nothing


def _ignored(specs: dict[str, GitIgnoreSpec | None], prefix: str, name: str) -> bool:
    """Whether the nearest .gitignore with a say, from the file's own folder upwards, excludes it."""
    at = prefix
    while True:
        spec = specs.get(at)
        if spec is not None:
            included = spec.check_file(prefix[len(at) :] + name).include
            if included is not None:
                return included
        if not at:
            return False
        at = at[: at.rstrip("/").rfind("/") + 1]
