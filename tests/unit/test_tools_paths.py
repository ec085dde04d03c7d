"""Nothing leads out of the workspace: not upwards, not by an absolute path, not through a link, however it is written."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tools import call, context, refusal, use
from treadle.core.errors import ToolError
from treadle.tools.builtin import WorkspaceTools, contents
from treadle.tools.builtin.paths import Workspace

SECRET = "the outside"


def build(base: Path) -> Path:
    """A workspace with links of every kind, beside a file that it must not reach."""
    outside = base / "outside"
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    root = base / "ws"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "a.py").write_text("inside\n")
    (root / "out").symlink_to("../outside")
    (root / "out_absolute").symlink_to(outside)
    (root / "out_file").symlink_to("../outside/secret")
    (root / "src" / "out_new").symlink_to("../../outside/new")
    (root / "src" / "up").symlink_to("..")
    (root / "in").symlink_to("src")
    (root / "in_absolute").symlink_to(root / "src")
    (root / "loop").symlink_to("loop")
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("[core]\n")
    (root / "git_link").symlink_to(".git")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return build(tmp_path)


@pytest.fixture(scope="module")
def lasting_root(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("paths").resolve())


def outside_of(root: Path) -> dict[str, str]:
    folder = root.parent / "outside"
    return {file.name: file.read_text() for file in folder.iterdir()}


ESCAPES = [
    "..",
    "../outside/secret",
    "src/../../outside/secret",
    "/etc/passwd",
    "/",
    "//etc/passwd",
    "out/secret",
    "out/../outside/secret",
    "out_absolute/secret",
    "out_file",
    "src/up/../outside/secret",
    "src/up/out/secret",
    "./././../outside/secret",
    "src/deep/../../out_file",
    "src/out_new",
]


@pytest.mark.req("AG-23")
@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("read_file", {}),
        ("list_dir", {}),
        ("search", {"pattern": "."}),
        ("git_diff", {}),
        ("write_file", {"text": "x"}),
        ("edit_file", {"old": "the", "new": "x"}),
    ],
)
def test_a_path_that_leads_out_is_refused_by_every_tool(root, name, args, path):
    error = refusal(WorkspaceTools(root), name, path=path, **args)
    assert error.kind == "safety"
    assert error.hint
    assert outside_of(root) == {"secret": SECRET}


@pytest.mark.req("AG-23")
@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "src/../../*", "../outside/**"])
def test_a_pattern_that_leads_out_is_refused(root, pattern):
    assert refusal(WorkspaceTools(root), "glob", pattern=pattern).kind == "safety"


@pytest.mark.parametrize(
    "path",
    ["src/a.py", "./src//a.py", "src/deep/../a.py", "in/a.py", "in_absolute/a.py", "src/up/src/a.py", "src/up/in/a.py"],
)
def test_a_path_that_stays_inside_is_followed_through_links_too(root, path):
    assert use(WorkspaceTools(root), "read_file", path=path).content == "inside\n"
    assert use(WorkspaceTools(root), "read_file", path=f"{root}/{path}").content == "inside\n"


def test_a_workspace_that_is_itself_reached_by_a_link_takes_absolute_paths_by_either_name(root):
    (root.parent / "alias").symlink_to(root)
    tools = WorkspaceTools(root.parent / "alias")
    for name in ("alias", "ws"):
        assert use(tools, "read_file", path=f"{root.parent}/{name}/src/a.py").content == "inside\n"
    assert refusal(tools, "read_file", path=f"{root.parent}/outside/secret").kind == "safety"


def test_a_neighbour_whose_name_begins_like_the_workspace_is_outside(root):
    (root.parent / "ws2").mkdir()
    (root.parent / "ws2" / "f").write_text("x")
    assert refusal(WorkspaceTools(root), "read_file", path=f"{root}2/f").kind == "safety"


def test_a_link_in_a_circle_is_refused(root):
    assert refusal(WorkspaceTools(root), "read_file", path="loop").kind == "safety"


@pytest.mark.req("AG-23")
@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/hooks/new/deep/x",
        ".GIT/config",
        "src/.git/config",
        "git_link/config",
        "./src/../.git/x",
    ],
)
def test_what_git_keeps_cannot_be_written(root, path):
    tools = WorkspaceTools(root)
    assert refusal(tools, "write_file", path=path, text="x").kind == "safety"
    with pytest.raises(ToolError):  # nor without having been prepared
        anyio.run(tools.run, call(tools, "write_file", path=path, text="x"), context())
    assert (root / ".git" / "config").read_text() == "[core]\n"
    assert list((root / ".git" / "hooks").iterdir()) == []
    assert not (root / "src" / ".git").exists()


def test_writing_through_a_link_inside_changes_its_target_and_leaves_the_link(root):
    output = use(WorkspaceTools(root), "write_file", path="in/b.py", text="new")
    assert output.changed == ("src/b.py",)
    (root / "alias").symlink_to("src/a.py")
    assert use(WorkspaceTools(root), "edit_file", path="alias", old="inside", new="edited").changed == ("src/a.py",)
    assert (root / "alias").is_symlink()
    assert (root / "src" / "a.py").read_text() == "edited\n"


@pytest.mark.parametrize(
    "path",
    ["a\0b", "\ud800", "x" * 300, "/".join("x" * 3000), "\n", " ", "~", "~root", "$HOME", "C:\\x", "a\\..\\..\\b"],
)
def test_a_strange_name_is_a_typed_error_or_just_a_name(root, path):
    for name, args in (
        ("read_file", {}),
        ("list_dir", {}),
        ("search", {"pattern": "x"}),
        ("edit_file", {"old": "a", "new": "b"}),
    ):
        assert refusal(WorkspaceTools(root), name, path=path, **args).kind in ("argument", "not-found")


@pytest.mark.parametrize("path", ["src", ".", "in", "", "src/deep/"])
def test_a_folder_cannot_be_written_as_a_file(root, path):
    assert refusal(WorkspaceTools(root), "write_file", path=path, text="x").kind == "argument"


def test_devices_and_pipes_are_no_files(root):
    os.mkfifo(root / "pipe")
    for name, args in (("read_file", {}), ("write_file", {"text": "x"}), ("edit_file", {"old": "a", "new": "b"})):
        assert refusal(WorkspaceTools(root), name, path="pipe", **args).kind == "argument"


def test_a_missing_file_is_told_with_what_comes_near(root):
    error = refusal(WorkspaceTools(root), "read_file", path="src/b.py")
    assert (error.kind, error.hint) == ("not-found", "There is: a.py.")


PART = st.sampled_from(
    [
        "..",
        ".",
        "",
        "src",
        "deep",
        "a.py",
        "up",
        "in",
        "in_absolute",
        "out",
        "out_absolute",
        "out_file",
        "secret",
        "outside",
        "new",
        "loop",
        "ws",
    ]
)


@pytest.mark.req("SE-03")
@given(parts=st.lists(PART, min_size=1, max_size=7), absolute=st.sampled_from(["", "/", "root"]))
def test_any_path_is_refused_or_leads_to_where_the_system_says_inside(lasting_root, parts, absolute):
    """The system's own resolution is the oracle."""
    root = lasting_root
    path = {"": "", "/": "/", "root": f"{root}/"}[absolute] + "/".join(parts)
    try:
        with Workspace(root).locate(path) as place:
            found = place.stat()
            assert not Path(place.path).is_absolute()
            reached = (root / place.path).resolve(strict=False)
            assert reached == root or root in reached.parents
            if found is not None:
                assert os.path.samestat(found, (root / path).stat())
    except ToolError as error:
        kind = error.kind
    else:
        return
    assert kind in ("safety", "not-found", "argument")
    if kind == "safety" and "loop" not in parts:
        assert not _inside_all_the_way(root, path)


def _inside_all_the_way(root: Path, path: str) -> bool:
    """Whether no step of the path is outside, links resolved; a step that is not there counts as inside."""
    here = root if not path.startswith("/") or path.startswith(f"{root}/") else Path("/")
    if here != root:
        return False
    for part in path.removeprefix(f"{root}/").split("/"):
        here = Path(os.path.normpath(here / part)) if part == ".." else here / part
        here = here.resolve(strict=False)
        if here != root and root not in here.parents:
            return False
    return True


@pytest.mark.req("AG-23")
def test_a_folder_that_is_exchanged_for_a_link_after_the_check_is_not_followed(root):
    """What was checked is an open folder; its name may point anywhere by then."""
    (root / "spot").mkdir()
    (root / "spot" / "secret").write_text("inside")
    with Workspace(root).locate("spot/../spot/secret") as place:
        (root / "spot").rename(root / "moved")
        (root / "spot").symlink_to("../outside")
        with os.fdopen(contents.open_file(place)) as file:
            assert file.read() == "inside"
        contents.replace(place, b"written")
    assert outside_of(root) == {"secret": SECRET}
    assert (root / "moved" / "secret").read_text() == "written"


@pytest.mark.req("AG-23")
def test_a_folder_that_is_exchanged_for_a_link_during_the_check_is_not_followed(root, monkeypatch):
    """At the worst instant: it has been looked at, and is about to be opened."""
    (root / "spot").mkdir()
    look = os.stat

    def exchange(path, **options):
        found = look(path, **options)
        if path == "spot":
            (root / "spot").rmdir()
            (root / "spot").symlink_to("../outside")
        return found

    monkeypatch.setattr(os, "stat", exchange)
    with pytest.raises(ToolError), Workspace(root).locate("spot/secret"):
        pass


def test_a_file_that_is_exchanged_for_a_link_after_the_check_is_not_followed(root):
    with Workspace(root).locate("src/a.py") as place:
        (root / "src" / "a.py").unlink()
        (root / "src" / "a.py").symlink_to("../../outside/secret")
        with pytest.raises(ToolError) as caught:
            contents.open_file(place)
        assert caught.value.kind == "safety"
        contents.replace(place, b"written")
    assert outside_of(root) == {"secret": SECRET}
    assert not (root / "src" / "a.py").is_symlink()
