"""`treadle map` as a person and as a program uses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commandline import InProcess


@pytest.fixture
def cli(tmp_path: Path) -> InProcess:
    """A repository of three modules, and a file that it ignores."""
    cli = InProcess(tmp_path).git()
    for name in ("parser", "printer", "reader"):
        cli.write(f"{name}.py", f"class {name.title()}:\n    def {name}_main(self):\n        return 1\n" * 40)
    cli.write("ignored.py", "def printer(): ...\n")
    cli.write(".gitignore", "ignored.py\n")
    return cli


@pytest.mark.req("AG-05")
def test_the_map_has_paths_from_the_root_with_definitions_below(cli: InProcess) -> None:
    ran = cli("map", "--task", "The printer is slow", "--budget", "90")
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert lines[1] == "printer.py"
    assert lines[2].endswith(":class Printer:")
    assert "Left out" in lines[-1]
    assert "ignored.py" not in ran.out
    assert len(ran.out) <= 90 * 4


@pytest.mark.req("AG-05")
def test_a_task_file_is_the_same_task_and_another_folder_the_same_map(cli: InProcess, tmp_path: Path) -> None:
    task = tmp_path / "task.txt"
    task.write_text("The printer is slow")
    said = cli("map", "--task", "The printer is slow")
    assert said.out == cli("map", "--task-file", str(task)).out
    assert said.out == cli("map", "--task-file", str(task), "--path", str(cli.workspace), cwd=tmp_path).out
    assert said.out == cli("map", "--task", "The printer is slow", "--no-cache").out


def test_programs_get_one_document(cli: InProcess) -> None:
    found = cli("map", "--task", "Fix the printer", "--budget", "90", "--json").document
    assert (found["modality"], found["budget"], found["entries"][0]["path"]) == ("debug", 90, "printer.py")
    assert found["tokens"] <= 90
    assert found["files_left"] + len(found["entries"]) == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--path", "nowhere"), "does not exist"),
        (("--path", "parser.py"), "no folder"),
        (("--task-file", "nowhere"), "nowhere"),
        (("--task", "a", "--task-file", "parser.py"), "leave one out"),
        (("--budget", "0"), "--budget"),
        (("--budget", "many"), "--budget"),
        (("--budget", "2"), "no room"),
    ],
)
def test_what_cannot_be_mapped_is_refused(cli: InProcess, arguments: tuple[str, ...], said: str) -> None:
    ran = cli("map", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
