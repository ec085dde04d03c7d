"""glob, search, git_status and git_diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tools import refusal, use
from support.workspaces import git, repository, write
from treadle.core.errors import ToolError
from treadle.tools.builtin import WorkspaceTools
from treadle.tools.builtin.listing import matching

FILES = {
    "a.py": "def first():\n    return 1\n",
    "src/b.py": "def second():\n    return 22\n",
    "src/deep/c.ts": "const third = 3;\n",
    "src/deep/d.tsx": "const fourth = 4;\n",
    ".hidden/e.py": "hidden = 5\n",
    ".gitignore": "build/\n*.log\n!kept.log\n",
    "src/.gitignore": "secret.py\n",
    "build/out.py": "def ignored():\n",
    "x.log": "def ignored():\n",
    "kept.log": "def kept():\n",
    "src/secret.py": "def ignored():\n",
}
SEEN = [
    ".gitignore",
    ".hidden/e.py",
    "a.py",
    "kept.log",
    "src/.gitignore",
    "src/b.py",
    "src/deep/c.ts",
    "src/deep/d.tsx",
]


@pytest.fixture(params=["git", "no git", "no git binary"])
def tools(request, tmp_path: Path) -> WorkspaceTools:
    """With a repository; without one; and where there is not even a git to ask, nor ripgrep."""
    root = tmp_path / "ws"
    write(root, FILES)
    (root / "link.py").symlink_to("../outside.py")
    (tmp_path / "outside.py").write_text("def outside():\n")
    if request.param == "git":
        git(root, "init", "-q")
    path = os.environ["PATH"] if request.param == "git" else str(tmp_path / "bin")
    return WorkspaceTools(root, environ={"PATH": path})


def found(tools: WorkspaceTools, pattern: str) -> list[str]:
    return use(tools, "glob", pattern=pattern).content.splitlines()


@pytest.mark.req("AG-23")
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", [".hidden/e.py", "a.py", "src/b.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**", ["src/.gitignore", "src/b.py", "src/deep/c.ts", "src/deep/d.tsx"]),
        ("**/*.{ts,tsx}", ["src/deep/c.ts", "src/deep/d.tsx"]),
        ("./a.py", ["a.py"]),
        ("src/deep", ["src/deep/c.ts", "src/deep/d.tsx"]),
        ("?.py", [".hidden/e.py", "a.py", "src/b.py"]),
        ("[ab].py", ["a.py", "src/b.py"]),
        ("!a.py", ["[no file matches]"]),
        ("#", ["[no file matches]"]),
    ],
)
def test_glob_finds_files_that_git_would_not_ignore(tools, pattern, expected):
    assert [line for line in found(tools, pattern) if line != "link.py"] == expected


def test_everything_is_what_git_would_not_ignore(tools):
    assert [line for line in found(tools, "**") if line != "link.py"] == SEEN


@pytest.mark.parametrize("pattern", ["*a*b*c*d*", "**/x/**/y/**/z/**/w", "{a,b}" * 30, "x" * 600])
def test_a_pattern_that_would_take_for_ever_is_refused(tmp_path, pattern):
    assert refusal(WorkspaceTools(tmp_path), "glob", pattern=pattern).kind == "argument"


@pytest.mark.req("SE-03")
@given(st.text("ab*?[]{},!#/\\-^. \n", max_size=14))
def test_any_pattern_is_matched_or_refused(pattern):
    try:
        matching(pattern or "a").match_file("a/b.py")
    except ToolError as error:
        refused = error.kind
    else:
        return
    assert refused in ("argument", "safety")


@pytest.mark.req("AG-23")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"pattern": r"def \w+"}, ["a.py:1:def first():", "kept.log:1:def kept():", "src/b.py:1:def second():"]),
        ({"pattern": r"return \d\d"}, ["src/b.py:2:    return 22"]),
        (
            {"pattern": "def|const", "path": "src"},
            ["src/b.py:1:def second():", "src/deep/c.ts:1:const third = 3;", "src/deep/d.tsx:1:const fourth = 4;"],
        ),
        ({"pattern": "def", "path": "a.py"}, ["a.py:1:def first():"]),
        ({"pattern": "hidden"}, [".hidden/e.py:1:hidden = 5"]),
        ({"pattern": "no such text"}, ["[nothing matches in the workspace]"]),
        ({"pattern": "^--version$"}, ["[nothing matches in the workspace]"]),
        ({"pattern": "-x"}, ["[nothing matches in the workspace]"]),
    ],
)
def test_search_finds_lines_in_files_that_git_would_not_ignore(tools, args, expected):
    assert use(tools, "search", **args).content.splitlines() == expected


def test_a_bad_expression_is_told_with_what_is_wrong(tools):
    error = refusal(tools, "search", pattern="a(b")
    assert error.kind == "argument"
    assert "reg" in str(error)


def test_a_missing_path_is_not_found(tools):
    assert refusal(tools, "search", pattern="x", path="srk").kind == "not-found"


def test_binary_files_and_long_lines_are_no_burden(tools, tmp_path):
    (tmp_path / "ws" / "long.txt").write_text("needle" + "x" * 100_000 + "\n")
    (tmp_path / "ws" / "bin.dat").write_bytes(b"needle\0" * 100)
    (line,) = use(tools, "search", pattern="^needle").content.splitlines()
    assert line.startswith("long.txt:1:needlexxx")
    assert len(line) < 400


def test_very_many_matches_are_cut_and_said_to_be(tools, tmp_path):
    (tmp_path / "ws" / "many.txt").write_text("needle\n" * 5000)
    lines = use(tools, "search", pattern="needle").content.splitlines()
    assert len(lines) == 201
    assert lines[-1].startswith("[and more")


def test_a_workspace_inside_an_ignored_folder_is_searched_all_the_same(tmp_path):
    """To the repository around it all of it is ignored."""
    root = repository(tmp_path / "repo", {".gitignore": "scratch/\n"})
    write(root / "scratch", {"a.py": "needle\n"})
    tools = WorkspaceTools(root / "scratch", environ={"PATH": os.environ["PATH"]})
    assert found(tools, "*.py") == ["a.py"]


# ---- git


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"a.py": "one\ntwo\n", "sub/b.py": "b\n"})


@pytest.mark.req("AG-23")
def test_git_status_names_the_branch_and_what_has_changed(committed):
    tools = WorkspaceTools(committed)
    assert use(tools, "git_status").content == "## main\n[nothing has changed]"
    write(committed, {"a.py": "one\n2\n", "new/c.py": "c\n"})
    assert use(tools, "git_status").content == "## main\n M a.py\n?? new/c.py"


@pytest.mark.req("AG-23")
def test_git_diff_is_against_the_last_commit_staged_or_not(committed):
    tools = WorkspaceTools(committed)
    assert use(tools, "git_diff").content == "[no changes]"
    write(committed, {"a.py": "one\n2\n", "sub/b.py": "B\n", "new/c.py": "c\n"})
    git(committed, "add", "a.py")
    everything = use(tools, "git_diff").content
    assert "-two\n+2" in everything
    assert "-b\n+B" in everything
    assert everything.endswith("[new file, not in the diff: new/c.py]")
    assert "+2" not in use(tools, "git_diff", path="sub").content
    assert "+B" in use(tools, "git_diff", path="sub/b.py").content


def test_git_tools_see_the_workspaces_part_of_a_larger_repository(committed):
    write(committed, {"a.py": "changed\n", "sub/b.py": "B\n"})
    tools = WorkspaceTools(committed / "sub")
    assert use(tools, "git_status").content == "## main\n M b.py"
    diff = use(tools, "git_diff").content
    assert "b.py" in diff
    assert "changed" not in diff


def test_before_the_first_commit_everything_staged_is_new(tmp_path):
    write(tmp_path, {"a.py": "one\n"})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "a.py")
    assert "+one" in use(WorkspaceTools(tmp_path), "git_diff").content


@pytest.mark.parametrize("name", ["git_status", "git_diff"])
def test_without_a_repository_or_git_it_is_said(tmp_path, name):
    outside = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    assert refusal(WorkspaceTools(tmp_path, environ=outside), name).kind == "not-found"
    assert "not installed" in str(refusal(WorkspaceTools(tmp_path, environ={"PATH": str(tmp_path)}), name))


def test_nothing_that_the_repository_configures_is_run(committed, tmp_path):
    """An agent can write .git/config with a command; reading tools must not run what it says."""
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "diff.x.textconv", "core.pager"):
        git(committed, "config", name, str(trap))
    write(committed, {".gitattributes": "*.py diff=x\n", "a.py": "changed\n"})
    (committed / ".git" / "hooks").mkdir(exist_ok=True)
    (committed / ".git" / "hooks" / "post-index-change").symlink_to(trap)
    os.utime(committed / "sub/b.py", (1, 1))  # git refreshes what it knows of it, and would tell the hook
    for name, args in (("git_status", {}), ("git_diff", {}), ("glob", {"pattern": "*"}), ("search", {"pattern": "x"})):
        use(WorkspaceTools(committed), name, **args)
    assert not (tmp_path / "sprung").exists()


def test_git_status_does_not_lock_or_touch_the_index(committed):
    index = committed / ".git" / "index"
    os.utime(committed / "a.py", (1, 1))
    before = index.read_bytes()
    use(WorkspaceTools(committed), "git_status")
    assert index.read_bytes() == before
