"""read_file, write_file, edit_file and list_dir; and what a crash in the middle of a write leaves to be seen."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tools import call, refusal, use
from treadle.core.digests import blob_address
from treadle.core.errors import ToolError
from treadle.tools.builtin import WorkspaceTools
from treadle.tools.builtin.editing import edit
from treadle.tools.builtin.reading import MOST_BYTES


@pytest.fixture
def tools(tmp_path: Path) -> WorkspaceTools:
    return WorkspaceTools(tmp_path)


def read(tools: WorkspaceTools, **args) -> str:
    return use(tools, "read_file", **args).content


# ---- read_file


@pytest.mark.req("AG-23")
@pytest.mark.parametrize("text", ["one\ntwo\n", "no end", "\n", "äöü €\n", "a\r\nb\r\n"])
def test_a_whole_file_is_its_text_and_nothing_else(tools, tmp_path, text):
    (tmp_path / "f").write_bytes(text.encode())
    assert read(tools, path="f") == text


@pytest.mark.req("AG-23")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"start": 2}, "[f: lines 2-5 of 5]\nb\nc\nd\ne"),
        ({"end": 2}, "[f: lines 1-2 of 5]\na\nb\n"),
        ({"start": 2, "end": 3}, "[f: lines 2-3 of 5]\nb\nc\n"),
        ({"start": 5, "end": 5}, "[f: lines 5-5 of 5]\ne"),
        ({"start": 4, "end": 99}, "[f: lines 4-5 of 5]\nd\ne"),
        ({"start": 1.0, "end": 1.0}, "[f: lines 1-1 of 5]\na\n"),
    ],
)
def test_a_range_is_these_lines_below_a_line_that_says_which(tools, tmp_path, args, expected):
    (tmp_path / "f").write_text("a\nb\nc\nd\ne")
    assert read(tools, path="f", **args) == expected


@pytest.mark.parametrize("args", [{"start": 6}, {"start": 3, "end": 2}])
def test_a_range_that_is_not_there_is_told(tools, tmp_path, args):
    (tmp_path / "f").write_text("a\nb\nc\nd\ne\n")
    error = refusal(tools, "read_file", path="f", **args)
    assert error.kind == "argument"
    assert error.hint


def test_an_empty_file_is_said_to_be_empty(tools, tmp_path):
    (tmp_path / "f").write_text("")
    assert read(tools, path="f") == "[f is empty]"
    assert read(tools, path="f", start=1) == "[f is empty]"


@pytest.mark.parametrize("content", [b"ELF\0\1", os.urandom(4000), b"\xff\xfe" + "text".encode("utf-16-le")])
def test_a_binary_file_is_refused_with_its_size(tools, tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    error = refusal(tools, "read_file", path="f")
    assert error.kind == "argument"
    assert f"{len(content):,} bytes" in str(error)


def test_text_in_another_encoding_is_shown_and_said_to_be_so(tools, tmp_path):
    (tmp_path / "f").write_bytes("one line in latin-1: naïve, and more of it\n".encode("latin-1"))
    shown = read(tools, path="f")
    assert shown.startswith("[not all of this is UTF-8")
    assert shown.endswith("na\ufffdve, and more of it\n")


def test_a_huge_file_is_clipped_and_says_where_to_read_on(tools, tmp_path):
    line = "x" * 99 + "\n"
    (tmp_path / "f").write_text(line * 50_000)
    shown = read(tools, path="f")
    head, _, body = shown.partition("\n")
    assert len(body) <= MOST_BYTES
    assert "of 50,000; clipped" in head
    number = int(head.partition("read on from line ")[2].partition(",")[0])
    assert number == MOST_BYTES // 100 + 1
    assert read(tools, path="f", start=number, end=number) == f"[f: lines {number:,}-{number:,} of 50,000]\n{line}"


def test_one_huge_line_is_clipped_as_well(tools, tmp_path):
    (tmp_path / "f").write_text("x" * (3 * MOST_BYTES))
    shown = read(tools, path="f")
    assert shown.startswith("[f: lines 1-1 of 1; clipped")
    assert len(shown) < MOST_BYTES + 200
    assert refusal(tools, "read_file", path="f", start=2).kind == "argument"


@given(text=st.text(st.sampled_from("ab\n\r"), max_size=30), start=st.integers(1, 12), length=st.integers(0, 12))
def test_any_range_is_the_lines_of_the_file(tmp_path_factory, text, start, length):
    folder = tmp_path_factory.getbasetemp()
    (folder / "ranged").write_bytes(text.encode())
    lines = (
        text.encode().splitlines(keepends=True)
        if "\r" not in text
        else text.encode().replace(b"\n", b"\n\0").split(b"\0")
    )
    lines = [line for line in lines if line]
    wanted = b"".join(lines[start - 1 : start + length])
    tools = WorkspaceTools(folder)
    if not text:
        assert read(tools, path="ranged", start=start) == "[ranged is empty]"
    elif start > len(lines):
        assert refusal(tools, "read_file", path="ranged", start=start, end=start + length).kind == "argument"
    else:
        last = min(start + length, len(lines))
        assert read(tools, path="ranged", start=start, end=start + length) == (
            f"[ranged: lines {start}-{last} of {len(lines)}]\n{wanted.decode()}"
        )


# ---- write_file


@pytest.mark.req("AG-23")
def test_writing_makes_the_file_and_its_folders_and_tells_the_path(tools, tmp_path):
    output = use(tools, "write_file", path="a/b/c.txt", text="hällo\n")
    assert (tmp_path / "a/b/c.txt").read_text() == "hällo\n"
    assert output.changed == ("a/b/c.txt",)


def test_writing_what_is_there_already_changes_nothing(tools, tmp_path):
    (tmp_path / "f").write_text("same")
    before = (tmp_path / "f").stat()
    assert use(tools, "write_file", path="f", text="same").changed == ()
    assert (tmp_path / "f").stat() == before


def test_the_mode_of_a_file_is_kept_and_a_new_one_follows_the_umask(tools, tmp_path):
    (tmp_path / "run.sh").write_text("old")
    (tmp_path / "run.sh").chmod(0o751)
    use(tools, "write_file", path="run.sh", text="new")
    assert stat.S_IMODE((tmp_path / "run.sh").stat().st_mode) == 0o751
    use(tools, "write_file", path="new", text="x")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666 & ~mask


@pytest.mark.req("AG-23")
def test_a_write_replaces_the_file_as_a_whole_and_leaves_nothing_beside_it(tools, tmp_path):
    """Whoever has the old file open goes on reading the old one, to its end."""
    (tmp_path / "f").write_text("old content")
    with (tmp_path / "f").open() as old:
        use(tools, "write_file", path="f", text="new")
        assert old.read() == "old content"
    assert [file.name for file in tmp_path.iterdir()] == ["f"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_a_permission_error(tools, tmp_path):
    (tmp_path / "d").mkdir(mode=0o555)
    assert refusal(tools, "write_file", path="d/f", text="x").kind == "permission"


def test_text_that_cannot_be_encoded_is_refused_and_the_file_is_as_it_was(tools, tmp_path):
    (tmp_path / "f").write_text("old")
    assert refusal(tools, "write_file", path="f", text="\ud800").kind == "argument"
    assert (tmp_path / "f").read_text() == "old"


# ---- edit_file


@pytest.mark.req("AG-23")
def test_one_exact_match_is_replaced(tools, tmp_path):
    (tmp_path / "f").write_bytes(b"a\xff = 1\nb = 2\n")
    output = use(tools, "edit_file", path="f", old="b = 2", new="b = 3")
    assert (tmp_path / "f").read_bytes() == b"a\xff = 1\nb = 3\n"
    assert output.changed == ("f",)
    assert "line 2" in output.content


@pytest.mark.req("AG-23")
def test_a_match_that_is_not_unique_changes_nothing_and_is_told_with_the_lines(tools, tmp_path):
    (tmp_path / "f").write_text("x = 1\ny\nx = 1\n")
    error = refusal(tools, "edit_file", path="f", old="x = 1", new="x = 2")
    assert error.kind == "argument"
    assert "2 times" in str(error)
    assert "lines 1, 3" in str(error)
    assert (tmp_path / "f").read_text() == "x = 1\ny\nx = 1\n"


def test_overlapping_matches_are_not_unique(tools, tmp_path):
    (tmp_path / "f").write_text("aaa")
    assert "2 times" in str(refusal(tools, "edit_file", path="f", old="aa", new="b"))


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("def f():\n  return 1", "differs only in white space from lines 1-2"),
        ("    retrun 1", "nearest is lines 1-3"),
        ("nothing like it whatsoever", "nothing in it comes near"),
    ],
)
def test_a_miss_says_what_comes_near(tools, tmp_path, old, hint):
    (tmp_path / "f").write_text("def f():\n    return 1\n\n\ndef g():\n    pass\n")
    error = refusal(tools, "edit_file", path="f", old=old, new="x")
    assert error.kind == "argument"
    assert "0 times" in str(error)
    assert hint in error.hint


def test_line_ends_of_the_file_are_kept(tools, tmp_path):
    (tmp_path / "f").write_bytes(b"a\r\nb\r\nc\r\n")
    use(tools, "edit_file", path="f", old="a\nb", new="x\ny\nz")
    assert (tmp_path / "f").read_bytes() == b"x\r\ny\r\nz\r\nc\r\n"


def test_a_miss_in_a_file_of_one_huge_line_is_told_at_once(tools, tmp_path):
    (tmp_path / "f").write_text("ab" * 1_000_000)
    assert "0 times" in str(refusal(tools, "edit_file", path="f", old="abc" * 1000, new="x"))


@given(before=st.text("ab\n", max_size=12), old=st.text("ab\n", min_size=1, max_size=3), new=st.text("abc", max_size=3))
def test_an_edit_is_one_replacement_or_none_at_all(before, old, new):
    places = sum(before.startswith(old, at) for at in range(len(before)))
    if places == 1 and old != new:
        assert edit("f", before.encode(), old, new).content.decode() == before.replace(old, new)
    else:
        with pytest.raises(ToolError):
            edit("f", before.encode(), old, new)


# ---- list_dir


@pytest.mark.req("AG-23")
def test_a_folder_is_listed_with_what_each_entry_is(tools, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("123")
    (tmp_path / "l").symlink_to("d")
    (tmp_path / os.fsdecode(b"b\xff")).write_text("")
    assert use(tools, "list_dir").content == "b\ufffd (0 bytes)\nd/\nf (3 bytes)\nl -> d"
    assert use(tools, "list_dir", path="d").content == "[d is empty]"


def test_a_folder_with_very_many_entries_is_cut_and_says_so(tools, tmp_path):
    for number in range(1005):
        (tmp_path / f"{number:04}").touch()
    assert use(tools, "list_dir").content.endswith("0999 (0 bytes)\n[and 5 more: use glob]")


# ---- what a crash leaves


def probes(tools: WorkspaceTools, name: str, **args):
    return anyio.run(tools.prepare, call(tools, name, **args))


def look(tools: WorkspaceTools, name: str, found, **args) -> str:
    return anyio.run(tools.probe, call(tools, name, **args), found)


WRITES = [
    ("write_file", {"path": "f", "text": "new"}, "old", "new"),
    ("write_file", {"path": "d/e/g", "text": "new"}, None, "new"),
    ("write_file", {"path": "f", "text": ""}, None, ""),
    ("edit_file", {"path": "f", "old": "l", "new": "LL"}, "old", "oLLd"),
]


@pytest.mark.req("AG-21", "AG-23")
@pytest.mark.parametrize(("name", "args", "before", "after"), WRITES)
def test_an_intent_holds_digests_of_the_file_before_and_after_and_changes_nothing(
    tools, tmp_path, name, args, before, after
):
    if before is not None:
        (tmp_path / args["path"]).write_text(before)
    (probe,) = probes(tools, name, **args)
    assert probe.path == args["path"]
    assert probe.before == ("" if before is None else blob_address(before.encode()))
    assert probe.after == blob_address(after.encode())
    assert {file.name for file in tmp_path.iterdir()} == (set() if before is None else {"f"})


@pytest.mark.req("AG-21")
@pytest.mark.parametrize(("name", "args", "before", "after"), WRITES)
def test_a_look_at_the_file_tells_whether_the_write_happened(tools, tmp_path, name, args, before, after):
    if before is not None:
        (tmp_path / args["path"]).write_text(before)
    intended = probes(tools, name, **args)
    assert look(tools, name, intended, **args) == "not-started"
    use(tools, name, **args)
    assert look(tools, name, intended, **args) == "done"
    (tmp_path / args["path"]).write_text("somebody else was here")
    assert look(tools, name, intended, **args) == "unknown"
    (tmp_path / args["path"]).unlink()
    (tmp_path / args["path"]).mkdir()
    assert look(tools, name, intended, **args) == "unknown"


@pytest.mark.req("AG-21")
def test_of_a_command_nobody_can_tell(tools):
    assert probes(tools, "run_command", command="touch x") == ()
    assert look(tools, "run_command", (), command="touch x") == "unknown"


def test_a_write_that_cannot_succeed_is_refused_before_its_intent(tools, tmp_path):
    (tmp_path / "f").write_text("x")
    for name, args in (
        ("edit_file", {"path": "f", "old": "nope", "new": "y"}),
        ("edit_file", {"path": "missing", "old": "a", "new": "b"}),
        ("write_file", {"path": "../f", "text": "y"}),
        ("write_file", {"path": ".git/x", "text": "y"}),
    ):
        with pytest.raises(ToolError):
            probes(tools, name, **args)


KILLED_WRITE = """
import os, sys, signal
from treadle.tools.builtin import contents
from treadle.tools.builtin.paths import Workspace
real = os.{point}
def deadly(*args, **options):
    if {after}: real(*args, **options)
    os.kill(os.getpid(), signal.SIGKILL)
os.{point} = deadly
with Workspace(sys.argv[1]).locate("f") as place:
    contents.replace(place, b"new" * 100_000)
"""


@pytest.mark.req("AG-21", "AG-23")
@pytest.mark.parametrize(
    ("point", "after", "found"),
    [
        ("fchmod", False, "not-started"),
        ("fsync", False, "not-started"),
        ("rename", False, "not-started"),
        ("rename", True, "done"),
    ],
)
def test_a_write_killed_at_any_point_is_whole_or_never_was_and_its_remains_go(tools, tmp_path, point, after, found):
    (tmp_path / "f").write_text("old")
    args = {"path": "f", "text": "new" * 100_000}
    intended = probes(tools, "write_file", **args)
    script = KILLED_WRITE.format(point=point, after=after)
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "f").read_text() == ("old" if found == "not-started" else args["text"])
    assert look(tools, "write_file", intended, **args) == found
    assert [file.name for file in tmp_path.iterdir()] == ["f"]
    use(tools, "write_file", **args)
    assert (tmp_path / "f").read_text() == args["text"]
