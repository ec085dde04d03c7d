"""A map from a folder and a task: what comes first, what a second one reads, and folders that are not as one would wish."""

import os
import subprocess
from pathlib import Path

import pytest

from treadle.context.map import ContextMap, build_map

WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa".split()


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", root, *identity, *arguments], check=True, capture_output=True)


def commit(root: Path, message: str, files: dict[str, str]) -> None:
    git(write(root, files), "add", "-A")
    git(root, "commit", "-q", "-m", message)


def first(found: ContextMap) -> str:
    return found.entries[0].path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository of sixteen modules that differ by one word."""
    files = {f"src/{word}.py": f"def {word}_value():\n    return {word!r}\n" for word in WORDS}
    git(tmp_path, "init", "-q")
    commit(tmp_path, "first", files)
    return tmp_path


@pytest.mark.req("AG-05")
@pytest.mark.parametrize("word", ["golf", "papa"])
def test_the_file_that_the_task_speaks_of_comes_first(root: Path, word: str) -> None:
    (root / f"src/{word}.py").rename(root / "src/unnamed.py")
    assert first(build_map(root, f"Make {word} faster", 500)) == "src/unnamed.py"


@pytest.mark.req("AG-05")
def test_a_path_in_the_task_is_found(root: Path) -> None:
    assert first(build_map(root, "Change src/kilo.py", 500)) == "src/kilo.py"


@pytest.mark.req("AG-05")
def test_files_of_like_commits_come_first(root: Path) -> None:
    for number, word in enumerate(WORDS):
        message = "Handle umlauts in names" if word == "lima" else f"Something else {number}"
        commit(root, message, {f"src/{word}.py": f"def {word}_value():\n    return {number}\n"})
    assert first(build_map(root, "Umlauts break", 500)) == "src/lima.py"


@pytest.mark.req("AG-05")
def test_the_file_that_changed_last_comes_first_where_the_task_says_nothing(root: Path) -> None:
    commit(root, "second", {"src/mike.py": "def mike_value():\n    return 0\n"})
    os.utime(root / "src/mike.py", (1, 1))
    assert first(build_map(root, "", 500)) == "src/mike.py"


@pytest.mark.req("AG-05")
def test_source_stands_before_tests_unless_the_task_names_the_test(root: Path) -> None:
    (root / "src/golf.py").rename(root / "src/old_golf.py")
    commit(root, "renamed", {})
    commit(root, "tests", {"spec/golf_spec.py": "".join(f"def test_golf_{number}(): golf()\n" for number in range(9))})
    assert first(build_map(root, "Make golf faster", 500)) == "src/old_golf.py"
    named = build_map(root, "spec/golf_spec.py is flaky", 500)
    assert "spec/golf_spec.py" in [entry.path for entry in named.entries[:2]]


@pytest.mark.req("AG-05")
def test_a_merge_begins_with_the_files_in_conflict(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "other")
    commit(root, "theirs", {"src/echo.py": "theirs = 1\n"})
    git(root, "checkout", "-q", "-")
    commit(root, "ours", {"src/echo.py": "ours = 1\n", "src/golf.py": "golf = 2\n"})
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "-q", "other")
    found = build_map(root, "Resolve the merge of golf", 500)
    assert (found.modality, first(found)) == ("merge", "src/echo.py")


@pytest.mark.req("AG-05")
def test_a_review_begins_with_what_has_been_changed(root: Path) -> None:
    write(root, {"src/hotel.py": "def hotel_value():\n    return 'new'\n"})
    assert first(build_map(root, "Review golf", 500)) == "src/hotel.py"


def test_a_greenfield_task_begins_with_the_manifest(root: Path) -> None:
    commit(root, "manifest", {"pyproject.toml": "[project]\nname = 'x'\n"})
    assert first(build_map(root, "Write a new service from scratch", 500)) == "pyproject.toml"


@pytest.mark.req("AG-05")
def test_the_three_levels_share_a_budget(root: Path) -> None:
    body = "".join(f"def golf_{number}():\n    return {number}\n\n" for number in range(300))
    commit(root, "large", {"src/golf.py": body})
    levels = {entry.path: entry.level for entry in build_map(root, "Fix golf_7", 400).entries}
    assert levels["src/golf.py"] == "skeleton"
    assert "tree" in levels.values()
    assert "full" in [entry.level for entry in build_map(root, "Fix golf_7", 8_000).entries]


@pytest.mark.req("AG-05")
def test_of_a_long_file_the_definitions_of_the_task_are_shown(root: Path) -> None:
    body = "".join(f"def part_{word}_{number}():\n    return {word}\n\n" for number in range(20) for word in WORDS)
    commit(root, "large", {"src/large.py": body.replace("part_kilo_3", "needle_of_kilo")})
    assert ":def needle_of_kilo():" in build_map(root, "src/large.py: the needle is wrong", 300).text
    commit(
        root,
        "again",
        {"src/large.py": body.replace("part_papa_9():\n    return papa", "part_papa_9():\n    return needle")},
    )
    assert ":def part_papa_9():" in build_map(root, "src/large.py: the needle is wrong", 300).text


@pytest.mark.req("AG-05")
def test_the_same_map_comes_from_the_cache(root: Path, tmp_path: Path) -> None:
    cache = tmp_path.parent / f"{tmp_path.name}-cache"
    maps = [build_map(root, "Make golf faster", 500, folder) for folder in (None, cache, cache)]
    assert maps[0] == maps[1] == maps[2]
    assert len(list(cache.glob("*.db"))) == 1


def test_a_cache_that_is_held_by_another_process_is_done_without(root: Path, tmp_path: Path) -> None:
    import sqlite3

    cache = tmp_path.parent / f"{tmp_path.name}-cache"
    wanted = build_map(root, "Make golf faster", 500, cache)
    write(root, {"src/quebec.py": "quebec = 1\n"})
    (file,) = cache.glob("*.db")
    holder = sqlite3.connect(file)
    holder.execute("begin immediate")
    found = build_map(root, "Make golf faster", 500, cache)
    holder.close()
    assert len(found.entries) == len(wanted.entries) + 1


def test_a_part_of_a_repository_knows_its_own_past(root: Path) -> None:
    commit(root, "second", {"src/mike.py": "mike = 0\n"})
    os.utime(root / "src/mike.py", (1, 1))  # so that the time of the file does not give it away
    assert first(build_map(root / "src", "", 500)) == "mike.py"


@pytest.mark.parametrize("repository", [False, True])
def test_an_empty_folder_has_an_empty_map(tmp_path: Path, repository: bool) -> None:
    if repository:
        git(tmp_path, "init", "-q")
    found = build_map(tmp_path, "Begin", 500)
    assert found.entries == ()
    assert "0 files" in found.text


def test_a_folder_without_git_is_ranked_by_its_words(tmp_path: Path) -> None:
    write(tmp_path, {f"{word}.txt": f"about {word}\n" for word in WORDS})
    assert first(build_map(tmp_path, "Who wrote of oscar?", 500)) == "oscar.txt"


@pytest.mark.req("AG-05")
def test_binary_gigantic_unnameable_and_looping_files_stop_no_map(tmp_path: Path) -> None:
    write(tmp_path, {"good.py": "def good(): ...\n"})
    (tmp_path / "binary.py").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "long.py").write_text("x = '" + "a" * 500_000 + "'\n")
    with (tmp_path / "gigantic.py").open("wb") as file:
        file.truncate(1 << 40)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.py")).write_text("def cafe(): ...\n")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = build_map(tmp_path, "good cafe", 2_000)
    assert {entry.path for entry in found.entries} >= {"good.py", "binary.py", "gigantic.py", "loop", "caf\udce9.py"}
    found.text.encode()


@pytest.mark.req("AG-05")
def test_a_past_with_names_that_are_no_text_is_kept(root: Path, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(root) + b"/src/caf\xe9.py"))
    odd.write_text("def cafe(): ...\n")
    commit(root, "A cafe for umlauts", {})
    maps = [build_map(root, "Umlauts break", 500, tmp_path / "cache") for _ in range(2)]
    assert [first(found) for found in maps] == ["src/caf\udce9.py"] * 2


def test_a_task_that_is_no_text_is_read_as_far_as_it_is(root: Path) -> None:
    assert first(build_map(root, "golf \udce9_value", 500)) == "src/golf.py"


def test_a_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError):
        build_map(tmp_path / "missing", "task", 500)


@pytest.mark.parametrize("task", ["", "\n\n", "(((", "a" * 100_000, "`" * 999, "日本語のタスク", "\0", "x_" * 5_000])
def test_any_text_is_a_task(root: Path, task: str) -> None:
    assert build_map(root, task, 300).tokens <= 300
