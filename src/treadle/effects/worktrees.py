"""Git worktrees on branches of their own, for loops that work apart from everybody (FR-16): made, merged, given up."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread

from treadle.core.errors import ConfigurationError, ScopeError
from treadle.core.scope_events import Isolation, OnAccept
from treadle.ports.scope import Closed, Conflicts, Isolated

from .candidates import remove
from .gitstore import QUIET, Answer, Git, GitFailed, Repository, find_repository
from .scope import TIMEOUT_S, GitScope

BRANCHES = "treadle/"
BROUGHT_IN = "Treadle: bring in"
MARKERS = (b"<<<<<<< ", b">>>>>>> ")
LOCK_S = 60.0  # how long another loop may merge into the same repository
LOCK_TRIES, LOCK_PAUSE_S = 20, 0.1
_OURS = (*QUIET, "-c", "commit.gpgSign=false", "-c", "advice.detachedHead=false")
_NOBODY = ("-c", "user.name=Treadle", "-c", "user.email=treadle@localhost", "-c", "user.useConfigOnly=false")


class Here:
    """Git in the user's repository, by the user's own configuration but without hooks, signing and prompts."""

    def __init__(self, environ: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._git = Git(os.environ if environ is None else environ, timeout_s)  # noqa: TID251 - handed on to git

    async def run(self, folder: str | Path, *arguments: str, stdin: bytes = b"", ok: Sequence[int] = (0,)) -> Answer:
        """As `Git.run`, in this folder."""
        return await self._git.run(*_OURS, *arguments, cwd=str(folder), stdin=stdin, ok=ok)

    async def text(self, folder: str | Path, *arguments: str, ok: Sequence[int] = (0,)) -> str:
        """What it prints; empty where it fails in an allowed way."""
        answer = await self.run(folder, *arguments, ok=ok)
        return os.fsdecode(answer.out).strip() if answer.code == 0 else ""

    async def repository(self, folder: str) -> Repository | None:
        """The one around a folder."""
        return await find_repository(self._git, folder)

    async def commit(self, folder: str | Path, *arguments: str, message: str) -> None:
        """A commit in the name of the user, or of Treadle where the user has none; nothing to commit is no fault."""
        command = ("commit", "-q", "--no-verify", "-m", message, *arguments)
        answer = await self.run(folder, *command, ok=(0, 1, 128))
        if answer.code == 128 and b"tell me who you are" in answer.err:
            answer = await self.run(folder, *_NOBODY, *command, ok=(0, 1))
        if answer.code == 128:
            raise GitFailed(f"git refused: {answer.err.decode(errors='replace').strip()[-500:]}")

    async def merge(self, folder: str | Path, commit: str, *arguments: str) -> Answer:
        """`git merge`; a merge that stopped is exit code 1."""
        command, who, tries = ("merge", "-q", *arguments, commit), (), 0
        while True:
            answer = await self.run(folder, *who, *command, ok=(0, 1, 2, 128))
            tries += 1
            if answer.code == 128 and b"tell me who you are" in answer.err and not who:
                who = _NOBODY
            elif b".lock'" in answer.err and tries < LOCK_TRIES:  # somebody's git is at work there
                await anyio.sleep(LOCK_PAUSE_S)
            else:
                return answer


async def open_scope(
    here: Here, workspace: Path, name: str, folder: Path, on_accept: OnAccept
) -> tuple[Isolation, Path]:
    """A new worktree of the workspace's repository in `folder`, on the branch treadle/`name`; and the workspace in it.

    ConfigurationError where that cannot be had: nothing was made.
    """
    repository = await here.repository(str(workspace))
    if repository is None:
        raise ConfigurationError(f"--isolate needs a git repository, and {workspace} is in none. git init makes one.")
    asked = await here.run(workspace, "rev-parse", "HEAD", "--symbolic-full-name", "HEAD", ok=(0, 128))
    if asked.code:
        raise ConfigurationError(
            f"--isolate needs a commit to start from, and {repository.top} has none yet. Commit first."
        )
    base, ref = os.fsdecode(asked.out).split("\n")[:2]
    target = ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else ""
    if not target and on_accept == "merge":
        raise ConfigurationError(
            f"HEAD is detached in {repository.top}, so there is no branch to merge into: git switch BRANCH,"
            " or leave the work on a branch of its own with --on-accept branch."
        )
    if target.startswith(BRANCHES) and on_accept == "merge":
        raise ConfigurationError(f"{target} is the branch of another scope. git switch to the branch to work on.")
    facts = Isolation(
        origin=str(workspace),
        folder=str(folder),
        branch=BRANCHES + name,
        base=base,
        target=target,
        on_accept=on_accept,
    )
    await to_thread.run_sync(_write_facts, facts)
    await here.run(workspace, "worktree", "add", "-q", "-b", facts.branch, str(folder), base)
    inside = folder / workspace.relative_to(repository.top)
    await to_thread.run_sync(lambda: inside.mkdir(parents=True, exist_ok=True))
    return facts, inside


def facts_file(folder: str | Path) -> Path:
    """Beside a worktree, so that it is found even where no record of it was made."""
    return Path(f"{folder}.json")


def _write_facts(facts: Isolation) -> None:
    file = facts_file(facts.folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode(facts))


async def restore_scope(here: Here, facts: Isolation, workspace: str, tree: str, state_dir: Path) -> None:
    """The worktree anew, where somebody has deleted it: the files of `tree`, or of its branch where that is empty."""
    known = await here.text(facts.origin, "rev-parse", "--verify", "-q", f"refs/heads/{facts.branch}", ok=(0, 1, 128))
    await here.run(facts.origin, "worktree", "prune")
    where = (facts.folder, facts.branch) if known else ("-b", facts.branch, facts.folder, facts.base)
    await here.run(facts.origin, "worktree", "add", "-q", "-f", *where)
    await to_thread.run_sync(lambda: Path(workspace).mkdir(parents=True, exist_ok=True))
    if tree:
        await GitScope(workspace, state_dir=state_dir / "trees").revert(tree)


async def drop_scope(here: Here, facts: Isolation) -> None:
    """Gives worktree and branch up, whatever they hold. What is not there is no fault."""
    await to_thread.run_sync(remove, Path(facts.folder))
    await to_thread.run_sync(lambda: facts_file(facts.folder).unlink(missing_ok=True))
    if await to_thread.run_sync(Path(facts.origin).is_dir):
        await here.run(facts.origin, "branch", "-q", "-D", facts.branch, ok=(0, 1, 128))


class GitIsolated(Isolated):
    """The scope that these facts describe. `trees` reads the trees of its rounds."""

    def __init__(self, facts: Isolation, trees: GitScope, here: Here | None = None) -> None:
        self.facts, self.trees, self._here = facts, trees, here or Here()

    async def commit(self, base: str, head: str, *, message: str, settles: bool = True) -> str:
        """Besides the paths of the trees whatever else git tracks is committed as it is."""
        folder = self.facts.folder
        if base and head and base != head:
            names = b"".join(os.fsencode(path) + b"\0" for path in await self.trees.between(base, head))
            staging = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
            await self._here.run(self.trees.root, *staging, stdin=names)
        amended = ("--amend",) if settles and await self._brought_in() else ()
        await self._here.commit(folder, "-a", *amended, message=message)
        tip, ref = (await self._here.text(folder, "rev-parse", "HEAD", "--symbolic-full-name", "HEAD")).split("\n")
        if ref != f"refs/heads/{self.facts.branch}":  # act has switched to another branch
            await self._here.run(folder, "update-ref", f"refs/heads/{self.facts.branch}", tip)
        return tip

    async def _brought_in(self) -> bool:
        return (await self._here.text(self.facts.folder, "log", "-1", "--format=%s")).startswith(BROUGHT_IN)

    async def conflicts(self, commit: str, marked: Collection[str]) -> Conflicts:
        if left := await to_thread.run_sync(self._with_markers, tuple(marked)):
            return Conflicts(commit, left)
        facts = self.facts
        tip = await self._target()
        if not tip or tip == facts.base:
            return Conflicts("", ())
        return Conflicts(tip, await self._conflicts(tip, commit))

    async def _target(self) -> str:
        """The commit at the tip of the target; empty where it is no more."""
        ref = f"refs/heads/{self.facts.target}^{{commit}}"
        return await self._here.text(self.facts.origin, "rev-parse", "--verify", "-q", ref, ok=(0, 1, 128))

    async def _conflicts(self, tip: str, commit: str) -> tuple[str, ...]:
        asked = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", tip, commit)
        answer = await self._here.run(self.facts.origin, *asked, ok=(0, 1))
        if answer.code == 0:
            return ()
        return tuple(name.decode(errors="backslashreplace") for name in answer.out.split(b"\0")[1:] if name)

    def _with_markers(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(path for path in paths if _has_markers(Path(self.facts.folder, path)))

    async def bring_in(self, onto: str) -> None:
        folder, here = self.facts.folder, self._here
        known = await here.run(folder, "merge-base", "--is-ancestor", onto, "HEAD", ok=(0, 1))
        if known.code == 0:
            return
        await here.run(folder, "merge", "--abort", ok=(0, 1, 128))  # of a try that was killed
        said = await here.merge(folder, onto, "--no-ff", "--no-commit")
        merging = await here.text(folder, "rev-parse", "--verify", "-q", "MERGE_HEAD", ok=(0, 1, 128))
        if not merging:
            raise ScopeError(f"{self.facts.target} cannot be brought into {folder}: {_said(said)}")
        await here.run(folder, "add", "-u")
        await here.commit(folder, message=f"{BROUGHT_IN} {self.facts.target}")

    async def close(self, commit: str, *, message: str) -> Closed:
        try:
            return await self._closed(commit, message)
        except ScopeError as error:
            return Closed("kept", str(error))

    async def _closed(self, commit: str, message: str) -> Closed:
        facts, here = self.facts, self._here
        if inside := await self._in_submodules():
            names = ", ".join(inside)
            return Closed(
                "kept", f"what was written inside submodules is no part of it: {names}. It is still in {facts.folder}"
            )
        if not commit or commit == facts.base:
            await drop_scope(here, facts)
            return Closed("unchanged")
        if facts.on_accept == "branch":
            await here.run(
                facts.origin, "worktree", "remove", facts.folder, ok=(0, 128)
            )  # unless something else is in it
            return Closed("branch")
        common, current = await self._common()
        async with _alone(common):
            why = await self._merged(commit, message, current)
        if why:
            return Closed("kept", why)
        await drop_scope(here, facts)
        return Closed("merged")

    async def _in_submodules(self) -> tuple[str, ...]:
        """Submodules in which act has left something: neither trees nor the branch hold that, and it would go with the folder."""
        folder = Path(self.facts.folder)
        if not await to_thread.run_sync(Path(folder, ".gitmodules").is_file):
            return ()
        asked = ("config", "-z", "-f", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$")
        listed = (await self._here.run(str(folder), *asked, ok=(0, 1))).out
        paths = [os.fsdecode(one.partition(b"\n")[2]) for one in listed.split(b"\0") if one]
        found: list[str] = []
        for path in paths:
            place = folder / path
            if await to_thread.run_sync(Path(place, ".git").exists):
                if await self._here.text(str(place), "status", "--porcelain", ok=(0, 128)):
                    found.append(path)
            elif await to_thread.run_sync(_holds_anything, place):
                found.append(path)
        return tuple(found)

    async def _common(self) -> tuple[Path, str]:
        """Where the refs of the repository are, and the branch that its work tree shows."""
        asked = ("rev-parse", "--git-common-dir", "--symbolic-full-name", "HEAD")
        answer = await self._here.run(self.facts.origin, *asked, ok=(0, 128))  # 128: HEAD has no commit
        lines = os.fsdecode(answer.out).split("\n")
        return Path(self.facts.origin, lines[0]), lines[1] if answer.code == 0 else ""

    async def _merged(self, commit: str, message: str, current: str) -> str:
        """Why it could not be merged into the target, or where `current` is another branch; empty where it is."""
        facts, here = self.facts, self._here
        if current == f"refs/heads/{facts.target}":
            said = await here.merge(facts.origin, commit, "--no-edit", "-m", message)
            if said.code == 0:
                return ""
            if await here.text(facts.origin, "rev-parse", "--verify", "-q", "MERGE_HEAD", ok=(0, 1, 128)) == commit:
                await here.run(facts.origin, "merge", "--abort", ok=(0, 1, 128))
            return f"it could not be merged into {facts.target}: {_said(said)}"
        return await self._merged_unseen(commit, message)

    async def _merged_unseen(self, commit: str, message: str) -> str:
        """The same where no work tree shows the target."""
        facts, here = self.facts, self._here
        ref, tip = f"refs/heads/{facts.target}", await self._target()
        if not tip:
            return f"the branch {facts.target} is no more"
        listed = await here.text(facts.origin, "worktree", "list", "--porcelain")
        if f"branch {ref}" in listed.split("\n"):
            return f"{facts.target} is checked out in another worktree: merge it there"
        if (await here.run(facts.origin, "merge-base", "--is-ancestor", commit, tip, ok=(0, 1))).code == 0:
            return ""
        merged = await here.run(facts.origin, "merge-tree", "--write-tree", "--no-messages", tip, commit, ok=(0, 1))
        if merged.code:
            return f"it is in conflict with {facts.target}"
        tree = os.fsdecode(merged.out).split("\n")[0]
        made = ("commit-tree", tree, "-p", tip, "-p", commit, "-m", message)
        answer = await here.run(facts.origin, *made, ok=(0, 128))
        if answer.code:
            answer = await here.run(facts.origin, *_NOBODY, *made)
        await here.run(facts.origin, "update-ref", ref, os.fsdecode(answer.out).strip(), tip)
        return ""


def _said(answer: Answer) -> str:
    return (answer.err or answer.out).decode(errors="replace").strip()[-500:]


def _holds_anything(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _has_markers(file: Path) -> bool:
    try:
        with file.open("rb") as lines:
            return any(line.startswith(MARKERS) for line in lines)
    except OSError:  # removed, or no file any more: settled in its own way
        return False


@asynccontextmanager
async def _alone(common: Path) -> AsyncGenerator[None]:
    """While no other loop merges into this repository. ScopeError where that takes too long."""
    lock = os.open(common / "treadle.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        give_up = time.monotonic() + LOCK_S
        while not _locked(lock):
            if time.monotonic() > give_up:
                raise ScopeError(f"another loop has been merging in {common} for {LOCK_S:g} s")
            await anyio.sleep(LOCK_PAUSE_S)
        yield
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
