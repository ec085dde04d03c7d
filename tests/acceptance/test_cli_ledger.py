"""The store as a whole, as a person looks after it: checked, tidied, carried to another store, relieved of what is old (LG-09, FR-27)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from support import postgres
from support.commandline import CommandLine, finish

FLOW = """\
from treadle import Command, Loop
from treadle import ApprovalTask, RunTask, Task, Workflow


async def first(ctx):
    return 1


inner = Loop(name="inner", act=Command(command="echo made > made.txt"), evaluate="test -e made.txt", workspace=".")
gate = ApprovalTask("gate", prompt="Go on?", after=("first",))
flow = Workflow("flow", [Task("first", first), gate, RunTask("inner", inner, input="Make it", after=("gate",))])
"""


def ended(cli: CommandLine, name: str = "did") -> str:
    ran = cli("run", "Do it", "--agent-command", f"echo {name} > {name}.txt", "--check", "true", "--json", "-q")
    return ran.document["execution_id"]


def waiting(cli: CommandLine) -> str:
    return cli("run", "Do it", "--agent-command", "true", "--json", "-q").document["execution_id"]


def ids(cli: CommandLine, *more: str) -> set[str]:
    return {one["execution_id"] for one in cli("ls", "--json", *more).document}


@pytest.mark.req("LG-09")
def test_retention_by_age_and_count_never_touches_what_is_live(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    open_one = waiting(cli)
    slow = cli.start("run", "Slow", "--agent-command", "touch go; sleep 600", "--check", "true")
    while not (cli.workspace / "go").exists():
        pass
    (running,) = ids(cli) - {open_one}
    done = [ended(cli, f"n{number}") for number in range(3)]
    assert cli("ledger", "prune").code == 2
    assert cli("ledger", "prune", "--older-than", "1d").err.strip().endswith("nothing to remove.")
    listed = cli("ledger", "prune", "--keep", "1", "--dry-run")
    assert [line.split()[0] for line in listed.out.splitlines()] == done[:2]
    assert len(ids(cli)) == 5
    assert cli("ledger", "prune", "--keep", "1").code == 0
    assert ids(cli) == {open_one, running, done[2]}
    assert not (cli.state / "artifacts" / done[0]).exists()
    assert cli("ledger", "prune", "--keep", "0").code == 0
    assert ids(cli) == {open_one, running}
    assert cli("ledger", "vacuum").code == 2, "it would lock the owner out"
    assert cli("cancel", running).code == 0
    finish(slow)
    assert cli("approve", open_one).code == 0
    assert cli("ledger", "verify").code == 0


@pytest.mark.req("LG-09")
@pytest.mark.parametrize("point", ["ledger.before-commit", "ledger.in-transaction", "ledger.after-commit"])
def test_a_kill_while_pruning_leaves_whole_executions(tmp_path: Path, point: str) -> None:
    cli = CommandLine(tmp_path)
    done = {ended(cli, f"n{number}") for number in range(3)}
    assert cli("ledger", "prune", "--keep", "0", environ={"TREADLE_CRASH_AT": f"{point}:2"}).code == -9
    assert cli("ledger", "verify").code == 0
    assert len(ids(cli)) in (1, 2)
    assert ids(cli) < done
    assert cli("ledger", "prune", "--keep", "0").code == 0
    assert ids(cli) == set()


@pytest.mark.req("LG-09")
def test_vacuum_gives_room_back(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    for _ in range(3):
        cli("run", "Print", "--agent-command", "head -c 200000 /dev/urandom | base64", "--check", "true", "-q")
    before = cli.store_file.stat().st_size
    assert cli("ledger", "prune", "--keep", "0").code == 0
    ran = cli("ledger", "vacuum")
    assert ran.code == 0, ran.err
    assert cli.store_file.stat().st_size < before
    assert cli("ledger", "verify").code == 0


@pytest.mark.req("LG-09", "FR-27")
def test_a_store_is_carried_whole_and_its_executions_go_on_there(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    first, open_one = ended(cli), waiting(cli)
    (cli.workspace / "flows.py").write_text(FLOW)
    flow = cli("run", "flows:flow", "--json", "-q").document["execution_id"]
    file, there = tmp_path / "all.jsonl", f"sqlite:///{tmp_path}/there.db"
    assert cli("ledger", "export", str(file)).code == 0
    assert cli("ledger", "verify", str(file)).code == 0
    taken = cli("ledger", "import", str(file), "--store", there)
    assert (taken.code, "took in 3" in taken.err) == (0, True), taken.err
    assert "took in 0 executions; 3 were there already" in cli("ledger", "import", str(file), "--store", there).err
    file.write_bytes(b"")
    empty = cli("ledger", "import", str(file), "--store", there)
    assert (empty.code != 0, "holds no execution" in empty.err) == (True, True)
    assert cli("show", first, "--json", "--store", there).document == cli("show", first, "--json").document
    assert cli("approve", open_one, "--store", there).code == 0
    assert cli("resume", open_one, "--store", there, "--json").document["code"] == "no-change"
    assert cli("approve", flow, "--store", there).code == 0
    assert cli("resume", flow, "--store", there, "--json").document["code"] == "accepted"
    assert cli("ledger", "verify", "--store", there).code == 0
    other = tmp_path / "flow.jsonl"
    assert cli("ledger", "export", str(other), flow, "--store", there).code == 0
    assert len(other.read_bytes().splitlines()) == 1, "the loop inside it comes along"


@pytest.mark.req("LG-09", "FR-27")
def test_an_execution_goes_from_sqlite_to_postgres_and_back(tmp_path: Path) -> None:
    if postgres.binaries() is None:
        pytest.skip("no Postgres server is installed")
    cli = CommandLine(tmp_path)
    open_one = waiting(cli)
    server = postgres.new_store()
    file, back = tmp_path / "one.jsonl", tmp_path / "back.jsonl"
    assert cli("ledger", "export", str(file), open_one).code == 0
    assert cli("ledger", "import", str(file), "--store", server).code == 0
    assert cli("ledger", "verify", "--store", server).code == 0
    assert cli("approve", open_one, "--store", server).code == 0
    assert cli("resume", open_one, "--store", server, "--json").document["code"] == "no-change"
    assert cli("ledger", "export", str(back), open_one, "--store", server).code == 0
    there = f"sqlite:///{tmp_path}/there.db"
    assert cli("ledger", "import", str(back), "--store", there).code == 0
    assert cli("show", open_one, "--store", there, "--json").document["code"] == "no-change"


@pytest.mark.req("LG-09")
@pytest.mark.parametrize("point", ["ledger.before-commit", "ledger.in-transaction", "ledger.after-commit"])
def test_an_import_that_was_killed_goes_on(tmp_path: Path, point: str) -> None:
    cli = CommandLine(tmp_path)
    names = {ended(cli, f"n{number}") for number in range(2)}
    file, there = tmp_path / "all.jsonl", f"sqlite:///{tmp_path}/there.db"
    assert cli("ledger", "export", str(file)).code == 0
    ran = cli("ledger", "import", str(file), "--store", there, environ={"TREADLE_CRASH_AT": f"{point}:3"})
    assert ran.code == -9, ran.err
    assert cli("ledger", "import", str(file), "--store", there).code == 0
    assert ids(cli, "--store", there) == names
    assert cli("ledger", "verify", "--store", there).code == 0


@pytest.mark.req("LG-09", "FR-23")
def test_a_file_or_store_that_was_altered_is_refused_and_said_where(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    ended(cli, "one")
    ended(cli, "two")
    file, there = tmp_path / "all.jsonl", f"sqlite:///{tmp_path}/there.db"
    assert cli("ledger", "export", str(file)).code == 0
    lines = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join([lines[0], lines[1].replace(b"two.txt", b"twO.txt"), b""]))
    refused = cli("ledger", "import", str(file), "--store", there)
    assert (refused.code, f"{file}:2" in refused.err) == (1, True), refused.err
    assert ids(cli, "--store", there) == set()
    with sqlite3.connect(cli.store_file) as db:
        db.execute("DROP TRIGGER records_are_not_changed")
        db.execute("UPDATE records SET body = '{}' WHERE execution = 1 AND seq = 1")
    found = cli("ledger", "verify")
    assert found.code == 1
    assert "record 1" in found.out


def test_what_runs_is_not_exported(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    running = cli.start("run", "Slow", "--agent-command", "touch go; sleep 600", "--check", "true")
    while not (cli.workspace / "go").exists():
        pass
    ran = cli("ledger", "export", str(tmp_path / "x.jsonl"))
    assert (ran.code, "is being run" in ran.err) == (2, True)
    assert not (tmp_path / "x.jsonl").exists()
    cli("cancel", "last")
    finish(running)
