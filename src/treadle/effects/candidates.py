"""Folders of their own for candidates: git worktrees of one pinned baseline, and the way of the chosen one's changes back."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import msgspec
from anyio import to_thread

from treadle.core.errors import ScopeError
from treadle.core.values import Value

from .gitstore import QUIET, GitStore
from .scope import GitScope

_READY = ".ready"
_FACTS = "kept.json"


class Seen(NamedTuple):
    """What a candidate has made: a tree that is kept, and the paths by which it differs from the baseline."""

    tree: str
    paths: tuple[str, ...]


class Kept(Value, frozen=True, kw_only=True):
    """What a speculation keeps outside its folder, written there before anything is kept: whoever clears it away reads it here."""

    execution: str  # that speculates
    workspace: str
    name: str  # of the refs


class CandidateScopes(GitScope):
    """The candidates of one speculation, which has the `name` of an execution. Every fault is a ScopeError."""

    async def pin(self, name: str) -> str:
        """The baseline: the workspace as it is at the first call, the same tree at every later one."""
        store = await self._found()
        ref = f"refs/treadle/{name}/0"
        asked = ("rev-parse", "--verify", "-q", ref + "^{tree}")
        if store.repository is None:
            known = await self._run(store, *asked, ok=(0, 1, 128))
        else:
            known = await self._run_theirs(store.repository, *asked, ok=(0, 1, 128))
        if known.code == 0:
            return known.out.decode().strip()
        tree = await self._snapshot(store, None)
        await self._keep(store, tree, ref)
        return tree

    async def unpin(self, name: str) -> None:
        """What was kept for this speculation need not be kept any longer."""
        store = await self._found()
        own = store.repository
        asked = ("for-each-ref", "--format=%(refname)", f"refs/treadle/{name}/")
        found = await (self._run(store, *asked) if own is None else self._run_theirs(own, *asked))
        for ref in found.out.decode().split():
            await (
                self._run(store, "update-ref", "-d", ref)
                if own is None
                else self._run_theirs(own, "update-ref", "-d", ref)
            )

    async def open(self, folder: Path, base: str, *, anew: bool) -> Path:
        """The candidate's workspace inside `folder`, with the files of `base`. `anew`: whatever an interrupted one left there goes."""
        store = await self._found()
        ready = folder.with_name(folder.name + _READY)
        if anew or not await to_thread.run_sync(ready.exists):
            await to_thread.run_sync(remove, folder)
            await self._make(store, folder, base)
            await to_thread.run_sync(ready.touch)
        return folder / store.prefix

    async def _make(self, store: GitStore, folder: Path, base: str) -> None:
        try:
            await to_thread.run_sync(lambda: folder.parent.mkdir(parents=True, exist_ok=True))
            if store.repository is None or not await self._worktree(store, folder):
                await to_thread.run_sync(lambda: folder.mkdir(exist_ok=True))
        except OSError as error:
            raise ScopeError(f"{error.filename}: {error.strerror}") from error
        index = store.temporary("index")
        own = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder)}
        try:
            await self._run(store, "read-tree", base, variables=own)
            await self._run(store, "checkout-index", "-a", "-f", "-q", variables=own, cwd=str(folder))
            await to_thread.run_sync(lambda: (folder / store.prefix).mkdir(parents=True, exist_ok=True))
        finally:
            index.unlink(missing_ok=True)

    async def _worktree(self, store: GitStore, folder: Path) -> bool:
        """A worktree of the user's repository, at its commit; False where there is none yet."""
        repository = store.repository
        assert repository is not None
        head = await self._run_theirs(repository, "rev-parse", "--verify", "-q", "HEAD^{commit}", ok=(0, 1, 128))
        if head.code:
            return False
        commit = head.out.decode().strip()
        await self._run_theirs(repository, "worktree", "add", "-f", "--detach", "--no-checkout", str(folder), commit)
        await self._git.run(*QUIET, "read-tree", commit, cwd=str(folder))
        return True

    async def seen(self, folder: Path, base: str, name: str, number: int) -> Seen:
        """What the candidate has made so far, kept."""
        store = await self._found()
        index = store.temporary("index")
        own = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder)}
        try:
            await self._run(store, "read-tree", base, variables=own)
            await self._run(store, "add", "-A", "--", ".", variables=own, cwd=str(folder / store.prefix))
            tree = (await self._run(store, "write-tree", variables=own)).out.decode().strip()
        finally:
            index.unlink(missing_ok=True)
        await self._keep(store, tree, f"refs/treadle/{name}/{number}")
        return Seen(tree, self._paths(await self._compare(store, base, tree)))

    async def take(self, base: str, seen: Seen) -> None:
        """Puts a candidate's changes into the workspace. Run again, it goes on where it was killed.

        ScopeError names what somebody else has changed there since the baseline: then nothing is put.
        """
        if not seen.paths:
            return
        store = await self._found()
        now = await self._snapshot(store, base)
        mine = set(seen.paths)
        theirs = set(self._paths(await self._compare(store, base, now)))
        differs = set(self._paths(await self._compare(store, seen.tree, now)))
        if conflict := sorted(mine & theirs & differs):
            raise ScopeError(f"the workspace has changed meanwhile where the candidate has: {', '.join(conflict[:10])}")
        await self.revert(seen.tree, only=mine)


def remove(folder: Path) -> None:
    """A candidate's folder, and what its repository knows of it. What is not there is no fault."""
    link = folder / ".git"
    if link.is_file():
        admin = Path(link.read_text().removeprefix("gitdir:").strip())
        back = admin / "gitdir"
        if admin.parent.name == "worktrees" and back.is_file() and Path(back.read_text().strip()) == link:
            shutil.rmtree(admin, ignore_errors=True)
    folder.with_name(folder.name + _READY).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def remove_all(folder: Path) -> None:
    """The folders of all candidates of a speculation."""
    if folder.is_dir():
        for each in folder.iterdir():
            if each.is_dir():
                remove(each)
        shutil.rmtree(folder, ignore_errors=True)


def note_kept(folder: Path, kept: Kept) -> None:
    """Before anything is kept. OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _FACTS).write_bytes(msgspec.json.encode(kept))


def read_kept(folder: Path) -> Kept | None:
    """What was noted there; None for a speculation without a workspace, or where nothing is to be read."""
    try:
        return msgspec.json.decode((folder / _FACTS).read_bytes(), type=Kept)
    except (OSError, msgspec.DecodeError):
        return None


async def let_go(folder: Path, state_dir: Path) -> None:
    """Nothing comes of this speculation any more: what it has kept in the workspace's repository goes, then its folder."""
    kept = await to_thread.run_sync(read_kept, folder)
    if kept is not None and await to_thread.run_sync(Path(kept.workspace).is_dir):
        await CandidateScopes(kept.workspace, state_dir=state_dir).unpin(kept.name)
    await to_thread.run_sync(remove_all, folder)
