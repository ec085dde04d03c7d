"""Coding agents by name: how they are started, and what their recorded output says."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.core.errors import ConfigurationError
from treadle.effects.presets import PRESETS, Report, command_of, report_of

SAID = "The test passes now."
RECORDED = Path(__file__).parent.parent / "fixtures" / "agents"


def report(agent: str, name: str) -> Report:
    return report_of(agent, (RECORDED / name).read_text())


@pytest.mark.req("AG-26")
@pytest.mark.parametrize(
    ("agent", "name", "counts", "cost", "said"),
    [
        ("claude", "claude.json", (42_040, 84, 40_000, 1800, 2), "0.03455", SAID),
        ("codex", "codex.jsonl", (24_000, 122, 16_000, 0, 1), "0", SAID),
        ("gemini", "gemini.json", (27_000, 123, 12_000, 0, 3), "0", SAID),
        ("opencode", "opencode.jsonl", (14_000, 110, 10_000, 0, 2), "0.00922", SAID),
        ("aider", "aider.txt", (7000, 55, 0, 0, 1), "0.01", ""),
        ("aider", "aider-cached.txt", (8324, 250, 2000, 1100, 2), "0.03", ""),
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
        ("claude", "claude-max-turns.json", "claude: Reached maximum number of turns (1) (error_max_turns)"),
        ("claude", "claude-error.json", "claude: Credit balance is too low"),
        ("codex", "codex-failed.jsonl", "codex: You've hit your usage limit."),
        ("gemini", "gemini-error.json", "gemini: API key not valid. Please pass a valid API key."),
        ("opencode", "opencode-error.jsonl", "opencode: Incorrect API key provided."),
        ("aider", "aider-error.txt", "aider: OpenAIException - Incorrect API key provided."),
    ],
)
def test_a_bad_ending_is_told_in_the_words_of_the_provider(agent: str, name: str, why: str) -> None:
    assert report(agent, name).failure == why


def test_the_tokens_of_an_agents_helpers_are_counted_with_its_own() -> None:
    model = {"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 3, "cacheCreationInputTokens": 4}
    printed = {"num_turns": 1, "usage": {"input_tokens": 1}, "modelUsage": {"large": model, "small": model}}
    usage = report_of("claude", json.dumps(printed)).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (16, 4, 6, 8)


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
