"""Where the trees of a workspace are kept, and the one way in which git is run for them.

Every workspace has a private git folder with an index, ignore rules and attributes of its own. In a repository, objects
and the refs that keep them alive go to that repository; elsewhere everything stays in the private folder. Nothing else
of a repository is written, none of its hooks runs, and none of its filters, line-end or encoding rules is applied:
files are kept byte for byte.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from anyio import to_thread

from treadle.core.errors import ScopeError

SKIPPED = (  # typical caches, where neither the repository's index nor its ignore rules say otherwise
    *("__pycache__/", ".venv/", "node_modules/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/"),
    *(".tox/", ".nox/", ".treadle-revert-*"),
)
QUIET = (  # for looking into the user's repository, where its own configuration holds
    *("-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "core.logAllRefUpdates=false", "-c", "gc.auto=0"),
)
_CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tbare = false
\thooksPath = /dev/null
\texcludesFile = /dev/null
\tattributesFile = /dev/null
\tautocrlf = false
\tfsmonitor = false
\tsplitIndex = false
\tuntrackedCache = false
\tfsync = loose-object
\tfsyncMethod = batch
[gc]
\tauto = 0
[advice]
\taddEmbeddedRepo = false
"""
_SHA256 = "[extensions]\n\tobjectFormat = sha256\n"
_ATTRIBUTES = "* !text !eol !crlf !filter !ident !working-tree-encoding\n"
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Treadle"), ("EMAIL", "treadle@localhost"), ("DATE", "@0 +0000"))
}
_ALONE = _IDENTITY | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
_INHERITED = ("GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH")
_LEFTOVER_AGE_S = 86_400


class GitFailed(ScopeError):
    """git refused."""


class Answer(NamedTuple):
    """What git said."""

    code: int
    out: bytes
    err: bytes


class Git:
    """Runs git with an environment of which nothing is left that git takes for orders: Treadle may run in a hook."""

    def __init__(self, environ: Mapping[str, str], timeout_s: float) -> None:
        kept = {name: value for name, value in environ.items() if not name.startswith("GIT_") or name in _INHERITED}
        self.environ = kept | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
        self._timeout_s = timeout_s

    async def run(
        self,
        *arguments: str,
        cwd: str,
        variables: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        ok: Sequence[int] = (0,),
    ) -> Answer:
        """GitFailed for an exit code not in `ok`; ScopeError where git is not installed or takes too long."""
        env = {**self.environ, **(variables or {})}
        # An empty input would leave git with our own stdin: at a terminal it would wait for what a person types.
        given: dict[str, Any] = {"input": stdin} if stdin else {"stdin": subprocess.DEVNULL}
        try:
            with anyio.fail_after(self._timeout_s):
                done = await anyio.run_process(
                    ["git", *arguments], **given, check=False, cwd=cwd, env=env, start_new_session=True
                )
        except FileNotFoundError as error:
            raise ScopeError("git is not installed" if error.filename == "git" else f"{cwd} is not there") from error
        except TimeoutError as error:
            raise ScopeError(f"git took more than {self._timeout_s:g} s in {cwd}") from error
        except OSError as error:
            raise ScopeError(f"git cannot be run in {cwd}: {error.strerror}") from error
        if done.returncode not in ok:
            raise GitFailed(_refusal(done.returncode, done.stderr))
        return Answer(done.returncode, done.stdout, done.stderr)


def _refusal(code: int, err: bytes) -> str:
    said = err.decode(errors="replace").strip() or f"exit code {code}"
    return f"git refused: {said[-500:]}"


@dataclass(frozen=True, slots=True)
class Repository:
    """The user's repository around a workspace."""

    git_dir: str  # of this work tree, with its index
    common_dir: str  # with the objects and refs
    top: str
    object_format: str

    @property
    def variables(self) -> dict[str, str]:
        """For looking into it, and for its refs."""
        return {"GIT_DIR": self.git_dir, "GIT_WORK_TREE": self.top}


@dataclass(frozen=True, slots=True)
class GitStore:
    """The private folder of one workspace, and the repository around it, where there is one."""

    root: str
    top: str  # of the work tree that is looked at
    private: Path
    repository: Repository | None

    @property
    def prefix(self) -> str:
        """The workspace inside the work tree: empty, or a folder that ends with a slash."""
        return "" if self.root == self.top else os.path.relpath(self.root, self.top) + "/"

    @property
    def index(self) -> Path:
        """The index of the last baseline: where little has changed since, the next one is quick."""
        return self.private / "index"

    @property
    def variables(self) -> dict[str, str]:
        """For everything that makes and reads trees."""
        env = _ALONE | {"GIT_DIR": str(self.private), "GIT_WORK_TREE": self.top}
        env["GIT_INDEX_FILE"] = str(self.private / "no-index")  # whoever needs one makes his own
        if self.repository is not None:
            env["GIT_OBJECT_DIRECTORY"] = str(Path(self.repository.common_dir, "objects"))
            if self.repository.object_format == "sha1":  # trees from before there was a repository
                env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = _quoted(_shadow_objects(self.private))
        return env

    def temporary(self, what: str) -> Path:
        """A name in the private folder that nobody else has."""
        return self.private / f"{what}-{secrets.token_hex(8)}"


def _shadow_objects(private: Path) -> Path:
    return private.with_name("shadow") / "objects"


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'  # a colon would separate


async def find_store(git: Git, root: str, state_dir: Path) -> GitStore:
    """Looks for the repository around a folder and makes the private folder ready. ScopeError."""
    repository = await find_repository(git, root)
    base = state_dir / sha256(os.fsencode(root)).hexdigest()[:16]
    rules = "\n".join((*SKIPPED, "")).encode()
    if repository is None:
        store = GitStore(root, root, base / "shadow", None)
    else:
        identity = f"{repository.common_dir}\0{repository.top}\0{repository.object_format}"
        name = sha256(os.fsencode(identity)).hexdigest()[:16]
        store = GitStore(root, repository.top, base / name, repository)
    try:
        if repository is not None:
            rules += await _ignore_rules(git, repository)
        await to_thread.run_sync(_make_ready, store, rules)
    except OSError as error:
        raise ScopeError(f"{error.filename}: {error.strerror}") from error
    return store


async def find_repository(git: Git, root: str) -> Repository | None:
    """The one around a folder, unless that ignores the folder. ScopeError where the folder is in none that can be used."""
    questions = ("--is-bare-repository", "--is-inside-git-dir", "--show-object-format")
    folders = ("--absolute-git-dir", "--git-common-dir", "--show-toplevel")
    asked = await git.run(*QUIET, "rev-parse", *questions, *folders, cwd=root, ok=(0, 128))
    lines = os.fsdecode(asked.out).split("\n")[:-1]
    if "true" in lines[:2]:
        raise ScopeError(f"{root} is inside a git folder, which has no work tree")
    if asked.code:
        if b"not a git repository" in asked.err:
            return None
        raise GitFailed(_refusal(asked.code, asked.err))
    if len(lines) != len(questions) + len(folders):
        raise ScopeError(f"{root} is in a repository whose path has a line break")
    repository = Repository(lines[3], _joined(root, lines[4]), lines[5], lines[2])
    if root != repository.top:
        rest = Path(root).relative_to(repository.top) if Path(root).is_relative_to(repository.top) else None
        if rest is None:
            return None
        ignored = await git.run(*QUIET, "check-ignore", "-q", "--", str(rest), cwd=repository.top, ok=(0, 1))
        if ignored.code == 0:  # by a repository that does not care for this folder
            return None
    return repository


def _joined(root: str, path: str) -> str:
    return os.path.normpath(Path(root, path))


async def _ignore_rules(git: Git, repository: Repository) -> bytes:
    """The user's own and the repository's private rules, in the order of their weight."""
    own = await configured(git, repository, "core.excludesFile", "ignore")
    return await to_thread.run_sync(_read_all, (own, Path(repository.common_dir, "info", "exclude")))


async def configured(git: Git, repository: Repository, name: str, default: str) -> Path:
    """A file that the user's configuration names, or where git looks for it otherwise."""
    arguments = (*QUIET, "config", "--type=path", "--get", name)
    asked = await git.run(*arguments, cwd=repository.top, variables=repository.variables, ok=(0, 1))
    if asked.code == 0:
        return Path(repository.top, os.fsdecode(asked.out.removesuffix(b"\n")))
    home = git.environ.get("XDG_CONFIG_HOME") or str(Path(git.environ.get("HOME", "/"), ".config"))
    return Path(home, "git", default)


def _read_all(files: Sequence[Path]) -> bytes:
    return b"".join(file.read_bytes() + b"\n" for file in files if file.is_file())


def _make_ready(store: GitStore, rules: bytes) -> None:
    private = store.private
    for folder in ("objects", "refs", "info"):
        (private / folder).mkdir(parents=True, exist_ok=True)
    _shadow_objects(private).mkdir(parents=True, exist_ok=True)
    sha256_format = store.repository is not None and store.repository.object_format == "sha256"
    config = _CONFIG.format(version=int(sha256_format)) + (_SHA256 if sha256_format else "")
    contents = {"config": config, "HEAD": "ref: refs/heads/none\n", "info/attributes": _ATTRIBUTES}
    for name, content in contents.items():
        _write(store, private / name, content.encode())
    _write(store, private / "info" / "exclude", rules)
    for leftover in (*private.glob("index-*"), *private.glob("stage-*"), *private.glob("file-*")):
        if time.time() - leftover.stat().st_ctime > _LEFTOVER_AGE_S:  # of a process that was killed
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def _write(store: GitStore, file: Path, content: bytes) -> None:
    if file.is_file() and file.read_bytes() == content:
        return
    temporary = store.temporary("file")
    temporary.write_bytes(content)
    temporary.replace(file)
