"""What a scan lists, with git and without, and what it refuses to follow."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from treadle.context.scan import MOST_BYTES, kind_of, scan

FILES = {
    ".gitignore": "*.log\n/build/\n!kept.log\n",
    "a.py": "a = 1\n",
    "noise.log": "x",
    "kept.log": "x",
    "build/out.py": "x",
    "sub/.gitignore": "secret.txt\n!noise.log\n",
    "sub/secret.txt": "x",
    "sub/noise.log": "x",
    "sub/build/fine.py": "x",
    "sub/deep/secret.txt": "x",
}
LISTED = [".gitignore", "a.py", "kept.log", "sub/.gitignore", "sub/build/fine.py", "sub/noise.log"]


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", root, *arguments], check=True, capture_output=True)


def paths(root: Path) -> list[str]:
    return [file.path for file in scan(root).files]


@pytest.mark.req("AG-05")
def test_a_repository_lists_what_git_does_not_ignore(tmp_path: Path) -> None:
    git(write(tmp_path, FILES), "init", "-q")
    found = scan(tmp_path)
    assert found.git
    assert [file.path for file in found.files] == LISTED


@pytest.mark.req("AG-05")
def test_a_folder_without_git_honours_the_same_ignore_files(tmp_path: Path) -> None:
    found = scan(write(tmp_path, FILES))
    assert not found.git
    assert [file.path for file in found.files] == LISTED


def test_a_folder_that_the_repository_around_it_ignores_is_walked(tmp_path: Path) -> None:
    git(write(tmp_path, FILES), "init", "-q")
    assert paths(tmp_path / "build") == ["out.py"]


def test_paths_of_a_part_of_a_repository_start_at_that_part(tmp_path: Path) -> None:
    git(write(tmp_path, FILES), "init", "-q")
    assert paths(tmp_path / "sub") == [".gitignore", "build/fine.py", "noise.log"]


def test_a_file_that_git_tracks_but_that_is_gone_is_not_listed(tmp_path: Path) -> None:
    git(write(tmp_path, {"a.py": "", "b.py": ""}), "init", "-q")
    git(tmp_path, "add", "-A")
    (tmp_path / "a.py").unlink()
    assert paths(tmp_path) == ["b.py"]


@pytest.mark.req("AG-05")
@pytest.mark.parametrize("repository", [False, True])
def test_a_loop_of_links_is_listed_and_not_followed(tmp_path: Path, repository: bool) -> None:
    write(tmp_path, {"a/b.py": ""})
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "self").symlink_to("self")
    if repository:
        git(tmp_path, "init", "-q")
    found = {file.path: file.readable for file in scan(tmp_path).files}
    assert found == {"a/b.py": True, "a/up": False, "self": False}


def test_a_pipe_and_a_socket_are_no_files(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": ""})
    os.mkfifo(tmp_path / "pipe.py")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket.py"))
        assert paths(tmp_path) == ["a.py"]


@pytest.mark.parametrize("repository", [False, True])
def test_a_name_that_is_no_text_is_listed(tmp_path: Path, repository: bool) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.py"))).write_text("")
    if repository:
        git(tmp_path, "init", "-q")
    assert [os.fsencode(path) for path in paths(tmp_path)] == [b"caf\xe9.py"]


def test_a_gigantic_file_is_known_by_its_path_alone(tmp_path: Path) -> None:
    with (tmp_path / "big.py").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    (found,) = scan(tmp_path).files
    assert (found.size, found.readable) == (MOST_BYTES + 1, False)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_closed_folder_is_counted_and_passed_over(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "", "closed/b.py": ""})
    (tmp_path / "closed").chmod(0)
    found = scan(tmp_path)
    (tmp_path / "closed").chmod(0o700)
    assert ([file.path for file in found.files], found.unreadable) == (["a.py"], 1)


def test_an_empty_folder_has_no_files(tmp_path: Path) -> None:
    assert scan(tmp_path).files == []
    git(tmp_path, "init", "-q")
    assert scan(tmp_path).files == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/app.py", "source"),
        ("latest.go", "source"),
        ("contest/app.rb", "source"),
        ("tests/test_app.py", "test"),
        ("app_test.go", "test"),
        ("src/FooTest.java", "test"),
        ("docs/conf.py", "docs"),
        ("README.md", "docs"),
        ("CHANGELOG", "docs"),
        ("examples/run.py", "example"),
        ("pyproject.toml", "setup"),
        ("Makefile", "setup"),
        ("setup.py", "source"),
        ("vendor/x/y.go", "vendored"),
        ("web/app.min.js", "vendored"),
        ("logo.png", "asset"),
        ("data.json", "other"),
    ],
)
def test_a_path_tells_what_a_file_is_for(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_an_ignore_file_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    (tmp_path / "a.py").write_text("x = 1\n")
    assert [one.path for one in scan(tmp_path).files] == ["a.py"]
