"""The way back: a workspace is put back file by file, and nothing else is lost on the way."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.workspaces import contents, git, repository, write
from treadle.core.errors import ScopeError
from treadle.effects.restore import restore
from treadle.effects.scope import GitScope

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def repo(tmp_path) -> Path:
    return repository(tmp_path / "repo")


def scope_of(folder: Path) -> GitScope:
    return GitScope(folder, state_dir=folder.parent / "state")


async def taken(scope: GitScope) -> str:
    tree, reason = await scope.baseline("x1", 1)
    assert reason == ""
    return tree


@pytest.mark.req("AG-28")
async def test_everything_is_as_it_was_at_the_baseline(repo):
    odd = ["with space", "new\nline", 'quo"te', "tab\there", "*", "-n", ":(top)", os.fsdecode(b"by\xffte"), "ünï"]
    write(repo, {name: name.encode(errors="replace").decode() for name in odd})
    write(repo, {"script": "#!/bin/sh\n", "deep/er/file": "1", "moved": "m" * 100, "was a file": "2", "dir/x": "3"})
    (repo / "script").chmod(0o755)
    (repo / "link").symlink_to("kit.py")
    (repo / "dangling").symlink_to("nowhere")
    before = contents(repo)
    scope = scope_of(repo)
    base = await taken(scope)

    for name in odd:
        write(repo, {name: "changed"})
        (repo / name).rename(repo / f"{name} moved")
    (repo / "script").chmod(0o644)
    (repo / "moved").rename(repo / "moved on")
    for gone in ("deep/er/file", "was a file", "dir/x", "link", "dangling"):
        (repo / gone).unlink()
    (repo / "deep" / "er").rmdir()
    (repo / "dir").rmdir()
    (repo / "dir").symlink_to("deep")
    (repo / "dangling").symlink_to("elsewhere")
    write(repo, {"was a file/now/a folder": "4", "link": "no link", "deep/er": "now a file", "new/one": "5"})

    await scope.revert(base)
    assert contents(repo) == before
    assert not (repo / "new").exists()
    assert (await scope.receipt(base)).paths == ()


@pytest.mark.req("AG-28")
async def test_what_was_not_committed_at_the_baseline_comes_back_too(repo):
    write(repo, {"kit.py": "# not committed\n", "untracked": "u"})
    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {"kit.py": "# worse\n"})
    (repo / "untracked").unlink()
    git(repo, "commit", "-qam", "the agent commits")
    head = git(repo, "rev-parse", "HEAD")
    assert await scope.revert(base) == ("kit.py", "untracked")
    assert (repo / "kit.py").read_text() == "# not committed\n"
    assert (repo / "untracked").read_text() == "u"
    assert git(repo, "rev-parse", "HEAD") == head


@pytest.mark.req("AG-28")
async def test_ignored_files_are_left_alone(repo):
    write(repo, {".gitignore": "*.log\nout/\n", "a.log": "1", "out/x": "2"})
    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {"a.log": "11", "out/x": "22", "out/y": "33", "new/b.log": "44", "new/c": "55"})
    assert await scope.revert(base) == ("new/c",)
    kept = {"a.log": "11", "out/x": "22", "out/y": "33", "new/b.log": "44"}
    assert {name: (repo / name).read_text() for name in kept} == kept


@pytest.mark.req("AG-28")
async def test_a_file_that_was_ignored_is_left_alone_though_the_rules_were_changed(repo):
    write(repo, {".gitignore": ".env\n", ".env": "SECRET=1", "sub/.gitignore": "mine\n", "sub/mine": "m"})
    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {".gitignore": "# nothing\n", "other": "o", "new/.gitignore": "*\n"})
    (repo / "sub" / ".gitignore").unlink()
    assert set((await scope.receipt(base)).paths) >= {".env", ".gitignore", "other", "sub/mine"}
    assert await scope.revert(base) == (".gitignore", "other", "sub/.gitignore")
    assert (repo / ".env").read_text() == "SECRET=1"
    assert (repo / "sub" / "mine").read_text() == "m"
    assert (await scope.receipt(base)).paths == ()


async def test_after_a_revert_what_is_ignored_again_is_no_part_of_a_tree(repo):
    write(repo, {".gitignore": ".env\n", ".env": "SECRET=1"})
    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {".gitignore": "# nothing\n"})
    assert await taken(scope) != base
    await scope.revert(base)
    assert await taken(scope) == base


async def test_nothing_is_written_through_a_link_that_has_taken_the_place_of_a_folder(repo):
    outside = repo.parent / "outside"
    write(repo, {"d/x": "1"})
    write(outside, {"x": "theirs"})
    scope = scope_of(repo)
    base = await taken(scope)
    (repo / "d" / "x").unlink()
    (repo / "d").rmdir()
    (repo / "d").symlink_to(outside)
    (repo / ".git" / "info" / "exclude").write_text("/d\n")  # so that the link itself is out of sight
    write(repo, {"kit.py": "changed"})
    with pytest.raises(ScopeError, match="d/x: d is a symbolic link"):
        await scope_of(repo).revert(base)
    assert (outside / "x").read_text() == "theirs"
    assert "return a - b" in (repo / "kit.py").read_text()


async def test_what_is_in_the_way_and_ignored_is_named_and_kept(repo):
    write(repo, {"thing": "1", ".gitignore": "*.log\n"})
    scope = scope_of(repo)
    base = await taken(scope)
    (repo / "thing").unlink()
    write(repo, {"thing/a.log": "precious", "kit.py": "changed"})
    with pytest.raises(ScopeError, match="thing: "):
        await scope.revert(base)
    assert (repo / "thing" / "a.log").read_text() == "precious"
    assert "return a - b" in (repo / "kit.py").read_text()


async def test_an_empty_folder_in_the_way_goes(repo):
    scope = scope_of(repo)
    base = await taken(scope)
    (repo / "kit.py").unlink()
    (repo / "kit.py").mkdir()
    assert await scope.revert(base) == ("kit.py",)


async def test_permissions_that_git_does_not_know_stay(repo):
    (repo / "kit.py").chmod(0o600)
    write(repo, {"tool": "#!/bin/sh\n"})
    (repo / "tool").chmod(0o750)
    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {"kit.py": "changed", "tool": "changed"})
    (repo / "tool").chmod(0o640)
    await scope.revert(base)
    assert (repo / "kit.py").stat().st_mode & 0o777 == 0o600
    assert (repo / "tool").stat().st_mode & 0o777 == 0o750


@pytest.mark.req("AG-28")
async def test_a_reader_never_sees_half_a_file(repo):
    old, new = b"old" * 400_000, b"new" * 400_000
    big = repo / "big"
    big.write_bytes(old)
    scope = scope_of(repo)
    base = await taken(scope)
    big.write_bytes(new)
    seen, over = set(), threading.Event()

    def read() -> None:
        while not over.is_set():
            seen.add(big.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        await scope.revert(base)
    finally:
        over.set()
        reader.join()
    assert seen <= {old, new}
    assert big.read_bytes() == old


async def test_a_revert_that_was_cut_short_goes_on_when_run_again(repo):
    write(repo, {f"f{n}": "1" for n in range(20)})
    before = contents(repo)
    scope = scope_of(repo)
    base = await taken(scope)
    write(repo, {f"f{n}": "2" for n in range(20)} | {f"new{n}": "3" for n in range(20)})
    with anyio.move_on_after(0.05):
        await scope.revert(base)
    await scope_of(repo).revert(base)
    assert contents(repo) == before


async def test_going_back_further_and_forward_again(repo):
    scope = scope_of(repo)
    trees, states = [], []
    for n in range(3):
        write(repo, {"kit.py": f"{n}\n", f"file{n}": "x"})
        (repo / f"file{n - 2}").unlink(missing_ok=True)
        trees.append((await scope.baseline("x1", n + 1))[0])
        states.append(contents(repo))
    for n in (0, 2, 1):
        await scope.revert(trees[n])
        assert contents(repo) == states[n]


def test_files_move_between_file_systems_by_way_of_a_whole_copy(tmp_path):
    shared_memory = Path("/dev/shm")
    if not shared_memory.is_dir() or shared_memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is only one file system here")
    with TemporaryDirectory(dir=shared_memory) as stage:
        write(Path(stage), {"a/b": "staged"})
        (Path(stage) / "link").symlink_to("a/b")
        write(tmp_path, {"a/b": "old", "gone/x": "1"})
        done = restore(tmp_path, Path(stage), ["gone/x"], ["a/b", "link"])
    assert done == (["gone/x", "a/b", "link"], {})
    assert contents(tmp_path) == {"a/b": (b"staged", False), "link": Path("a/b")}


names = st.sampled_from(["a", "b", "c"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
entries = st.tuples(st.sampled_from(["file", "script", "link"]), st.sampled_from(["", "1", "two\r\n", "a"]))


@st.composite
def trees(draw) -> dict[str, tuple[str, str]]:
    """Path -> what is there, where no file is also a folder."""
    tree: dict[str, tuple[str, str]] = {}
    for path in draw(st.lists(paths, max_size=6, unique=True)):
        if not any(path.startswith(f"{other}/") or other.startswith(f"{path}/") for other in tree):
            tree[path] = draw(entries)
    return tree


def become(folder: Path, tree: dict[str, tuple[str, str]]) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if ".git" not in path.parts:
            path.unlink() if path.is_symlink() or path.is_file() else path.rmdir()
    for name, (kind, content) in tree.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if kind == "link":
            file.symlink_to(content or "nowhere")
        else:
            file.write_text(content)
            file.chmod(0o755 if kind == "script" else 0o644)


@pytest.mark.req("AG-28")
@settings(max_examples=15)
@given(before=trees(), after=trees(), in_repository=st.booleans())
def test_any_workspace_becomes_any_other_again(before, after, in_repository):
    async def there_and_back(folder: Path) -> None:
        become(folder, before)
        was = contents(folder)
        scope = scope_of(folder)
        base = await taken(scope)
        become(folder, after)
        await scope.revert(base)
        assert contents(folder) == was

    with TemporaryDirectory() as place:
        folder = Path(place, "w")
        folder.mkdir()
        if in_repository:
            git(folder, "init", "-q")
        anyio.run(there_and_back, folder)
