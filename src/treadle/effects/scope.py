"""The workspace's past as git trees (AG-28): a baseline a round, what has changed since, and the way back."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio import to_thread

from treadle.core.errors import ScopeError
from treadle.ports.scope import Scope, ScopeReceipt

from .gitstore import QUIET, Answer, Git, GitFailed, GitStore, Repository, configured, find_store
from .restore import restore

TIMEOUT_S = 120.0
_ADDED, _REPOSITORY = "A", "160000"
_TREE = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NO_COMMIT = re.compile(rb"^error: '(.+)/' does not have a commit checked out$", re.MULTILINE)
_UNREADABLE = re.compile(rb"^warning: could not open directory '.*$", re.MULTILINE)
_DIFF_TREE = ("diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--no-color")


class _Change(NamedTuple):
    status: str
    modes: tuple[str, str]  # before, after
    path: str  # relative to the workspace, decoded as by os


MOST_BYTES = (
    256 * 1024 * 1024
)  # of a file that a tree keeps: a disk image in the workspace must not be copied each round


def _too_large(top: str, paths: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for path in paths:
        try:
            size = Path(top, path).lstat().st_size
        except OSError:
            continue  # gone since it was listed: git says so where it matters
        if size > MOST_BYTES:
            found[path] = size
    return found


def _left_out_words(left_out: Mapping[str, int]) -> str:
    if not left_out:
        return ""
    named = ", ".join(f"{path} ({size // 2**20:,} MB)" for path, size in list(left_out.items())[:3])
    more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
    return f"too large to be compared or put back: {named}{more}"


class GitScope(Scope):
    """A workspace whose trees git keeps, in the repository around it or, where there is none, under `state_dir`.

    Ignored files are no part of a tree, nor are the usual caches, unless the repository tracks them; nor is a new file of
    more than MOST_BYTES. `exclude` names paths (relative to the workspace, or absolute) that are never part of one either,
    such as a store inside the workspace. A repository inside the workspace counts as the commit that it has checked out:
    its files are left alone. Empty folders are not kept. Every fault is a ScopeError, but `baseline` gives the reason instead.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        state_dir: str | os.PathLike[str],
        exclude: Iterable[str | os.PathLike[str]] = (),
        environ: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        inherited = os.environ if environ is None else environ  # noqa: TID251 - handed on to git, no setting is read
        self.root = os.path.realpath(root)
        self._state_dir, self._git = Path(os.path.realpath(state_dir)), Git(inherited, timeout_s)
        self._exclude = [os.path.realpath(Path(self.root, path)) for path in (*exclude, self._state_dir)]
        self._store: GitStore | None = None
        self._finding = anyio.Lock()
        self._compared: tuple[tuple[str, str], bytes] = (("", ""), b"")  # the last two trees, which never change
        self.left_out: dict[
            str, int
        ] = {}  # new files that the last tree lacks, since they are too large, and their bytes

    async def baseline(self, execution_id: str, round: int) -> tuple[str, str]:
        """Keeps the workspace as it is now under refs/treadle/<execution>/<round>."""
        try:
            store = await self._found()
            tree = await self._snapshot(store, None)
            await self._keep(store, tree, f"refs/treadle/{_ref_part(execution_id)}/{round}")
        except ScopeError as error:
            return "", str(error)
        return tree, _left_out_words(self.left_out)

    async def receipt(self, base: str) -> ScopeReceipt:
        """What changed since `base`; nothing where `base` is empty. The changed tree is kept as well."""
        if not base:
            return ScopeReceipt("", "", (), "")
        store = await self._found()
        head = await self._snapshot(store, base)
        if head != base:
            await self._keep(store, head, f"refs/treadle/=heads/{head}")
        raw = await self._compare(store, base, head)
        return ScopeReceipt(base, head, self._paths(raw), sha256(raw).hexdigest())

    async def between(self, base: str, head: str) -> list[str]:
        """The paths by which two trees differ, as the system spells them."""
        store = await self._found()
        return [change.path for change in _changes(await self._compare(store, base, head))]

    async def diff(self, base: str, head: str | None = None) -> str:
        """A unified diff, renames as such, binary files by name only; undecodable bytes are replaced."""
        store = await self._found()
        if head is None:
            head = await self._snapshot(store, base)
        arguments = (*_DIFF_TREE, "-p", "-M", f"--relative={store.prefix}", await self._tree(store, base))
        answer = await self._run(store, *arguments, await self._tree(store, head))
        return answer.out.decode(errors="replace")

    async def revert(self, base: str, *, only: Collection[str] | None = None) -> tuple[str, ...]:
        """Puts changed files back, removes added ones and the folders that this leaves empty.

        A file that was ignored under the rules of `base` stays, even if the rules were changed since. Run again, it
        goes on where it was killed. ScopeError names what could not be put back, after all the rest was.
        """
        store = await self._found()
        head = await self._snapshot(store, base)
        changes = [
            change
            for change in _changes(await self._compare(store, base, head))
            if _REPOSITORY not in change.modes and (only is None or _shown(change.path) in only)
        ]
        store.index.unlink(missing_ok=True)  # it may know files that will be ignored again
        async with self._staged(store, base, changes) as stage:
            rules = [change for change in changes if self._decides_what_is_ignored(change)]
            done = await self._put_back(stage, rules)
            rest = [change for change in changes if change not in rules]
            ignored = await self._ignored(store, [change.path for change in rest if change.status == _ADDED])
            done |= await self._put_back(stage, [change for change in rest if change.path not in ignored])
        if failed := {path: reason for path, reason in done.items() if reason}:
            listed = "; ".join(f"{_shown(path)}: {reason}" for path, reason in sorted(failed.items()))
            raise ScopeError(f"not everything could be put back: {listed}")
        return tuple(_shown(path) for path in sorted(done))

    async def _found(self) -> GitStore:
        async with self._finding:
            if self._store is None:
                self._store = await find_store(self._git, self.root, self._state_dir)
            return self._store

    async def _run(
        self,
        store: GitStore,
        *arguments: str,
        variables: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        ok: Sequence[int] = (0,),
        cwd: str | None = None,
    ) -> Answer:
        env = {**store.variables, **(variables or {})}
        return await self._git.run(*arguments, cwd=cwd or self.root, variables=env, stdin=stdin, ok=ok)

    async def _run_theirs(self, repository: Repository, *arguments: str, ok: Sequence[int] = (0,)) -> Answer:
        """In the user's repository, as its owner sees it."""
        return await self._git.run(*QUIET, *arguments, cwd=self.root, variables=repository.variables, ok=ok)

    async def _tree(self, store: GitStore, name: str) -> str:
        """The name of a tree, where it is one that is kept."""
        if _TREE.fullmatch(name):
            answer = await self._run(store, "cat-file", "-e", name + "^{tree}", ok=(0, 1, 128))
            if answer.code == 0:
                return name
        raise ScopeError(f"the tree {name!r} of the workspace is no longer kept")

    async def _snapshot(self, store: GitStore, base: str | None) -> str:
        """A tree of the workspace as it is.

        Compared with a `base`, whatever is in that stays part of the tree, even where ignore rules have changed;
        without one, its index is where the next starts. An index is a shortcut: where one cannot be used, the next is
        tried.
        """
        if base is not None:
            await self._tree(store, base)
        failure: ScopeError | None = None
        for start in (self._from_last, self._from_theirs, self._from_nothing):
            index = store.temporary("index")
            own = {"GIT_INDEX_FILE": str(index)}
            try:
                if not await start(store, index):
                    continue
                if base is not None:
                    await self._run(store, "read-tree", "--reset", base, variables=own)
                await self._add(store, own)
                tree = (await self._run(store, "write-tree", variables=own)).out.decode().strip()
                if base is None:
                    index.replace(store.index)
                return tree
            except GitFailed as error:
                failure = error
            except OSError as error:
                raise ScopeError(f"{error.filename}: {error.strerror}") from error
            finally:
                _drop(index)
        raise failure or ScopeError

    async def _from_last(self, store: GitStore, index: Path) -> bool:
        """The index of the last baseline."""
        return await to_thread.run_sync(_copied, store.index, index)

    async def _from_theirs(self, store: GitStore, index: Path) -> bool:
        """A copy of the user's index, where it is sure to say of every file what its bytes are."""
        repository = store.repository
        if repository is None or store.prefix or await self._flags_or_converts(repository):
            return False
        return await to_thread.run_sync(_copied, Path(repository.git_dir, "index"), index)

    async def _flags_or_converts(self, repository: Repository) -> bool:
        """Whether an entry may stand for something else than the bytes of its file, or for a file nobody looks at."""
        flags = await self._run_theirs(repository, "ls-files", "-v", "-z")
        if any(not entry.startswith(b"H") for entry in flags.out.split(b"\0") if entry):
            return True
        rules = await self._run_theirs(repository, "ls-files", "-c", "-o", "-z", "--", ":(top,glob)**/.gitattributes")
        ends = await self._run_theirs(repository, "config", "--get", "core.autocrlf", ok=(0, 1))
        own = await configured(self._git, repository, "core.attributesFile", "attributes")
        private = Path(repository.common_dir, "info", "attributes")
        return bool(rules.out) or ends.code == 0 or any(file.exists() for file in (own, private))

    async def _from_nothing(self, store: GitStore, index: Path) -> bool:
        """An empty index, or in a repository one that knows which files are tracked, and of none what is in it."""
        if store.repository is not None:
            listed = await self._run_theirs(store.repository, "ls-files", "-s", "-z", "--full-name")
            own = {"GIT_INDEX_FILE": str(index)}
            await self._run(store, "update-index", "-z", "--index-info", variables=own, stdin=listed.out, cwd=store.top)
        return True

    async def _add(self, store: GitStore, own: Mapping[str, str]) -> None:
        # Only what is inside: git 2.39 reads beyond the end of an exclusion outside the folder that is asked for.
        left_out = [str(Path(path).relative_to(store.top)) for path in self._exclude if _is_below(path, self.root)]
        left_out += await self._gigantic(store, own)
        said = ""
        for _ in range(3):  # a repository without a commit cannot be named by one; a file may vanish meanwhile
            pathspecs = (".", *(f":(top,exclude,literal){path}" for path in left_out))
            answer = await self._run(
                store, "add", "-A", "--ignore-errors", "--", *pathspecs, variables=own, ok=(0, 1, 128)
            )
            if unreadable := _UNREADABLE.search(answer.err):
                raise ScopeError(unreadable[0].decode(errors="replace"))
            if answer.code == 0:
                return
            left_out += [os.fsdecode(name) for name in _NO_COMMIT.findall(answer.err)]
            said = answer.err.decode(errors="replace").strip()[-500:]
        raise GitFailed(f"git refused: {said}")

    async def _gigantic(self, store: GitStore, own: Mapping[str, str]) -> list[str]:
        """New files that are too large to be kept, from the top of the work tree."""
        listed = await self._run(
            store, "ls-files", "-o", "--exclude-standard", "--full-name", "-z", variables=own, cwd=self.root
        )
        paths = [os.fsdecode(path) for path in listed.out.split(b"\0") if path]
        found = await to_thread.run_sync(_too_large, store.top, paths) if paths else {}
        self.left_out = {_shown(path.removeprefix(store.prefix)): size for path, size in found.items()}
        return list(found)

    async def _keep(self, store: GitStore, tree: str, ref: str) -> None:
        """A commit, always the same for a tree, and a ref to it, so that no garbage collection takes the tree."""
        commit = (await self._run(store, "commit-tree", tree, stdin=b"Treadle: the workspace\n")).out.decode().strip()
        if store.repository is None:
            await self._run(store, "update-ref", ref, commit)
        else:
            await self._run_theirs(store.repository, "update-ref", ref, commit)

    async def _compare(self, store: GitStore, base: str, head: str) -> bytes:
        if self._compared[0] != (base, head):
            how = ("-z", "--raw", "--no-renames", "--no-abbrev", f"--relative={store.prefix}")
            self._compared = (base, head), (await self._run(store, *_DIFF_TREE, *how, base, head)).out
        return self._compared[1]

    @staticmethod
    def _paths(raw: bytes) -> tuple[str, ...]:
        return tuple(_shown(change.path) for change in _changes(raw))

    @asynccontextmanager
    async def _staged(self, store: GitStore, base: str, changes: list[_Change]) -> AsyncGenerator[Path]:
        """A folder with the files of `base` that are to be put back, laid out like the workspace."""
        stage, index = store.temporary("stage"), store.temporary("index")
        own = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(stage)}
        wanted = [store.prefix + change.path for change in changes if change.status != _ADDED]
        try:
            stage.mkdir()
            await self._run(store, "read-tree", base, variables=own)
            stdin = b"".join(os.fsencode(path) + b"\0" for path in wanted)
            await self._run(store, "checkout-index", "-z", "--stdin", variables=own, stdin=stdin, cwd=str(stage))
            yield stage / store.prefix
        except OSError as error:
            raise ScopeError(f"{error.filename}: {error.strerror}") from error
        finally:
            _drop(index)
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(lambda: shutil.rmtree(stage, ignore_errors=True))

    async def _put_back(self, stage: Path, changes: list[_Change]) -> dict[str, str]:
        """Path -> why it could not be put back, empty where it was."""
        removals = [change.path for change in changes if change.status == _ADDED]
        installs = [change.path for change in changes if change.status != _ADDED]
        done = await to_thread.run_sync(restore, Path(self.root), stage, removals, installs)
        return dict.fromkeys(done.paths, "") | done.failed

    def _decides_what_is_ignored(self, change: _Change) -> bool:
        file = Path(self.root, change.path)
        return file.name == ".gitignore" and os.path.realpath(file.parent) == str(file.parent) and file.parent.is_dir()

    async def _ignored(self, store: GitStore, paths: list[str]) -> set[str]:
        stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
        answer = await self._run(store, "check-ignore", "--no-index", "-z", "--stdin", stdin=stdin, ok=(0, 1))
        return {os.fsdecode(path) for path in answer.out.split(b"\0") if path}


def _copied(source: Path, target: Path) -> bool:
    """With its time: git tells by it which entries it must not trust."""
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        return False
    return True


def _drop(index: Path) -> None:
    for file in (index, index.with_name(index.name + ".lock")):
        file.unlink(missing_ok=True)


def _is_below(path: str, folder: str) -> bool:
    return path != folder and Path(path).is_relative_to(folder)


def _changes(raw: bytes) -> list[_Change]:
    fields = raw.split(b"\0")[:-1]
    changes: list[_Change] = []
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        before, after, _, _, status = about.decode().removeprefix(":").split(" ")
        changes.append(_Change(status[0], (before, after), os.fsdecode(path)))
    return changes


def _shown(path: str) -> str:
    """As text that can be stored: bytes that are no UTF-8 are written out."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _ref_part(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", lambda match: f"%{ord(match[0]):02X}", name) or "%"
