"""The files of a workspace as paths, sizes and kinds: what git would list, or else a walk that honours .gitignore."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import threading
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from .languages import EXTENSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pathspec import GitIgnoreSpec

Kind = Literal["source", "test", "example", "docs", "setup", "other", "vendored", "asset"]

MOST_BYTES = 1 << 20  # larger files are known by path alone
MOST_FILES = 200_000  # more are not looked at: a folder of so many is hardly the one that was meant
GIT_SECONDS = 60.0
GIT = (
    "git",
    "--no-pager",
    "--literal-pathspecs",
    *(
        "-c",
        "safe.directory=*",
        "-c",
        "core.quotepath=off",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "log.showSignature=false",
    ),
)
GIT_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
GIT_INHERITED = ("GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH")

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

NEVER = frozenset(
    ".git .hg .svn .venv .tox __pycache__ node_modules".split()
)  # folders of machines: not looked into unless git tracks them

FOLDERS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        "vendored",
        re.compile(
            r"(^|/)(vendor|_vendor|vendored|third_party|thirdparty|node_modules|bower_components|dist|\.yarn)(/|$)",
            re.IGNORECASE,
        ),
    ),
    (
        "test",
        re.compile(
            r"(^|/)(tests?|testing|testdata|__tests__|__mocks__|specs?|e2e|cypress|fixtures|testsuite)(/|$)",
            re.IGNORECASE,
        ),
    ),
    ("docs", re.compile(r"(^|/)(docs?|documentation|man)(/|$)", re.IGNORECASE)),
    (
        "example",
        re.compile(
            r"(^|/)(examples?|samples?|demos?|bench(mark)?s?|benches|play(ground)?|scripts?|tools?|websites?|sites?)(/|$)",
            re.IGNORECASE,
        ),
    ),
)
LOCKS = frozenset("package-lock.json pnpm-lock.yaml go.sum".split())
GENERATED = re.compile(r"\.min\.\w+$|_pb2\.pyi?$|\.pb\.(go|cc|h)$")
SETUP = frozenset(
    "setup.cfg pyproject.toml package.json go.mod cargo.toml pom.xml build.gradle build.gradle.kts makefile makefile.am"
    " cmakelists.txt configure.ac gemfile rakefile dockerfile".split()
)
TEST_NAME = re.compile(
    r"test_.*\.py|tests?\.\w+|conftest\.py|.*(_tests?|_spec|[.-](test|spec|test-d))\.\w+|\w*tests?\.(java|kt|cs)"
)
DOCS_NAMES = frozenset("readme changelog changes history license contributing authors".split())


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
    """Files in order of their paths. `git` says whether git listed them; `unreadable` counts folders that could not be."""

    files: list[ScannedFile]
    git: bool
    unreadable: int


def kind_of(path: str) -> Kind:
    """What a file is for, from its path alone."""
    folder, _, name = path.rpartition("/")
    name = name.lower()
    stem, _, extension = name.rpartition(".")
    within = _kind_of_folder(folder)
    if within == "vendored" or name in LOCKS or GENERATED.search(name):
        return "vendored"
    if extension in ASSETS:
        return "asset"
    if name in SETUP:
        return "setup"
    if within == "test" or (("test" in name or "spec" in name) and TEST_NAME.fullmatch(name)):
        return "test"
    if within == "docs" or extension in DOCUMENTS or (stem or name) in DOCS_NAMES:
        return "docs"
    if extension in SOURCE:
        return "example" if within == "example" else "source"
    return "other"


@lru_cache(maxsize=20_000)
def _kind_of_folder(folder: str) -> Kind | None:
    return next((kind for kind, pattern in FOLDERS if pattern.search(folder)), None)


def start_git(root: Path, *arguments: str) -> Callable[[], bytes | None]:
    """Starts a git command, and gives a function that waits for what it prints.

    Nothing comes back where git is missing, refuses, or takes longer than `GIT_SECONDS`.
    """
    inherited = os.environ  # noqa: TID251 - handed on to git, no setting is read
    own = {name: value for name, value in inherited.items() if not name.startswith("GIT_") or name in GIT_INHERITED}
    try:
        running = subprocess.Popen(
            [*GIT, *arguments],
            cwd=root,
            env=own | GIT_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return lambda: None
    printed: list[bytes] = []

    def drain() -> None:
        with running:
            try:
                printed.append(running.communicate(timeout=GIT_SECONDS)[0])
            except subprocess.TimeoutExpired:
                running.kill()

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()

    def finish() -> bytes | None:
        reader.join()
        return printed[0] if printed and running.returncode == 0 else None

    return finish


def run_git(root: Path, *arguments: str) -> bytes | None:
    """What a git command prints, as `start_git` gives it."""
    return start_git(root, *arguments)()


def scan(root: Path) -> Scan:
    """Lists the files below a folder. Links are not followed, and what is no file (pipes, sockets) is left out."""
    listed = git_paths(root)
    unreadable: list[OSError] = []
    paths = _walk(root, unreadable) if listed is None else iter(listed)
    base = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        files = [file for path in islice(paths, MOST_FILES) if (file := _file(base, path))]
    finally:
        os.close(base)
    files.sort()
    return Scan(files, listed is not None, len(unreadable))


def git_paths(root: Path) -> list[str] | None:
    """The paths that git tracks, or would if they were added; None where the folder is in no repository."""
    never = (f"--exclude={name}/" for name in sorted(NEVER))  # of what is not tracked
    out = run_git(root, "ls-files", "-co", "--exclude-standard", *never, "--deduplicate", "-z")
    if out is None:
        return None
    paths = [os.fsdecode(path) for path in out.split(b"\0") if path]
    if not paths and run_git(root, "rev-parse", "--show-prefix") != b"\n":
        return None  # a folder that the repository around it ignores
    return paths


def _file(base: int, path: str) -> ScannedFile | None:
    try:
        found = os.lstat(path, dir_fd=base)
    except OSError:
        return None  # deleted since it was listed, or below a folder that cannot be entered
    if stat.S_ISLNK(found.st_mode):
        return ScannedFile(path, found.st_size, found.st_mtime_ns, "other", readable=False)
    if not stat.S_ISREG(found.st_mode):
        return None
    return ScannedFile(path, found.st_size, found.st_mtime_ns, kind_of(path), found.st_size <= MOST_BYTES)


def _walk(root: Path, unreadable: list[OSError]) -> Iterator[str]:
    specs: dict[str, GitIgnoreSpec | None] = {}
    folders = [""]
    while folders:
        prefix = folders.pop()
        try:
            with os.scandir(root / prefix) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            unreadable.append(error)
            continue
        has_rules = any(
            entry.name == ".gitignore" and entry.is_file() for entry in entries
        )  # no pipe, which would be waited for
        specs[prefix] = _ignore_file(root / prefix) if has_rules else None
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                if not _ignored(specs, prefix, entry.name):
                    yield prefix + entry.name
            elif entry.name not in NEVER and not _ignored(specs, prefix, entry.name + "/"):
                folders.append(f"{prefix}{entry.name}/")


def _ignore_file(folder: Path) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines((folder / ".gitignore").read_text("utf-8", "replace").splitlines())
    except (OSError, ValueError):
        return None  # what cannot be read hides nothing


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
