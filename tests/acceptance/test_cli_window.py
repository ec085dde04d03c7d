"""A small window on the command line: many turns in it, what `treadle context` says of them, and a compaction that a person asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.commandline import InProcess
from treadle.core.usage import Usage
from treadle.testing import Fault, ScriptedEndpoint, Turn

NOTE = "NOTE: the pages up to here tell of a voyage."
WINDOW = 12_000
PAGE = "lorem ipsum dolor sit amet consectetur\n" * 60


class Reader:
    """Reads a page a turn, says something, and finishes; summarises when it is asked to."""

    def __init__(self, pages: int) -> None:
        self.pages, self.turns, self.longest = pages, 0, 0

    def __call__(self, body: dict[str, Any]) -> Turn | Fault:
        texts = [str(message["content"]) for message in body["messages"]]
        self.longest = max(self.longest, sum(map(len, texts)) // 4)
        if "hand-over note" in texts[0]:
            return Turn(text=NOTE)
        if not any("Read the book" in text for text in texts):
            return Fault(status=400, body={"error": {"message": "The task is gone."}})
        self.turns += 1
        if self.turns > self.pages:
            return Turn(calls=[("finish", {"summary": "read"})])
        return Turn(text="I read on. " * 30, calls=[("read_file", {"path": f"page{self.turns}.txt"})])


def book(cli: InProcess) -> None:
    for number in range(45):
        cli.write(f"page{number}.txt", f"page {number}\n{PAGE}")


def start(cli: InProcess, endpoint: ScriptedEndpoint, *more: str) -> Any:
    model = ("--model", "openai:m", "--base-url", endpoint.url, "--price", "10,20")
    return cli("run", "Read the book", *model, "--check", "true", "--window", str(WINDOW), "--json", "-q", *more)


@pytest.mark.req("AG-12", "AG-13")
def test_many_turns_in_a_small_window_end_accepted_with_the_right_accounts(tmp_path: Path) -> None:
    cli, reader = InProcess(tmp_path), Reader(40)
    book(cli)
    with ScriptedEndpoint(reader) as endpoint:
        ran = start(cli, endpoint)
        assert ran.code == 0, ran
        assert ran.document["usage"]["requests"] == len(endpoint.bill.charges)
        assert reader.longest < WINDOW
        seen = cli("context", "last", "--json").document
        summaries = sum("hand-over note" in str(body["messages"][0]) for body in endpoint.requests)
    assert seen["summaries"]["requests"] == summaries > 0
    assert seen["tokens_saved"] > 0
    assert {one["depth"] for one in seen["compactions"]} >= {"micro", "auto"}
    assert seen["window"] == WINDOW
    assert sum(seen["kinds"].values()) == seen["used"] <= seen["budget"]
    assert seen["kinds"]["summaries"] > 0
    page = cli("context", "last")
    assert "breaker closed" in page.out
    assert "tool results" in page.out
    assert "→" in cli("log", "last").out


def test_without_compaction_the_same_run_outgrows_its_window(tmp_path: Path) -> None:
    cli, reader = InProcess(tmp_path), Reader(40)
    book(cli)
    with ScriptedEndpoint(reader) as endpoint:
        start(cli, endpoint, "--compact", "off")
    assert reader.longest > WINDOW


@pytest.mark.req("AG-12")
def test_a_person_has_a_waiting_execution_compacted(tmp_path: Path) -> None:
    cli, reader = InProcess(tmp_path), Reader(12)
    book(cli)
    with ScriptedEndpoint(reader) as endpoint:
        model = ("--model", "openai:m", "--base-url", endpoint.url, "--price", "10,20")
        ran = cli("run", "Read the book", *model, "--check", "true", "--max-turns", "8", "--json", "-q")
        assert ran.code == 4, ran
        asked = cli("context", "last", "--compact", "full", "--as", "kim")
        assert asked.code == 0, asked
        assert cli("context", "last", "--json").document["requested"] == "full"
        assert cli("extend", "last", "--max-turns", "60", "-q").code == 0
        assert cli("resume", "last", "-q").code == 0
    seen = cli("context", "last", "--json").document
    assert [(one["depth"], one["by"]) for one in seen["compactions"]] == [("full", "person")]
    assert NOTE in cli("log", "last", "--json").out


@pytest.mark.req("AG-14")
def test_what_the_provider_had_in_its_cache_is_shown(tmp_path: Path) -> None:
    cli, usage = InProcess(tmp_path), Usage(input_tokens=2_000, output_tokens=20, cache_read_tokens=1_500)
    book(cli)
    turns = [Turn(calls=[("read_file", {"path": f"page{number}.txt"})], usage=usage) for number in range(3)]
    with ScriptedEndpoint([*turns, Turn(calls=[("finish", {"summary": "read"})], usage=usage)]) as endpoint:
        ran = start(cli, endpoint)
    assert ran.document["usage"]["cache_read_tokens"] == 4 * 1_500
    assert cli("context", "last", "--json").document["cache_read_tokens"] == 4 * 1_500
    assert "read from the provider's cache 6,000 of 8,000 input tokens" in cli("context", "last").out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--window", "12"), "--window"),
        (("--compact", "much"), "--compact"),
        (("--compact-at", "80"), "--compact-at"),
        (("--compact-at", "nan"), "--compact-at"),
    ],
)
def test_bad_settings_of_the_window_start_nothing(tmp_path: Path, flags: tuple[str, ...], said: str) -> None:
    ran = InProcess(tmp_path)("run", "x", "--model", "openai:m", "--check", "true", *flags)
    assert ran.code == 2
    assert said in ran.err
