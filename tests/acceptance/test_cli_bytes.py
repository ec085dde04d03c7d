"""Bytes that are not what they should be: in what somebody types, and in what the store keeps only to save time."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.commandline import CommandLine, InProcess

ACT = ("--agent-command", "true", "--check", "true")


@pytest.mark.req("SV-02")
def test_what_is_not_utf_8_is_refused_in_a_sentence_and_nothing_is_started(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    ran = cli("run", "fix \udcff\udcfe", *ACT)
    assert ran.code == 2
    assert ran.err == "treadle: argument 2 is not UTF-8 text: fix \\udcff\\udcfe\n"
    (tmp_path / "task").write_bytes(b"\xff\xfe fix")
    with (tmp_path / "task").open("rb") as task:
        ran = cli("run", "-", *ACT, stdin=task, environ={"LANG": "C.UTF-8", "PYTHONUTF8": "1"})
    assert ran.code == 2
    assert "not UTF-8" in ran.err
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff")
    os.mkdir(folder)  # noqa: PTH102 - the name is no text
    ran = cli("run", "fix it", *ACT, cwd=folder)
    assert ran.code == 2
    assert "bad\\\\udcff' is not UTF-8" in ran.err
    assert cli.documents() == []


@pytest.mark.req("LG-01")
def test_a_damaged_snapshot_or_summary_costs_time_and_no_answer(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    ran = cli("run", "Do it", "--agent-command", "echo done > done.txt", "--check", "true", "--json", "-q")
    sound = cli("show", "last", "--json").document
    listed = cli.documents()
    assert (cli("ledger", "verify").code, ran.code) == (0, 0)
    for table, told in (("snapshots", "snapshot"), ("summaries", "summary")):
        with closing(sqlite3.connect(cli.store_file, isolation_level=None)) as db:
            db.execute(f"UPDATE {table} SET body = x'ff'")
        found = cli("ledger", "verify")
        assert found.code != 0
        assert told in found.out + found.err
        assert cli("show", "last", "--json").document == sound
        assert cli.documents() == listed
        assert cli("resume", "last", "--json").document["code"] == sound["code"]
