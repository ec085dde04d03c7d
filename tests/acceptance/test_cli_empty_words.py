"""Words that are typed and say nothing are a mistake, and not the same as leaving them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commandline import InProcess


@pytest.mark.req("TC-22", "TC-23", "SV-02")
@pytest.mark.parametrize("empty", ["", " \t"])
@pytest.mark.parametrize(
    ("command", "flag"),
    [("approve", "--as"), ("reject", "--reason"), ("cancel", "--as"), ("answer", "--request"), ("lease grant", "--as")],
)
def test_empty_words_are_refused_before_anything_is_said(tmp_path: Path, command: str, flag: str, empty: str) -> None:
    cli = InProcess(tmp_path)
    more = {"answer": ("yes",), "lease grant": ("fs.read",)}.get(command, ())
    ran = cli(*command.split(), "last", *more, flag, empty)
    assert (ran.code, ran.out) == (2, "")
    assert f"{flag} is empty: say something, or leave it out" in ran.err
    assert not cli.store_file.exists()
