"""How a command ends that does not come to its document: exit code, words, and the error document of `--json`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.commandline import CommandLine, InProcess
from treadle.cli.refusal import UNREAD, Signalled, refused, signals_heard
from treadle.core.errors import LedgerFull

RUN = ("run", "Count", "--agent-command", "echo 42 > answer.txt", "--check", "grep -q 42 answer.txt")


@pytest.mark.req("SV-02", "SV-03")
@pytest.mark.parametrize(
    "arguments",
    [("run", "x", "--max-rounds", "none"), ("show", "nobody"), ("nosuch",), ("lease", "nosuch"), ("run", "--nosuch")],
)
def test_what_is_wrong_is_a_document_for_programs(arguments: tuple[str, ...], tmp_path: Path) -> None:
    ran = InProcess(tmp_path)(*arguments, "--json")
    assert (ran.code, ran.document["exit_code"]) == (2, 2)
    error = ran.document["error"]
    assert error["kind"].endswith(("Error", "Execution"))
    assert error["message"] in ran.err
    assert error["next"]


@pytest.mark.req("SV-02", "SV-03")
def test_a_store_that_fails_has_a_code_of_its_own_and_says_what_to_type(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    error = LedgerFull("/x.db: no space is left.")
    error.next = "treadle resume ABC --store sqlite:////x.db"
    assert refused(error, json=True, command="run") == 5
    assert b'"next":"treadle resume ABC --store sqlite:////x.db"' in capfdbinary.readouterr().out


@pytest.mark.req("SV-02")
def test_a_suggested_command_names_the_store_that_was_named(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    store = f"sqlite:///{tmp_path}/other.db"
    cli(*RUN, "-q", "--store", store)
    assert f"--store {store}" in cli("fork", "last", "--store", store).err
    carried, other = str(tmp_path / "carried.json"), f"sqlite:///{tmp_path}/third.db"
    cli("frame", "export", "last", carried, "--store", store)
    assert cli("frame", "import", carried, "--store", other).err.strip().endswith(f"--store {other}")


@pytest.mark.req("SV-02")
def test_an_execution_that_is_named_where_a_file_belongs_is_not_written_over(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    cli(*RUN, "-q")
    for name in ("last", cli("show", "last", "--json").document["execution_id"]):
        ran = cli("ledger", "export", name)
        assert (ran.code, f"ledger export FILE {name}" in ran.err) == (2, True)


@pytest.mark.req("SV-02")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_anything_listens_ends_it_in_words(number: signal.Signals) -> None:
    with pytest.raises(Signalled) as stopped, signals_heard():
        signal.raise_signal(number)
    assert stopped.value.exit_code == 128 + number
    assert signal.getsignal(number) == signal.SIG_DFL


@pytest.mark.req("SV-02")
def test_a_reader_that_has_had_enough_is_no_failure_of_the_command(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    cli(*RUN, "-q")
    for command in (("show", "last"), ("ls", "--json")):
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "wb") as gone:
            process = cli.start(*command, stdout=gone)
            process.communicate(timeout=60)
        assert process.returncode == UNREAD


@pytest.mark.req("SV-02", "FR-11")
@pytest.mark.parametrize(
    ("act", "check"), [("true", "rm -rf {}; false"), ("rm -rf {}", "true")], ids=["by the check", "by act"]
)
def test_a_workspace_that_is_removed_under_a_run_is_named_in_its_ending(act: str, check: str, tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    folder = tmp_path / "work"
    folder.mkdir()
    commands = ("--agent-command", act.format(folder), "--check", check.format(folder))
    ran = cli("run", "x", *commands, "--workspace", str(folder), "--json")
    assert (ran.code, ran.document["code"]) == (1, "failed")
    assert f"the workspace {folder} is gone" in ran.err
    assert f"the workspace {folder} is gone" in cli("why", "last").out
    folder.mkdir()
    again = cli("resume", "--retry-incomplete", "last", "--json")
    assert "No such file" not in again.err, "it goes on where it was, in the folder that is there again"


@pytest.mark.req("SV-01", "SV-02")
def test_the_module_is_the_command(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    command = [sys.executable, "-m", "treadle", "show", "nobody"]
    ran = subprocess.run(command, env=cli.environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (cli("show", "nobody").code, cli("show", "nobody").err)
