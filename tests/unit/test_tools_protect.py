"""Protected paths stay as they are, whatever a tool does to them."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tools import call, context, refusal, use
from support.workspaces import contents, write
from treadle.core.errors import DefinitionError, ToolError
from treadle.ports.model import ToolDef
from treadle.ports.toolset import ToolOutput, Toolset
from treadle.tools.builtin import WorkspaceTools
from treadle.tools.protect import ProtectedTools
from treadle.tools.protected_files import ProtectedFiles

FILES = {"tests/test_a.py": "assert 1\n", "tests/data/big.txt": "data\n", "src/a.py": "a = 1\n", "check.sh": "pytest\n"}
GLOBS = ("tests/**", "/check.sh")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "ws", FILES)
    (tmp_path / "ws" / "check.sh").chmod(0o755)
    return tmp_path / "ws"


@pytest.fixture
def tools(root: Path) -> ProtectedTools:
    return ProtectedTools(WorkspaceTools(root, environ={"PATH": os.environ["PATH"]}), root, GLOBS)


@pytest.mark.req("AG-29")
@pytest.mark.parametrize(
    "path", ["tests/test_a.py", "tests/new.py", "tests/deep/new.py", "check.sh", "src/../tests/test_a.py", "./check.sh"]
)
def test_a_protected_path_cannot_be_written_or_edited(tools, root, path):
    before = contents(root)
    for name, args in (("write_file", {"text": "x"}), ("edit_file", {"old": "assert 1", "new": "assert 0"})):
        error = refusal(tools, name, path=path, **args)
        assert error.kind == "safety"
        assert "sudo" not in error.hint
        with pytest.raises(ToolError):  # nor without having been prepared
            anyio.run(tools.run, call(tools, name, path=path, **args), context())
    assert contents(root) == before


@pytest.mark.req("AG-29")
def test_a_protected_path_cannot_be_written_through_a_link(tools, root):
    (root / "alias").symlink_to("tests")
    (root / "src" / "alias.sh").symlink_to("../check.sh")
    assert refusal(tools, "write_file", path="alias/test_a.py", text="x").kind == "safety"
    assert refusal(tools, "write_file", path="src/alias.sh", text="x").kind == "safety"


def test_other_paths_and_reading_are_as_ever(tools, root):
    assert use(tools, "write_file", path="src/check.sh", text="x").changed == ("src/check.sh",)
    assert use(tools, "read_file", path="check.sh").content == "pytest\n"
    assert use(tools, "run_command", command="echo x > src/b.py; cat tests/test_a.py").content.count("protected") == 0
    assert (root / "src" / "b.py").read_text() == "x\n"


CHANGES = {
    "overwritten": "echo 'assert 0' > tests/test_a.py",
    "with its size and time kept": "touch -r tests/test_a.py t; printf 'assert 0\\n' > tests/test_a.py; touch -r t tests/test_a.py; rm t",
    "replaced": "rm tests/test_a.py; echo other > tests/test_a.py",
    "removed": "rm tests/test_a.py",
    "all removed": "rm -r tests",
    "moved": "mv tests elsewhere; rm -r elsewhere",
    "made executable": "chmod 777 tests/test_a.py",
    "no longer executable": "chmod 644 check.sh",
    "made unreadable": "chmod 000 tests/test_a.py; chmod 000 tests",
    "a folder instead": "rm tests/test_a.py; mkdir -p tests/test_a.py/x; touch tests/test_a.py/x/y",
    "a link instead": "ln -sf ../src/a.py tests/test_a.py",
    "its folder a link instead": "rm -r tests; ln -s src tests",
    "its folder a link to nowhere": "rm -r tests; ln -s nowhere tests",
    "its folder a file instead": "rm -r tests; touch tests",
    "a new one beside it": "echo 'pass' > tests/conftest.py",
    "a new one deep beside it": "mkdir -p tests/x/y; touch tests/x/y/z",
}


@pytest.mark.req("AG-29")
@pytest.mark.parametrize("change", CHANGES)
def test_what_a_command_does_to_protected_files_is_put_back_and_told(tools, root, change):
    before = contents(root)
    shown = use(tools, "run_command", command=f"{CHANGES[change]}; echo done").content
    assert "done\n" in shown
    assert "[protected, so put back as they were: " in shown
    assert contents(root) == before
    assert "protected" not in use(tools, "run_command", command="true").content


@pytest.mark.req("AG-29")
def test_the_message_names_the_files(tools):
    shown = use(tools, "run_command", command="echo x > check.sh; rm tests/test_a.py; touch tests/new").content
    assert shown.endswith("[protected, so put back as they were: tests/new, check.sh, tests/test_a.py]")


def test_what_was_only_touched_or_rewritten_alike_is_no_change(tools, root):
    shown = use(tools, "run_command", command="touch tests/test_a.py; cp check.sh c; cp c check.sh; rm c").content
    assert "protected" not in shown


def test_caches_of_a_test_run_go_without_a_word(tools, root):
    command = "mkdir -p tests/__pycache__; touch tests/__pycache__/a.pyc"
    assert "protected" not in use(tools, "run_command", command=command).content
    assert not (root / "tests/__pycache__/a.pyc").exists()


@pytest.mark.req("AG-29")
def test_a_command_that_fails_or_takes_too_long_is_undone_as_well(tools, root):
    error = refusal(tools, "run_command", command="echo x > check.sh; sleep 100", timeout_s=0.3)
    assert error.kind == "timeout"
    assert "put back as they were: check.sh" in str(error)
    assert (root / "check.sh").read_text() == "pytest\n"


@pytest.mark.req("AG-29")
def test_a_cancelled_command_is_undone_as_well(tools, root):
    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(
                tools.run, call(tools, "run_command", command="rm -r tests; touch ready; sleep 100"), context()
            )
            with anyio.fail_after(60):
                while not await anyio.Path(root / "ready").exists():  # noqa: ASYNC110 - another process tells
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()

    anyio.run(main)
    assert (root / "tests/test_a.py").read_text() == "assert 1\n"


class Rude(Toolset):
    """A tool of somebody's own that writes where it likes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def tools(self):
        return (ToolDef("rude", "", {"type": "object"}, "idempotent"), ToolDef("look", "", {"type": "object"}, "read"))

    async def run(self, call, context):
        (self.root / "check.sh").write_text("rude")
        if call.args:
            raise ToolError("execution", "broke", hint="h", transient=True)
        return ToolOutput("ok", ("check.sh",))


@pytest.mark.req("AG-29")
def test_any_toolset_can_be_wrapped(root):
    tools = ProtectedTools(Rude(root), root, GLOBS)
    assert use(tools, "rude").content == "ok\n[protected, so put back as they were: check.sh]"
    error = refusal(tools, "rude", fail=True)
    assert (error.kind, error.hint, error.transient) == ("execution", "h", True)
    assert "put back" in str(error)
    assert (root / "check.sh").read_text() == "pytest\n"


def test_a_database_that_somebody_is_writing_to_is_left_alone(root):
    """A store of Treadle's own may lie in a protected folder."""
    (root / "tests" / "store").mkdir()
    store = sqlite3.connect(root / "tests" / "store" / "s.db", isolation_level=None)
    store.execute("pragma journal_mode=wal")
    store.execute("create table t (x)")
    protected = ProtectedFiles(root, GLOBS)
    protected.keep()
    store.execute("insert into t values (1)")
    assert protected.put_back() == ([], [])
    assert store.execute("select x from t").fetchall() == [(1,)]
    store.close()


def test_a_file_too_large_to_keep_is_told_when_it_has_changed(root, monkeypatch):
    (root / "tests" / "huge").write_bytes(b"")
    os.truncate(root / "tests" / "huge", 65 * 1024 * 1024)  # sparse
    tools = ProtectedTools(WorkspaceTools(root, environ={"PATH": os.environ["PATH"]}), root, GLOBS)
    assert "protected" not in use(tools, "run_command", command="true").content
    shown = use(tools, "run_command", command="echo x >> tests/huge; echo x > check.sh").content
    assert "put back as they were: check.sh]" in shown
    assert "could not be put back: tests/huge]" in shown


def test_a_legitimate_link_above_protected_files_stays_a_link(root):
    (root / "linked").symlink_to("src")
    write(root / "src", {"tests/t.py": "t\n"})
    protected = ProtectedFiles(root, ["linked/tests/**"])
    protected.keep()
    (root / "src/tests/t.py").write_text("changed")
    assert protected.put_back() == (["linked/tests/t.py"], [])
    assert (root / "linked").is_symlink()
    assert (root / "src/tests/t.py").read_text() == "t\n"


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("tests/**", "tests/a/b.py", True),
        ("tests/**", "src/tests/b.py", False),
        ("tests/", "tests/a.py", True),
        ("tests/", "src/tests/a.py", True),
        ("test_*.py", "deep/test_x.py", True),
        ("/check.sh", "src/check.sh", False),
        ("**/*.lock", "a/b.lock", True),
        ("tests", "tests", True),
    ],
)
def test_globs_read_like_lines_of_gitignore(tmp_path, glob, path, expected):
    write(tmp_path, {path: "x"}) if path != "tests" else None
    protected = ProtectedFiles(tmp_path, [glob])
    assert protected.matches(path) is expected
    if path != "tests":
        protected.keep()
        (tmp_path / path).write_text("changed")
        assert protected.put_back() == ([path] if expected else [], [])


def test_a_glob_that_cannot_be_understood_is_a_definition_error(tmp_path):
    with pytest.raises(DefinitionError):
        ProtectedFiles(tmp_path, ["!"])


@pytest.mark.req("AG-29")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["write", "remove", "mkdir", "link", "move"]),
            st.sampled_from(["p/a", "p/b", "p/d/c", "p/d", "p", "free"]),
            st.sampled_from(["p/a", "p/x", "p/d/y", "free2", "p"]),
        ),
        max_size=6,
    )
)
def test_whatever_was_done_protected_files_are_as_they_were(tmp_path_factory, steps):
    root = tmp_path_factory.mktemp("protected")
    write(root, {"p/a": "a", "p/b": "b", "p/d/c": "c", "free": "f"})
    protected = ProtectedFiles(root, ["p/**"])
    before = contents(root / "p")
    protected.keep()
    for what, one, other in steps:
        try:
            match what:
                case "write":
                    (root / one).write_text("changed")
                case "remove":
                    (root / one).unlink()
                case "mkdir":
                    (root / one).mkdir(parents=True)
                case "link":
                    (root / other).symlink_to(root / one)
                case _:
                    (root / one).rename(root / other)
        except OSError:
            continue
    assert protected.put_back()[1] == []
    assert contents(root / "p") == before
    assert protected.put_back() == ([], [])
