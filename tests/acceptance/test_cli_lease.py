"""Leases in a real run: refused, asked for, granted at a gate, carried through a kill, revoked, and shown in the frame."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.commandline import InProcess
from treadle.testing import ScriptedEndpoint, Turn


@pytest.mark.req("FR-12")
@pytest.mark.parametrize("crash", ["", "before-tool:2"])
def test_a_refused_call_is_asked_for_granted_and_then_done(tmp_path: Path, crash: str) -> None:
    cli = InProcess(tmp_path).git()
    script = [
        Turn(text="I write.", calls=[("write_file", {"path": "docs/a.md", "text": "a"})]),
        Turn(calls=[("request_permission", {"capability": "fs.write:docs/**", "reason": "the page is there"})]),
        Turn(calls=[("write_file", {"path": "src/a.py", "text": "a = 1\n"})]),
        Turn(calls=[("write_file", {"path": "docs/a.md", "text": "a"})]),
        Turn(calls=[("run_command", {"command": "echo x > /dev/null; touch escaped"})]),
        Turn(calls=[("request_permission", {"capability": "network.request", "reason": "curiosity"})]),
        Turn(calls=[("finish", {"summary": "written"})]),
    ]
    with ScriptedEndpoint(script) as endpoint:
        ran = cli(
            "run", "Write", "--check", "test -f docs/a.md", "--model", "openai:scripted", "--base-url", endpoint.url,
            "--allow", "fs.write:src/**", "--allow", "process.spawn:echo*", "--may-ask", "fs.write:docs/**", "--json",
        )  # fmt: skip
        assert ran.code == 3, ran.err
        assert ran.document["pending"]["kind"] == "approval"
        assert "fs.write:docs/**" in ran.document["pending"]["prompt"]
        assert not (cli.workspace / "docs").exists()
        assert cli("approve", "last", "--as", "ann").code == 0
        ran = cli("resume", "last", "--json", environ={"TREADLE_CRASH_AT": crash} if crash else {})
        if crash:
            assert ran.code == -9
            ran = cli("resume", "last", "--json")
    assert ran.document["code"] == "accepted", ran.err
    assert (cli.workspace / "docs" / "a.md").exists()
    assert not (cli.workspace / "escaped").exists()
    log = cli("log", "last", "--json").out
    assert "no lease covers fs.write:docs/a.md" in log
    assert "request_permission(capability" in log
    assert "beyond what anybody may grant" in log
    shown = cli("lease", "ls", "last", "--json").document
    assert shown["ceiling"] == ["fs.write:src/**", "process.spawn:echo*", "fs.write:docs/**"]
    assert {"fs.write:docs/**": "ann"}.items() <= {one["capability"]: one["by"] for one in shown["leases"]}.items()
    frame = cli("frame", "show", "last", "--json").document
    leases = frame.get("frame", frame)["grantedLoopLeases"]
    assert [lease["capability"] for lease in leases] == ["fs.write:src/**", "process.spawn:echo*", "fs.write:docs/**"]


@pytest.mark.req("FR-12", "SV-01")
def test_a_person_revokes_and_what_is_wrong_is_refused(tmp_path: Path) -> None:
    cli = InProcess(tmp_path).git()
    script = [
        Turn(text="First a question.", calls=[("ask_person", {"question": "Go?"})]),
        Turn(calls=[("run_command", {"command": "touch made"})]),
        Turn(calls=[("finish", {"summary": "tried"})]),
    ]
    with ScriptedEndpoint(script) as endpoint:
        ran = cli("run", "Try", "--check", "true", "--model", "openai:scripted", "--base-url", endpoint.url, "--json")
        assert ran.code == 3
        assert cli("lease", "revoke", "last", "process.spawn", "--as", "ann", "--reason", "no").code == 0
        for wrong in ("fs.write:../x", "fs.write:/etc", "not a capability"):
            assert cli("lease", "grant", "last", wrong).code == 2
        assert cli("lease", "grant", "last", "fs.write:a", "--scope", "week").code == 2
        assert cli("answer", "last", "go", "--as", "ann").code == 0
        ran = cli("resume", "last", "--json")
    assert ran.document["status"] == "done", ran.err
    assert not (cli.workspace / "made").exists()
    assert "no lease covers process.spawn" in cli("log", "last", "--json").out
    assert cli("lease", "grant", "last", "fs.write:a").code == 2  # it has ended


@pytest.mark.req("FR-12")
def test_a_lease_that_has_expired_is_shown_as_such_and_covers_nothing(tmp_path: Path) -> None:
    cli = InProcess(tmp_path).git()
    script = [
        Turn(text="First a question.", calls=[("ask_person", {"question": "Go?"})]),
        Turn(calls=[("write_file", {"path": "made", "text": "x"})]),
        Turn(calls=[("finish", {"summary": "tried"})]),
    ]
    with ScriptedEndpoint(script) as endpoint:
        leases = ("--allow", "fs.read", "--may-ask", "fs.write")
        model = ("--model", "openai:scripted", "--base-url", endpoint.url)
        assert cli("run", "Try", "--check", "true", *model, *leases, "--json").code == 3
        assert cli("lease", "grant", "last", "fs.write:made", "--for", "0.001s", "--as", "ann").code == 0
        assert cli("lease", "ls", "last", "--json").document["leases"][-1]["expired"] is True
        assert "expired" in cli("lease", "ls", "last").out
        assert cli("answer", "last", "go", "--as", "ann").code == 0
        assert cli("resume", "last", "--json").document["status"] == "done"
    assert not (cli.workspace / "made").exists()
    assert "no lease covers fs.write:made" in cli("log", "last", "--json").out


def test_a_loop_file_says_what_may_be_touched(tmp_path: Path) -> None:
    cli = InProcess(tmp_path).git()
    cli.write(
        "loop.yaml",
        "treadle: 1\nname: x\ncontrol: {}\nact:\n  allow: ['fs.write:src/**', 'fs.write:../x']\nverify:\n  check: 'true'\n",
    )
    with ScriptedEndpoint([]) as endpoint:
        ran = cli("run", "x", "--loop", "loop.yaml", "--model", "openai:scripted", "--base-url", endpoint.url)
    assert ran.code == 2
    assert "fs.write:../x" in ran.err


def asking(cli: InProcess, url: str) -> None:
    """A loop that waits, with one lease of a person's."""
    leases = ("--allow", "fs.write:src/**", "--may-ask", "fs.write:docs/**")
    model = ("--model", "openai:scripted", "--base-url", url)
    assert cli("run", "Try", "--check", "true", *model, *leases, "--json").code == 3
    assert cli("lease", "grant", "last", "fs.write:docs/a", "--as", "ann").code == 0


FORGERY = [
    Turn(text="First a question.", calls=[("ask_person", {"question": "Go?"})]),
    Turn(calls=[("write_file", {"path": "etc/a", "text": "x"})]),
    Turn(calls=[("write_file", {"path": "docs/a", "text": "x"})]),
    Turn(calls=[("finish", {"summary": "tried"})]),
]


@pytest.mark.req("FR-12", "SE-02")
@pytest.mark.parametrize(
    ("table", "old", "new", "said"),
    [
        ("records", "fs.write:docs/a", "fs.write:etc/**", "beyond the ceiling"),
        ("snapshots", "fs.write:src/**", "fs.write:**", "record 1 does not make it"),
    ],
)
def test_a_lease_forged_in_the_store_permits_nothing_and_is_named(
    tmp_path: Path, table: str, old: str, new: str, said: str
) -> None:
    cli = InProcess(tmp_path).git()
    with ScriptedEndpoint(FORGERY) as endpoint:
        asking(cli, endpoint.url)
        assert cli("answer", "last", "go", "--as", "ann").code == 0
        forge(cli.store_file, old.encode(), new.encode(), table)
        ran = cli("resume", "last")
    assert (ran.code, "grantedLoopLeases" in ran.err, said in ran.err) == (1, True, True), ran.err
    assert not (cli.workspace / "etc").exists()
    assert cli("frame", "verify", "last").code == 1
    assert cli("ledger", "verify").code == 1


@pytest.mark.req("FR-12", "SE-03", "SV-02")
def test_a_grant_that_was_damaged_in_the_store_is_a_typed_refusal(tmp_path: Path) -> None:
    cli = InProcess(tmp_path).git()
    with ScriptedEndpoint(FORGERY) as endpoint:
        asking(cli, endpoint.url)
        forge(cli.store_file, b'"op":"grant"', b'"op":"graft"')
        for told in (cli("resume", "last"), cli("lease", "ls", "last"), cli("frame", "show", "last")):
            assert (told.code, "lease" in told.err, "Traceback" in told.err) == (5, True, False), told.err
        assert "lease.changed" in cli("ledger", "verify").out


@pytest.mark.req("FR-12", "FR-23")
def test_leases_of_an_exported_frame_that_was_edited_by_hand_are_refused(tmp_path: Path) -> None:
    cli = InProcess(tmp_path).git()
    with ScriptedEndpoint(FORGERY) as endpoint:
        asking(cli, endpoint.url)
        file = tmp_path / "frame.json"
        assert cli("frame", "export", "last", str(file)).code == 0
        file.write_bytes(file.read_bytes().replace(b"fs.write:docs/a", b"fs.write:etc/**"))
        told = cli("frame", "import", str(file), "--store", f"sqlite:///{tmp_path / 'other.db'}")
    assert (told.code, "digest" in told.err) == (1, True), told.err


def test_only_who_is_asked_for_it_grants_a_lease(tmp_path: Path) -> None:
    cli = InProcess(tmp_path).git()
    with ScriptedEndpoint(FORGERY) as endpoint:
        asking(cli, endpoint.url)
        wrong = (("--as", " "), ("--as", "ann", "--request", "nope"))
        assert [cli("answer", "last", "go", *one).code for one in wrong] == [2, 2]
        beyond = cli("lease", "grant", "last", "fs.write:etc/**", "--as", "ann")
        assert (beyond.code, "beyond the ceiling" in beyond.err) == (2, True)


def forge(store: Path, old: bytes, new: bytes, table: str = "records") -> None:
    """Rows changed behind the store's back, which refuses that as such."""
    with closing(sqlite3.connect(store)) as database, database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        changed = database.execute(
            f"UPDATE {table} SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB) WHERE instr(body, ?)",
            (old.decode(), new.decode(), old),
        )
        assert changed.rowcount
