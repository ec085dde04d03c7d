"""Coding agents by name: how they are started, and what their recorded output says."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.core.errors import ConfigurationError
from treadle.effects.presets import PRESETS, Report, command_of, report_of

RECORDED = Path(__file__).parent.parent / "fixtures" / "agents"


def report(agent: str, name: str) -> Report:
    return report_of(agent, (RECORDED / name).read_text())


@pytest.mark.req("AG-26")
@pytest.mark.parametrize(
    ("agent", "name", "counts", "cost", "said"),
    [
        ("claude", "claude.json", (138_692, 2140, 120_411, 18_250, 7), "0.18462", "The test passes now."),
        ("codex", "codex.jsonl", (24_763, 122, 24_448, 0, 1), "0", "Fixed a.py."),
        ("gemini", "gemini.json", (33_904, 214, 21_263, 0, 3), "0", "Done: the parser accepts tabs."),
        ("opencode", "opencode.jsonl", (44_196, 93, 43_415, 100, 2), "0.0130", "Renamed it."),
        ("aider", "aider.txt", (8324, 250, 2000, 1100, 2), "0.03", ""),
    ],
)
def test_usage_cost_and_last_word_are_read(
    agent: str, name: str, counts: tuple[int, ...], cost: str, said: str
) -> None:
    found = report(agent, name)
    usage = found.usage
    assert usage is not None
    assert (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.requests,
    ) == counts
    assert usage.cost_usd == Decimal(cost)
    assert (found.failure, found.said) == ("", said)


@pytest.mark.req("AG-26")
@pytest.mark.parametrize(
    ("agent", "name", "why"),
    [
        ("claude", "claude-max-turns.json", "error_max_turns"),
        ("codex", "codex-failed.jsonl", "usage limit"),
        ("gemini", "gemini-error.json", "quota exceeded"),
        ("opencode", "opencode-error.jsonl", "ProviderAuthError"),
    ],
)
def test_a_bad_ending_is_told(agent: str, name: str, why: str) -> None:
    assert why in report(agent, name).failure


def test_arguments_follow_the_preset() -> None:
    assert command_of("claude --model opus")[-2:] == ("--model", "opus")
    assert command_of("aider --model 'a b'")[-1].endswith("--model 'a b'")
    for unknown in ("", "nobody", "claude 'open"):
        with pytest.raises(ConfigurationError):
            command_of(unknown)


@given(st.sampled_from(sorted(PRESETS)), st.text(max_size=300))
def test_no_output_breaks_the_reading(agent: str, output: str) -> None:
    assert isinstance(report_of(agent, output), Report)
    wrong = '{"type":"turn.completed","usage":{"input_tokens":-1,"output_tokens":"x"},"num_turns":[],"stats":{"models":{"a":1}}}'
    assert report_of(agent, wrong).usage is None
