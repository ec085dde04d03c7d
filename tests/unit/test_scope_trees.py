"""Baselines, receipts and diffs of real workspaces by real git; nothing of the user's repository is touched."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from support.workspaces import contents, git, repository, write
from treadle.core.errors import ScopeError
from treadle.effects.scope import GitScope

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def repo(tmp_path) -> Path:
    return repository(tmp_path / "repo")


def scope_of(folder: Path, **given) -> GitScope:
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), **given.pop("environ", {})}
    return GitScope(folder, state_dir=folder.parent / "state", environ=environ, **given)


async def taken(scope: GitScope, execution: str = "x1", round: int = 1) -> str:
    tree, reason = await scope.baseline(execution, round)
    assert reason == ""
    return tree


def what_git_has(folder: Path) -> dict[str, object]:
    """All but objects and our own refs."""
    there = contents(folder / ".git", but=("objects",))
    return {path: what for path, what in there.items() if not path.startswith("refs/treadle/")}


@pytest.mark.req("AG-28")
async def test_nothing_of_the_users_repository_is_touched(repo):
    write(repo, {"staged": "1", "kit.py": "# unstaged\n"})
    git(repo, "stash", "push", "-q", "kit.py")
    git(repo, "add", "staged")
    write(repo, {"untracked": "2", "kit.py": "# unstaged\n"})
    ran = repo.parent / "ran"
    for hook in ("pre-commit", "post-commit", "post-index-change", "reference-transaction", "post-checkout"):
        write(repo, {f".git/hooks/{hook}": f"#!/bin/sh\necho {hook} >> {ran}\n"})
        (repo / ".git" / "hooks" / hook).chmod(0o755)
    watcher = repo.parent / "watcher"
    watcher.write_text(f"#!/bin/sh\necho fsmonitor >> {ran}\n")
    watcher.chmod(0o755)
    for name, value in (
        ("core.fsmonitor", str(watcher)),
        ("commit.gpgSign", "true"),
        ("core.logAllRefUpdates", "always"),
        ("filter.f.clean", f"tee -a {ran}"),
    ):
        git(repo, "config", name, value)
    git(repo, "config", "core.attributesFile", str(repo.parent / "attributes"))
    (repo.parent / "attributes").write_text("* filter=f\n")
    before = what_git_has(repo)

    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {"kit.py": "# again\n", "more": "3"})
    await scope.receipt(base)
    await scope.diff(base)
    await scope.revert(base)

    assert what_git_has(repo) == before
    assert not ran.exists()
    assert (repo / "kit.py").read_text() == "# unstaged\n"


@pytest.mark.req("AG-28")
async def test_a_receipt_names_what_changed_since_the_baseline(repo):
    write(repo, {"gone": "g", "moved": "m", "same": "s", "deep/er/file": "f"})
    scope = scope_of(repo)
    base = await taken(scope)
    assert (await scope.receipt(base)).paths == ()
    (repo / "gone").unlink()
    (repo / "moved").rename(repo / "moved on")
    (repo / "same").chmod(0o755)
    write(repo, {"kit.py": "new", "deep/er/file": "F", "deep/new": "n"})
    receipt = await scope.receipt(base)
    assert receipt.base == base != receipt.head
    assert receipt.paths == ("deep/er/file", "deep/new", "gone", "kit.py", "moved", "moved on", "same")


@pytest.mark.req("AG-28")
async def test_the_digest_of_a_receipt_covers_paths_and_content(repo):
    scope = scope_of(repo)
    base = await taken(scope)
    seen = {(await scope.receipt(base)).digest}
    for changes in ({"kit.py": "1"}, {"kit.py": "2"}, {"kit.py": "2", "more": "3"}):
        write(repo, changes)
        receipt = await scope.receipt(base)
        assert receipt == await scope_of(repo).receipt(base)
        seen.add(receipt.digest)
    assert len(seen) == 4


@pytest.mark.req("AG-28")
async def test_a_diff_is_unified_and_names_renames_and_binaries(repo):
    write(repo, {"old name": "".join(f"line {n}\n" for n in range(30))})
    (repo / "image").write_bytes(bytes(range(256)))
    (repo / "latin").write_bytes(b"caf\xe9\n")
    scope = scope_of(repo)
    base = await taken(scope)
    (repo / "old name").rename(repo / "new name")
    (repo / "image").write_bytes(bytes(range(255, -1, -1)))
    (repo / "latin").write_bytes(b"caf\xe8\n")
    write(repo, {"kit.py": "def add(a, b):\n    return a + b\n"})
    diff = await scope.diff(base)
    assert "--- a/kit.py\n+++ b/kit.py\n" in diff
    assert "-    return a - b\n+    return a + b\n" in diff
    assert "rename from old name\nrename to new name\n" in diff
    assert "Binary files a/image and b/image differ\n" in diff
    assert "-caf\N{REPLACEMENT CHARACTER}\n" in diff


@pytest.mark.req("AG-28")
async def test_rounds_can_be_compared_later(repo):
    scope = scope_of(repo)
    first = await taken(scope, round=1)
    write(repo, {"kit.py": "1\n"})
    second = await taken(scope, round=2)
    write(repo, {"kit.py": "2\n"})
    assert "+1\n" in await scope_of(repo).diff(first, second)
    assert "-1\n+2\n" in await scope_of(repo).diff(second)


@pytest.mark.req("AG-28")
async def test_trees_survive_the_users_garbage_collection(repo):
    scope = scope_of(repo)
    base = await taken(scope, "run/é.1")
    write(repo, {"kit.py": "changed"})
    head = (await scope.receipt(base)).head
    git(repo, "gc", "-q", "--prune=now")
    assert "+changed" in await scope.diff(base, head)
    assert "refs/treadle/run%2F%E9%2E1/1" in git(repo, "for-each-ref")


async def test_files_are_kept_byte_for_byte_whatever_the_attributes_say(repo):
    git(repo, "config", "core.autocrlf", "true")
    git(repo, "config", "filter.up.clean", "tr a-z A-Z")
    rules = "*.txt text eol=lf\n*.up filter=up\n*.id ident\n*.u16 working-tree-encoding=UTF-16LE\n"
    write(repo, {".gitattributes": rules, "a.up": "shout", "a.id": "$Id$"})
    (repo / "a.txt").write_bytes(b"one\r\ntwo\n")
    (repo / "a.u16").write_bytes("naïve".encode("utf-16le"))
    for name in ("a.txt", "a.up", "a.id", "a.u16"):
        os.utime(repo / name, (1_000_000_000, 1_000_000_000))  # so that git trusts its index
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "rules")
    before = contents(repo)
    scope = scope_of(repo)
    base = await taken(scope)
    assert (await scope.receipt(base)).paths == ()
    for name in ("a.txt", "a.up", "a.id", "a.u16"):
        (repo / name).write_bytes(b"other")
    await scope.revert(base)
    assert contents(repo) == before


async def test_the_users_flags_hide_no_change(repo):
    git(repo, "update-index", "--assume-unchanged", "kit.py")
    git(repo, "update-index", "--skip-worktree", "README")
    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {"kit.py": "1", "README": "2"})
    assert (await scope.receipt(base)).paths == ("README", "kit.py")


async def test_ignored_files_and_the_usual_caches_are_no_part_of_a_tree(repo):
    home = repo.parent / "home"
    write(home, {".config/git/ignore": "*.mine\n"})
    write(repo, {".gitignore": "*.log\n", ".git/info/exclude": "private\n"})
    write(repo, {"tracked.log": "1"})
    git(repo, "add", "-f", "tracked.log")
    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {"a.log": "1", "b.mine": "2", "private": "3", "__pycache__/m.pyc": "4", "node_modules/m/i.js": "5"})
    write(repo, {"tracked.log": "2"})
    assert (await scope.receipt(base)).paths == ("tracked.log",)


async def test_the_users_excludes_file_is_honoured(repo):
    write(repo.parent, {"home/my rules": "*.mine\n", "home/.gitconfig": "[core]\n\texcludesFile = ~/my rules\n"})
    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {"b.mine": "2"})
    assert (await scope.receipt(base)).paths == ()


async def test_a_file_of_the_baseline_stays_in_sight_when_it_becomes_ignored(repo):
    write(repo, {"notes": "1"})
    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {".gitignore": "notes\n", "notes": "2"})
    receipt = await scope.receipt(base)
    assert receipt.paths == (".gitignore", "notes")
    assert "deleted" not in await scope.diff(base, receipt.head)
    elsewhere = GitScope(repo, state_dir=repo.parent / "another machine")
    assert await elsewhere.receipt(base) == receipt


async def test_excluded_paths_are_never_looked_at(repo):
    write(repo, {"store.db": "1", "data/big": "2", "state/x": "3"})
    scope = scope_of(repo, exclude=("store.db", repo / "data"))
    base = await taken(scope)
    write(repo, {"store.db": "11", "data/big": "22", "kit.py": "33"})
    assert await scope.revert(base) == ("kit.py",)
    assert (repo / "store.db").read_text() == "11"


async def test_a_state_folder_inside_the_workspace_is_no_part_of_it(repo):
    scope = GitScope(repo, state_dir=repo / ".state")
    base = await taken(scope)
    assert (await scope.receipt(base)).paths == ()


@pytest.mark.req("AG-28")
async def test_a_folder_without_a_repository_has_its_past_too(tmp_path):
    plain = tmp_path / "plain"
    write(plain, {"a": "1", ".gitignore": "*.log\n", "x.log": "2", ".venv/lib": "3"})
    before = contents(plain)
    scope = scope_of(plain)
    base = await taken(scope)
    write(plain, {"a": "changed\n", "b": "new\n", "x.log": "22"})
    assert (await scope.receipt(base)).paths == ("a", "b")
    assert "+changed\n" in await scope.diff(base)
    assert await scope_of(plain).revert(base) == ("a", "b")
    write(plain, {"x.log": "2"})
    assert contents(plain) == before
    assert not (plain / ".git").exists()


async def test_a_baseline_is_known_after_the_folder_has_become_a_repository(tmp_path):
    plain = tmp_path / "plain"
    write(plain, {"a": "1"})
    base = await taken(scope_of(plain))
    repository(plain, {"a": "2"})
    assert await scope_of(plain).revert(base) == ("a",)
    assert (plain / "a").read_text() == "1"


@pytest.mark.req("AG-28")
async def test_a_sub_folder_of_a_repository_is_a_workspace_of_its_own(repo):
    write(repo, {"pkg/in": "1", "pkg/sub/in": "2", "out": "3", ".gitignore": "*.log\n"})
    git(repo, "add", "-A")
    scope = scope_of(repo / "pkg", exclude=("sub/skipped",))
    base = await taken(scope)
    write(repo, {"pkg/in": "11", "out": "33", "pkg/new": "4", "pkg/x.log": "5", "pkg/sub/skipped": "6"})
    assert (await scope.receipt(base)).paths == ("in", "new")
    assert "+++ b/in\n" in await scope.diff(base)
    assert await scope.revert(base) == ("in", "new")
    assert (repo / "pkg" / "in").read_text() == "1"
    assert (repo / "out").read_text() == "33"


async def test_an_empty_sub_folder_has_an_empty_tree(repo):
    (repo / "empty").mkdir()
    scope = scope_of(repo / "empty")
    base = await taken(scope)
    write(repo, {"empty/a": "1"})
    assert await scope.revert(base) == ("a",)
    assert (repo / "empty").is_dir()


async def test_a_folder_that_its_repository_ignores_counts_as_one_without(repo):
    write(repo, {".gitignore": "scratch/\n", "scratch/a": "1"})
    scope = scope_of(repo / "scratch")
    base = await taken(scope)
    write(repo, {"scratch/a": "2"})
    assert (await scope.receipt(base)).paths == ("a",)
    assert "treadle" not in git(repo, "for-each-ref")


def unborn(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q")
    write(folder, {"kit.py": "1"})
    return folder


def detached(folder: Path) -> Path:
    repository(folder)
    git(folder, "checkout", "-q", "--detach")
    return folder


def linked(folder: Path) -> Path:
    git(repository(folder.parent / "main one"), "worktree", "add", "-q", "--detach", str(folder))
    return folder


def submodule(folder: Path) -> Path:
    outer = repository(folder.parent / "outer")
    git(outer, "submodule", "--quiet", "add", str(repository(folder.parent / "origin")), "inner")
    return outer / "inner"


def unmerged(folder: Path) -> Path:
    repository(folder)
    git(folder, "checkout", "-qb", "other")
    write(folder, {"kit.py": "theirs"})
    git(folder, "commit", "-qam", "theirs")
    git(folder, "checkout", "-q", "main")
    write(folder, {"kit.py": "ours"})
    git(folder, "commit", "-qam", "ours")
    with pytest.raises(AssertionError):
        git(folder, "merge", "-q", "other")
    return folder


def by_sha256(folder: Path) -> Path:
    return repository(folder, None, "--object-format=sha256")


def split_index(folder: Path) -> Path:
    repository(folder)
    git(folder, "update-index", "--split-index")
    return folder


@pytest.mark.req("AG-28")
@pytest.mark.parametrize("make", [unborn, detached, linked, submodule, unmerged, by_sha256, split_index])
async def test_every_kind_of_work_tree_has_its_past(tmp_path, make):
    folder = make(tmp_path / "tree with space")
    before = contents(folder)
    scope = scope_of(folder)
    base = await taken(scope)
    write(folder, {"kit.py": "changed", "new": "1"})
    assert (await scope.receipt(base)).paths == ("kit.py", "new")
    await scope_of(folder).revert(base)
    assert contents(folder) == before


@pytest.mark.parametrize("where", ["bare", "repo/.git", "nowhere"])
async def test_where_there_is_no_work_tree_the_reason_is_given(tmp_path, where):
    repository(tmp_path / "repo")
    git(tmp_path, "init", "-q", "--bare", "bare")
    tree, reason = await scope_of(tmp_path / where).baseline("x1", 1)
    assert tree == ""
    assert "not there" in reason if where == "nowhere" else "git folder" in reason


async def test_where_the_private_folder_cannot_be_made_the_reason_is_given(repo):
    write(repo.parent, {"state": "a file"})
    tree, reason = await scope_of(repo).baseline("x1", 1)
    assert tree == ""
    assert "Not a directory" in reason


async def test_where_an_index_cannot_be_written_the_reason_is_given(repo):
    scope = scope_of(repo)
    base = await taken(scope)
    (index,) = (repo.parent / "state").glob("*/*/index")
    index.unlink()
    index.mkdir()
    tree, reason = await scope.baseline("x1", 2)
    assert tree == ""
    assert "Is a directory" in reason
    with pytest.raises(ScopeError, match="Is a directory"):
        await scope.receipt(base)


@pytest.mark.req("AG-28")
async def test_without_git_the_reason_is_given(repo):
    assert await scope_of(repo, environ={"PATH": "/nowhere"}).baseline("x1", 1) == ("", "git is not installed")


async def test_a_git_that_takes_too_long_is_given_up(repo):
    slow = repo.parent / "bin" / "git"
    write(slow.parent, {"git": "#!/bin/sh\nexec sleep 60\n"})
    slow.chmod(0o755)
    scope = scope_of(repo, environ={"PATH": f"{slow.parent}:{os.environ['PATH']}"}, timeout_s=0.1)
    tree, reason = await scope.baseline("x1", 1)
    assert tree == ""
    assert "more than 0.1 s" in reason


async def test_orders_to_git_in_the_environment_are_not_followed(repo):
    other = repository(repo.parent / "other", {"other": "1"})
    orders = {"GIT_DIR": str(other / ".git"), "GIT_INDEX_FILE": str(other / ".git" / "index"), "GIT_WORK_TREE": "/"}
    before = contents(other / ".git", but=())
    base = await taken(scope_of(repo, environ=orders))
    assert base == await taken(scope_of(repo))
    assert contents(other / ".git", but=()) == before


@pytest.mark.req("AG-28")
async def test_baselines_side_by_side_do_not_collide(repo):
    write(repo, {f"d{n % 7}/f{n}": f"{n}" for n in range(100)})
    trees: set[str] = set()

    async def one(name: str, scope: GitScope) -> None:
        for round in (1, 2, 3):
            trees.add(await taken(scope, name, round))

    shared = scope_of(repo)
    async with anyio.create_task_group() as group:
        for n in range(3):
            group.start_soon(one, f"own{n}", scope_of(repo))
            group.start_soon(one, f"shared{n}", shared)
    assert len(trees) == 1
    assert git(repo, "for-each-ref", "refs/treadle").count("\n") == 18


async def test_repositories_inside_are_left_alone(repo):
    repository(repo / "with", {"a": "1"})
    git(repo, "init", "-q", "without")
    write(repo, {"without/b": "2"})
    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {"with/a": "11", "without/b": "22", "kit.py": "33"})
    repository(repo / "new one", {"c": "3"})
    assert (await scope.receipt(base)).paths == ("kit.py", "new one")
    assert await scope.revert(base) == ("kit.py",)
    assert (repo / "with" / "a").read_text() == "11"
    assert (repo / "new one" / "c").read_text() == "3"


async def test_a_damaged_index_of_ours_costs_only_time(repo):
    base = await taken(scope_of(repo))
    for index in (repo.parent / "state").glob("*/*/index"):
        index.write_bytes(b"DIRC" + bytes(100))
    write(repo, {"kit.py": "1"})
    scope = scope_of(repo)
    assert (await scope.receipt(base)).paths == ("kit.py",)
    assert await taken(scope) != base


async def test_a_change_that_keeps_size_and_time_is_seen(repo):
    write(repo, {"kit.py": "111"})
    scope = scope_of(repo)
    base = await taken(scope)
    before = (repo / "kit.py").stat()
    write(repo, {"kit.py": "222"})
    os.utime(repo / "kit.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (await scope.receipt(base)).paths == ("kit.py",)


async def test_names_that_are_no_text_can_be_told(repo):
    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {"new\nline": "1", 'quo"te': "2", "ünï": "3", os.fsdecode(b"by\xffte"): "4"})
    assert (await scope.receipt(base)).paths == ("by\\xffte", "new\nline", 'quo"te', "ünï")


async def test_no_baseline_means_an_empty_receipt(repo):
    assert await scope_of(repo).receipt("") == ("", "", (), "")


@pytest.mark.parametrize("tree", ["0" * 40, "HEAD", "--help", "zz"])
async def test_a_tree_that_is_not_kept_is_a_typed_error(repo, tree):
    scope = scope_of(repo)
    for question in (scope.receipt(tree), scope.diff(tree), scope.revert(tree), scope.diff(await taken(scope), tree)):
        with pytest.raises(ScopeError, match="no longer kept"):
            await question


@pytest.mark.req("AG-28")
def test_a_new_file_that_is_gigantic_is_named_and_left_alone(tmp_path: Path) -> None:
    folder = repository(tmp_path / "work")
    with (folder / "disk.img").open("wb") as image:
        image.truncate(64 << 30)

    async def main() -> None:
        scope = GitScope(folder, state_dir=tmp_path / "state")
        tree, note = await scope.baseline("e1", 1)
        assert note == "too large to be compared or put back: disk.img (65,536 MB)"
        write(folder, {"kit.py": "changed"})
        assert (await scope.receipt(tree)).paths == ("kit.py",)
        await scope.revert(tree)
        assert (folder / "disk.img").exists()
        assert "return a - b" in (folder / "kit.py").read_text()

    anyio.run(main)
