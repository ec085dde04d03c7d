"""Loops that work apart, as a person runs them: worktrees, conflicts, merges, what a kill leaves, and what is refused (FR-16)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.commandline import CommandLine, Ran, finish
from support.workspaces import contents, git, repository
from treadle.testing.crash import SCOPE_POINTS

GOOD = "grep -q 'a + b' kit.py"
FIX = "sed -i 's/a - b/a + b/' kit.py"
CLASH = """\
grep -q '<<<<' kit.py && { printf 'def add(a, b):\\n    return a + b  # theirs, and ours\\n' > kit.py; exit; }
sed -i 's/a - b/a + b/' kit.py
cd %s && sed -i 's/a - b/b - a/' kit.py && git -c user.name=T -c user.email=t@t commit -qam theirs
"""


def home(tmp_path: Path) -> CommandLine:
    cli = CommandLine(tmp_path)
    repository(cli.workspace)
    return cli


def isolated(cli: CommandLine, command: str = FIX, *more: str, **options: Any) -> Ran:
    check = () if "--check" in more else ("--check", GOOD)
    return cli("run", "Mend add", "--isolate", "--agent-command", command, *check, "--json", "-q", *more, **options)


def listed(cli: CommandLine) -> list[dict[str, Any]]:
    return cli("scope", "ls", "--json").document


def armed(cli: CommandLine) -> object:
    return json.loads(cli("frame", "show", "last").out).get("conflictCheckArmed", "absent")


@pytest.mark.req("FR-16")
def test_accepted_work_is_merged_and_nothing_else_is_touched_meanwhile(tmp_path: Path) -> None:
    cli = home(tmp_path)
    before = contents(cli.workspace)
    ran = isolated(cli, f"{FIX}; echo new > new.txt; ls {cli.workspace}; grep -q 'a - b' {cli.workspace}/kit.py")
    assert ran.code == 0, ran.err
    assert ran.document["scope"]["closed"] == "merged"
    after = contents(cli.workspace)
    assert set(after) - set(before) == {"new.txt"}
    assert "a + b" in (cli.workspace / "kit.py").read_text()
    assert git(cli.workspace, "status", "--porcelain") == ""
    assert git(cli.workspace, "branch", "--list", "treadle/*") == ""
    assert listed(cli) == []
    assert armed(cli) is True
    assert "+    return a + b" in cli("diff", "last").out


@pytest.mark.req("FR-16")
def test_the_check_is_armed_by_the_first_write_and_absent_without_a_scope(tmp_path: Path) -> None:
    cli = home(tmp_path)
    assert isolated(cli, "true", "--check", "true").document["scope"]["closed"] == "unchanged"
    assert armed(cli) is False
    assert cli("run", "Look", "--agent-command", FIX, "--check", "true", "-q").code == 0
    assert armed(cli) == "absent"


@pytest.mark.req("FR-16")
def test_a_conflict_becomes_a_rejection_that_names_the_paths_and_the_next_round_settles_it(tmp_path: Path) -> None:
    cli = home(tmp_path)
    ran = isolated(cli, CLASH % cli.workspace)
    assert ran.code == 0, ran.err
    assert ran.document["rounds"] == 2
    assert ran.document["scope"]["conflicts"] == ["kit.py"]
    log = cli("log", "last").out
    assert "in conflict in: kit.py" in log
    assert (cli.workspace / "kit.py").read_text().endswith("a + b  # theirs, and ours\n")
    merges = git(cli.workspace, "log", "--format=%s").split("\n")
    assert "theirs" in merges
    assert not any("bring in" in subject for subject in merges)


@pytest.mark.req("FR-16")
def test_a_conflict_in_the_last_round_leaves_the_work_on_its_branch_for_a_person(tmp_path: Path) -> None:
    cli = home(tmp_path)
    ran = isolated(cli, CLASH % cli.workspace, "--max-rounds", "1")
    assert (ran.code, ran.document["code"]) == (1, "exhausted")
    assert "kit.py" in ran.document["outcome"]["evidence"]
    assert "next     treadle scope merge" in cli("why", "last").out, "which says how to settle it"
    told = cli("resume", "last").err
    assert "in conflict with main in: kit.py" in told
    assert "once that is settled" in told, "the one line of the ending is not cut"
    (row,) = listed(cli)
    assert (row["files"], row["ahead"], row["status"]) == ("clean", 1, "failed")
    refused = cli("scope", "merge", "last")
    assert (refused.code, "in conflict with main in: kit.py" in refused.err) == (1, True), refused.err
    assert "b - a" in (cli.workspace / "kit.py").read_text()
    assert cli("scope", "drop", "last").code == 2
    assert cli("scope", "drop", "last", "--force").code == 0
    assert listed(cli) == []


@pytest.mark.req("FR-16")
def test_a_branch_is_left_as_told_and_merged_by_a_person(tmp_path: Path) -> None:
    cli = home(tmp_path)
    ran = isolated(cli, FIX, "--on-accept", "branch")
    assert ran.document["scope"]["closed"] == "branch"
    assert "a - b" in (cli.workspace / "kit.py").read_text()
    (row,) = listed(cli)
    assert (row["files"], row["ahead"]) == ("branch", 1)
    assert "+    return a + b" in cli("scope", "diff", "last").out
    assert cli("scope", "merge", "last").code == 0
    assert "a + b" in (cli.workspace / "kit.py").read_text()
    assert (listed(cli), git(cli.workspace, "branch", "--list", "treadle/*")) == ([], "")


@pytest.mark.req("FR-16")
def test_uncommitted_changes_in_the_way_keep_the_work_and_are_not_lost(tmp_path: Path) -> None:
    cli = home(tmp_path)
    (cli.workspace / "kit.py").write_text("mine\n")
    ran = isolated(cli)
    assert (ran.code, ran.document["scope"]["closed"]) == (0, "kept")
    assert "kit.py" in ran.document["scope"]["note"]
    assert (cli.workspace / "kit.py").read_text() == "mine\n"
    git(cli.workspace, "checkout", "-q", "kit.py")
    assert cli("scope", "merge", "last").code == 0
    assert "a + b" in (cli.workspace / "kit.py").read_text()


def test_work_is_merged_into_its_branch_also_where_another_is_checked_out_now(tmp_path: Path) -> None:
    cli = home(tmp_path)
    assert isolated(cli, f"{FIX}; cd {cli.workspace} && git switch -q -c elsewhere").code == 0
    assert "a - b" in (cli.workspace / "kit.py").read_text()
    assert "a + b" in git(cli.workspace, "show", "main:kit.py")


@pytest.mark.req("FR-16")
def test_a_worktree_that_somebody_deleted_is_made_anew(tmp_path: Path) -> None:
    cli = home(tmp_path)
    assert isolated(cli, environ={"TREADLE_CRASH_AT": "before-act"}).code == -9
    (row,) = listed(cli)
    shutil.rmtree(row["folder"])
    assert listed(cli)[0]["files"] == "missing"
    git(cli.workspace, "worktree", "prune")
    git(cli.workspace, "branch", "-D", row["branch"])
    told = cli("scope", "diff", "last")
    assert (told.code, "are no more" in told.err) == (2, True)
    ran = cli("resume", "last", "--json", "-q")
    assert (ran.code, ran.document["scope"]["closed"]) == (0, "merged"), ran.err
    assert "scope.restored" in cli("log", "last").out
    assert "a + b" in (cli.workspace / "kit.py").read_text()


def no_commit(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")


def detached(folder: Path) -> None:
    repository(folder)
    git(folder, "switch", "-q", "--detach")


@pytest.mark.req("FR-16", "SV-02")
@pytest.mark.parametrize(
    ("prepare", "told"),
    [(lambda _: None, "git repository"), (no_commit, "Commit first"), (detached, "HEAD is detached")],
    ids=["no repository", "no commit", "detached HEAD"],
)
def test_what_has_no_place_to_merge_into_is_refused_before_anything_starts(
    tmp_path: Path, prepare: Any, told: str
) -> None:
    cli = CommandLine(tmp_path)
    prepare(cli.workspace)
    ran = isolated(cli, FIX, "--check", "true")
    assert ran.code == 2
    assert told in ran.err
    assert cli("ls", "--json").document == []
    assert listed(cli) == []


def test_a_detached_head_may_leave_a_branch(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    detached(cli.workspace)
    assert isolated(cli, FIX, "--on-accept", "branch").code == 0
    assert "a + b" in git(cli.workspace, "show", f"{listed(cli)[0]['branch']}:kit.py")


def test_submodules_stay_as_they_are_and_are_said_to_be_empty(tmp_path: Path) -> None:
    cli = home(tmp_path)
    repository(tmp_path / "inner", {"inner.txt": "x\n"})
    git(cli.workspace, "submodule", "--quiet", "add", str(tmp_path / "inner"), "sub")
    git(cli.workspace, "commit", "-qm", "a submodule")
    ran = cli("run", "Mend", "--isolate", "--agent-command", FIX, "--check", GOOD)
    assert ran.code == 0, ran.err
    assert "submodules are empty" in ran.err
    assert git(cli.workspace, "status", "--porcelain") == ""
    assert (cli.workspace / "sub" / "inner.txt").is_file()
    assert "a + b" in (cli.workspace / "kit.py").read_text()


def test_what_is_written_inside_a_submodule_is_kept_and_said(tmp_path: Path) -> None:
    cli = home(tmp_path)
    repository(tmp_path / "inner", {"inner.txt": "x\n"})
    git(cli.workspace, "submodule", "--quiet", "add", str(tmp_path / "inner"), "sub")
    git(cli.workspace, "commit", "-qm", "a submodule")
    ran = cli("run", "Mend", "--isolate", "--agent-command", "echo y > sub/new.txt", "--check", "true", "--json", "-q")
    assert (ran.code, ran.document["scope"]["closed"]) == (0, "kept"), ran.err
    assert "inside submodules is no part of it: sub" in ran.document["scope"]["note"]
    (row,) = listed(cli)
    assert (Path(row["folder"]) / "sub" / "new.txt").read_text() == "y\n"


def test_a_folder_inside_a_repository_is_the_same_folder_of_the_worktree(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    repository(cli.workspace, {"deep/kit.py": "a - b\n", "README": "x\n"})
    assert isolated(cli, FIX, "--workspace", str(cli.workspace / "deep")).code == 0
    assert (cli.workspace / "deep" / "kit.py").read_text() == "a + b\n"


@pytest.mark.req("FR-16")
def test_two_loops_in_one_repository_both_arrive(tmp_path: Path) -> None:
    cli = home(tmp_path)
    running = [
        cli.start(
            *(
                "run",
                f"Write {n}",
                "--isolate",
                "--agent-command",
                f"echo {n} > file{n}.txt",
                "--check",
                f"test -e file{n}.txt",
            ),
            *("-q", "--json"),
        )
        for n in range(4)
    ]
    ended = [finish(one) for one in running]
    assert [one.code for one in ended] == [0, 0, 0, 0], [one.err for one in ended]
    assert [one.document["scope"]["closed"] for one in ended] == ["merged"] * 4
    assert {f"file{n}.txt" for n in range(4)} <= set(contents(cli.workspace))
    assert git(cli.workspace, "status", "--porcelain") == ""


@pytest.mark.req("FR-16")
@pytest.mark.parametrize("point", SCOPE_POINTS)
def test_a_kill_at_any_instant_loses_no_work_and_merges_it_once(tmp_path: Path, point: str) -> None:
    cli = home(tmp_path)
    ran = isolated(cli, CLASH % cli.workspace, environ={"TREADLE_CRASH_AT": point})
    assert ran.code == -9, ran.err
    if point in ("before-scope", "after-scope"):
        for row in listed(cli):
            assert row["status"] == "none"
            assert cli("scope", "drop", row["execution_id"]).code == 0
        assert listed(cli) == []
        assert git(cli.workspace, "branch", "--list", "treadle/*") == ""
        ran = isolated(cli, CLASH % cli.workspace)
    else:
        if point == "before-conflict-check":
            assert cli("scope", "drop", "last").code == 2, "what is not committed is not dropped unasked"
        ran = cli("resume", "last", "--json", "-q")
    assert (ran.code, ran.document["scope"]["closed"]) == (0, "merged"), ran.err
    text = (cli.workspace / "kit.py").read_text()
    assert text == "def add(a, b):\n    return a + b  # theirs, and ours\n"
    assert git(cli.workspace, "status", "--porcelain") == ""
    subjects = git(cli.workspace, "log", "--format=%s").split()
    assert subjects.count("theirs") == 1
    assert listed(cli) == []
    assert subprocess.run(["git", "fsck", "--no-dangling"], cwd=cli.workspace, check=False).returncode == 0
