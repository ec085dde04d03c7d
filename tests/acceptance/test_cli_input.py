"""Bad input: each a clear message and exit code 2, with nothing started. And that help is instant."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.commandline import CommandLine, Ran, finish

ROOT = Path(__file__).resolve().parents[2]
ACT = ("--agent-command", "true")
CHECKED = ("--check", "true")


def run(*more: str) -> tuple[str, ...]:
    return ("run", "Do it", *more)


def closed_port() -> int:
    """Nothing listens there: it was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def newer_store(cli: CommandLine) -> None:
    """A store as a Treadle of the future would leave it."""
    assert cli(*run(*ACT, *CHECKED), "-q").code == 0
    with sqlite3.connect(cli.store_file) as db:
        db.execute("PRAGMA user_version = 999")
    db.close()


def broken_store(cli: CommandLine) -> None:
    cli.state.mkdir()
    cli.store_file.write_bytes(b"this is no database at all " * 100)


def unwritable(cli: CommandLine) -> None:
    (cli.home / "locked").mkdir(mode=0o555)


def bad_config(cli: CommandLine) -> None:
    (cli.workspace / ".treadle").mkdir()
    cli.write(".treadle/config.toml", 'store = "sqlite:////tmp/elsewhere.db"\n')


def nothing(_: CommandLine) -> None:
    return


CASES: dict[str, tuple[Callable[[CommandLine], None], tuple[str, ...], str]] = {
    "no model": (nothing, run(*CHECKED), "--model provider:model"),
    "no key": (nothing, run(*CHECKED, "--model", "openai:gpt-5"), "OPENAI_API_KEY"),
    "unknown provider": (nothing, run(*CHECKED, "--model", "opanai:gpt-5"), "Did you mean openai"),
    "unreachable URL": (
        nothing,
        run(*CHECKED, "--model", "openai:x", "--base-url", f"http://127.0.0.1:{closed_port()}/v1"),
        "Nothing can be reached",
    ),
    "no URL": (nothing, run(*CHECKED, "--model", "openai:x", "--base-url", "localhost"), "no address"),
    "workspace missing": (nothing, run(*ACT, *CHECKED, "--workspace", "no/such/folder"), "does not exist"),
    "check not found": (nothing, run(*ACT, "--check", "no-such-check --now"), "no-such-check"),
    "broken store": (broken_store, run(*ACT, *CHECKED), "treadle.db"),
    "newer store": (newer_store, run(*ACT, *CHECKED), "Update Treadle"),
    "cost": (nothing, run(*ACT, *CHECKED, "--max-cost", "abc"), "--max-cost 2.50"),
    "cost without end": (nothing, run(*ACT, *CHECKED, "--max-cost", "1e400"), "at most"),
    "cost below 0": (nothing, run(*ACT, *CHECKED, "--max-cost", "-1"), "above 0"),
    "time": (nothing, run(*ACT, *CHECKED, "--max-time", "soon"), "--max-time 10m"),
    "no rounds": (nothing, run(*ACT, *CHECKED, "--max-rounds", "0"), "at least 1"),
    "both judges": (nothing, run(*ACT, *CHECKED, "--judge", "openai:x"), "--judge"),
    "both actors": (nothing, run(*ACT, *CHECKED, "--model", "openai:x"), "--agent-command"),
    "empty task": (nothing, ("run", "  ", *ACT, *CHECKED), "empty"),
    "unknown execution": (nothing, ("resume", "nosuchthing"), "no store"),
    "unknown flag": (nothing, run("--max-round", "3"), "--help"),
    "unknown command": (nothing, ("rnu",), "Did you mean 'run'"),
    "store address": (nothing, run(*ACT, *CHECKED, "--store", "mysql://x"), "sqlite:///FILE"),
    "a workspace that moves the store": (bad_config, run(*ACT, *CHECKED), "unknown setting 'store'"),
}


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[CommandLine, Ran]]:
    """All of them side by side: most of the time is Python's start."""
    started = {}
    for name, (prepare, arguments, _) in CASES.items():
        cli = CommandLine(tmp_path_factory.mktemp("input"))
        prepare(cli)
        started[name] = (cli, cli.start(*arguments))
    return {name: (cli, finish(process)) for name, (cli, process) in started.items()}


@pytest.mark.req("SV-02")
@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_with_2_and_says_what_to_do(
    refused: dict[str, tuple[CommandLine, Ran]], name: str
) -> None:
    cli, ran = refused[name]
    assert (ran.code, ran.out) == (2, ""), ran.err
    assert CASES[name][2] in ran.err
    assert ran.err.startswith("treadle: ")
    if CASES[name][0] is nothing and cli.store_file.exists():
        with sqlite3.connect(cli.store_file) as db:
            assert db.execute("SELECT count(*) FROM executions").fetchone() == (0,)
        db.close()


@pytest.mark.req("SV-02")
def test_a_workspace_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    unwritable(cli)
    if (cli.home / "locked").stat().st_uid == 0:
        pytest.skip("root may write everywhere")
    ran = cli(*run(*ACT, *CHECKED, "--workspace", str(cli.home / "locked")))
    assert (ran.code, "cannot be written" in ran.err) == (2, True)


@pytest.mark.req("SV-02")
def test_an_unknown_execution_is_named_with_the_ones_that_are_close(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    execution_id = cli(*run(*ACT, *CHECKED), "--json", "-q").document["execution_id"]
    for command in (("resume", "zzzz"), ("show", "zzzz"), ("why", "zzzz")):
        ran = cli(*command)
        assert (ran.code, ran.out) == (2, "")
        assert "zzzz" in ran.err
    assert cli("show", execution_id[:5], "--json").code == 0


@pytest.mark.req("SV-02")
def test_a_fault_of_our_own_is_told_in_words_and_shown_only_on_request(tmp_path: Path) -> None:
    code = "from treadle.cli import main as m; m.COMMANDS['broken'] = m.Entry('no_such_module', ''); m.main(['broken'])"
    cli = CommandLine(tmp_path)
    for debug in ("", "1"):
        environ = {**cli.environ, "TREADLE_DEBUG": debug}
        ended = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
        assert ended.returncode == 1
        assert "Please report" in ended.stderr
        assert ("Traceback" in ended.stderr) is bool(debug)


def test_the_overview_loads_nothing_but_what_it_prints() -> None:
    code = """
import sys
from treadle.cli.main import main
try:
    main(["--help"])
except SystemExit as ended:
    assert not ended.code
heavy = {"rich", "msgspec", "anyio", "asyncio", "pydantic", "httpx", "argparse", "sqlite3", "pydantic_ai"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "treadle run" in ended.stdout


@pytest.mark.req("SV-01")
def test_every_command_of_the_overview_is_there() -> None:
    from treadle.cli.main import COMMANDS, parser

    for name, entry in COMMANDS.items():
        for one in [f"{name} {part}" for part in entry.parts] or [name]:
            assert parser(one).prog == f"treadle {one}"


@pytest.mark.req("SV-01")
def test_init_guesses_the_check_and_never_overwrites(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    cli.write("package.json", '{"scripts": {"test": "jest"}}')
    assert cli("init").code == 0
    written = (cli.workspace / ".treadle/config.toml").read_text()
    assert 'check = "npm test"' in written
    assert cli("init").code == 2
    assert (cli.workspace / ".treadle/config.toml").read_text() == written
    cli.write(".treadle/config.toml", 'check = "true"\nmax_rounds = 3\n')
    assert cli("run", "Do it", *ACT, "--json", "-q").document["code"] in ("accepted", "no-change")


@pytest.mark.req("SV-01")
def test_doctor_tells_what_is_wrong_with_a_store_and_names_keys_only(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    well = cli("doctor", "--json", environ={"OPENAI_API_KEY": "sk-secret-of-mine"})
    found = {one["name"]: one for one in well.document}
    assert (well.code, found["store"]["grade"], found["keys"]["found"]) == (0, "ok", "OPENAI_API_KEY")
    assert "sk-secret" not in well.out + well.err
    broken_store(cli)
    ill = cli("doctor", "--base-url", f"http://127.0.0.1:{closed_port()}/v1")
    assert ill.code == 1
    assert "fail" in ill.out
    assert "treadle.db" in ill.out
    assert "Nothing can be reached" in ill.out.replace("\n", " ")


def test_the_reference_page_says_what_the_commands_say() -> None:
    import runpy

    made = runpy.run_path(str(ROOT / "tools" / "cli_reference.py"))
    assert made["PAGE"].read_text() == made["page"](), "run python tools/cli_reference.py"


def test_quiet_says_in_one_line_why_it_failed_and_nothing_where_it_did_not(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    acts = ("--agent-command", "true", "--max-rounds", "1", "-q")
    assert cli("run", "Do it", *acts, "--check", "true").err == ""
    failed = cli("run", "Do it", *acts, "--check", "false")
    assert failed.code == 1
    assert len(failed.err.splitlines()) == 1
    assert "failed, exhausted" in failed.err
    assert "the only round was rejected" in failed.err
    assert cli("run", "Do it", *acts, "--check", "false", "--json").err == ""


def test_a_detached_run_names_the_store_in_the_commands_that_it_suggests(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    store = f"sqlite:///{cli.home / 'own.db'}"
    ran = cli("run", "Do it", "--agent-command", "true", "--check", "true", "--detach", "--store", store)
    assert ran.code == 0
    assert ran.err.count(f"--store {store}") == 2
    assert cli("watch", ran.out.strip(), "--store", store).code == 0


def test_what_is_no_export_is_refused_by_the_name_of_its_file(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    file = cli.write("notes.txt", "hello")
    ran = cli("frame", "import", str(file))
    assert ran.code == 1
    assert "notes.txt" in ran.err


@pytest.mark.req("AG-28")
def test_revert_touches_only_what_act_changed_and_names_each_file_on_one_line(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    cli.git().write("theirs.txt", "before\n")
    acts = "printf x > ours.txt; printf x > 'two\nlines'"
    assert cli("run", "Do it", "--agent-command", acts, "--check", "true").code == 0
    cli.write("theirs.txt", "edited by a person\n")
    reverted = cli("revert", "last", "--yes")
    assert reverted.code == 0
    assert len(reverted.err.splitlines()) == 1
    assert "ours.txt" in reverted.err
    assert "theirs.txt" not in reverted.err
    assert (cli.workspace / "theirs.txt").read_text() == "edited by a person\n"
    assert not (cli.workspace / "ours.txt").exists()
    assert not (cli.workspace / "two\nlines").exists()
