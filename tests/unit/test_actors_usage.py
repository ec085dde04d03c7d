"""Usage as coding agents print it."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.core.usage import Usage
from treadle.effects.printed import printed_usage

pytestmark = pytest.mark.req("AG-26")


@pytest.mark.parametrize(
    ("printed", "usage"),
    [
        (
            {
                "type": "result",
                "num_turns": 4,
                "total_cost_usd": 0.25,
                "usage": {"input_tokens": 3, "output_tokens": 5},
            },
            Usage(input_tokens=3, output_tokens=5, requests=4, cost_usd=Decimal("0.25")),
        ),
        (
            {
                "usage": {
                    "input_tokens": 3,
                    "cache_read_input_tokens": 10,
                    "cache_creation_input_tokens": 20,
                    "output_tokens": 5,
                }
            },
            Usage(input_tokens=33, output_tokens=5, cache_read_tokens=10, cache_write_tokens=20, requests=1),
        ),
        (
            {"usage": {"input_tokens": 30, "cached_input_tokens": 10, "output_tokens": 5}, "type": "turn.completed"},
            Usage(input_tokens=30, output_tokens=5, cache_read_tokens=10, requests=1),
        ),
        (
            {"usage": {"input_tokens": 30, "input_tokens_details": {"cached_tokens": 10}, "output_tokens": 5}},
            Usage(input_tokens=30, output_tokens=5, cache_read_tokens=10, requests=1),
        ),
        (
            {"prompt_tokens": 30, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 10}},
            Usage(input_tokens=30, output_tokens=5, cache_read_tokens=10, requests=1),
        ),
        (
            {"usage": {"prompt_tokens": 30, "completion_tokens": 5, "prompt_tokens_details": None, "total_tokens": 35}},
            Usage(input_tokens=30, output_tokens=5, requests=1),
        ),
        (
            {
                "usage": {
                    "input_tokens": 9,
                    "output_tokens": 1,
                    "cache_read_tokens": 2,
                    "cache_write_tokens": 3,
                    "requests": 6,
                },
                "cost_usd": 2,
            },
            Usage(
                input_tokens=9,
                output_tokens=1,
                cache_read_tokens=2,
                cache_write_tokens=3,
                requests=6,
                cost_usd=Decimal(2),
            ),
        ),
        ({"total_cost_usd": 0.1, "usage": None}, Usage(requests=1, cost_usd=Decimal("0.1"))),
    ],
)
def test_known_shapes(printed, usage):
    assert printed_usage(json.dumps(printed)) == usage
    assert printed_usage(f"talk {{}}\n{json.dumps(printed, indent=2)}\n\n") == usage
    assert printed_usage(f'{{"event": 1}}\n{json.dumps(printed)}\nbye\n') == usage


@pytest.mark.parametrize(
    "output",
    [
        "",
        "done",
        "{",
        '{"event": "end"}',
        '["usage"]',
        '{"usage": {"input_tokens": 1}}',
        '{"usage": {"input_tokens": true, "output_tokens": 1}}',
        '{"usage": {"input_tokens": -1, "output_tokens": 1}}',
        '{"usage": {"input_tokens": 1.5, "output_tokens": 1}}',
        '{"usage": {"input_tokens": "1", "output_tokens": 1, "cache_read_input_tokens": 1}}',
        '{"total_cost_usd": NaN}',
        '{"total_cost_usd": -0.1}',
        '{"total_cost_usd": "0.1"}',
        '{"total_cost_usd": true}',
        '{"total_cost_usd": 0.1, "num_turns": -1}',
        '{"total_cost_usd": 0.1} and more',
        'say {"total_cost_usd": 0.1}',
        '{"a":' * 10_000,
    ],
    ids=lambda output: output[:40],
)
def test_what_is_no_usage(output):
    assert printed_usage(output) is None


def test_the_last_one_wins():
    lines = [json.dumps({"usage": {"input_tokens": n, "output_tokens": n}}) for n in (1, 2, 3)]
    usage = printed_usage("\n".join([*lines, '{"type": "bye"}']))
    assert usage is not None
    assert usage.input_tokens == 3


def test_money_is_read_exactly():
    usage = printed_usage('{"total_cost_usd": 0.1000000000000000000001}')
    assert usage is not None
    assert usage.cost_usd == Decimal("0.1000000000000000000001")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=4,
)
keys = st.sampled_from(
    "usage input_tokens output_tokens prompt_tokens completion_tokens total_cost_usd cost_usd num_turns requests "
    "cached_input_tokens cache_read_input_tokens prompt_tokens_details".split()
)


@given(st.dictionaries(keys, values | st.dictionaries(keys, values)))
def test_no_output_is_too_odd(printed):
    usage = printed_usage(json.dumps(printed))
    assert usage is None or usage.checked() == usage
