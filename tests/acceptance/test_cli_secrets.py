"""A model that knows a secret: in text, in a call or in what it finishes with, nothing of it is stored or run (SE-01)."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commandline import CommandLine
from treadle.testing import ScriptedEndpoint, Turn

KEY = "Zx9-known-only-by-its-value"
EXAMPLE = "sk-abcdefghijklmnopqrstuvwx"  # the shape of a key, as a test of somebody's code has it


@pytest.mark.req("SE-01")
def test_a_secret_that_a_model_says_is_neither_stored_nor_written_and_an_example_is(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
    turns = [
        Turn(text=f"The key is {KEY}.", calls=[("write_file", {"path": "a.py", "text": f"{KEY} {EXAMPLE}"})]),
        Turn(calls=[("write_file", {"path": [KEY], "text": ""})]),
        Turn(calls=[("finish", {"summary": f"{KEY}, {EXAMPLE}"})]),
    ]
    with ScriptedEndpoint(turns) as endpoint:
        flags = ("--model", "openai:s", "--base-url", endpoint.url, "--price", "1,2", "--check", "true", "--json")
        ran = cli("run", f"Use {KEY}", *flags, environ={"OPENAI_API_KEY": KEY})
    assert ran.document["code"] == "accepted"
    assert ran.document["output"] == "[redacted], [redacted]"
    assert (cli.workspace / "a.py").read_text() == f"[redacted] {EXAMPLE}"
    kept = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert cli.store_file in kept
    assert not [file for file in kept if KEY.encode() in file.read_bytes()]
    assert KEY not in ran.out + ran.err
