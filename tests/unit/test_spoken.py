"""Money, time and foreign text in words."""

from __future__ import annotations

from decimal import Decimal

import pytest

from treadle.cli.values import cost, seconds, whole
from treadle.core.errors import ConfigurationError, LoopExhausted
from treadle.core.excerpts import both_ends
from treadle.core.spoken import duration, gist, last_line, money, one_line, plain


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0.0 s"),
        (9_940_000, "9.9 s"),
        (9_960_000, "10 s"),
        (59_400_000, "59 s"),
        (59_600_000, "1 min"),
        (123_000_000, "2 min 3 s"),
        (3_600_000_000, "1 h"),
        (3_900_000_000, "1 h 5 min"),
        (100 * 3_600_000_000, "4 d 4 h"),
    ],
)
def test_durations_are_as_exact_as_people_need(us: int, text: str) -> None:
    assert duration(us) == text


@pytest.mark.parametrize(
    ("usd", "text"),
    [("0", "$0"), ("0.00001", "<$0.0001"), ("0.01234", "$0.0123"), ("1.005", "$1.01"), ("1234.5", "$1,234.50")],
)
def test_money_has_four_decimals_below_a_dollar_and_two_above(usd: str, text: str) -> None:
    assert money(Decimal(usd)) == text


def test_foreign_text_cannot_steer_a_terminal() -> None:
    assert plain("a\x1b[31mb\x07\r\n\tc\x9b1m") == "a[31mb\n\tc1m"
    assert one_line(" a\n\n b\x00 ", 80) == "a b"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"
    assert last_line("first\nsecond \n \n", 80) == "second"
    assert last_line("abcdefghij", 5) == "…ghij"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("0.5s", 0.5), (45, 45)],
)
def test_durations_are_read_as_people_write_them(typed: object, expected: float) -> None:
    assert seconds("--max-time")(typed) == expected


@pytest.mark.parametrize("typed", ["", "soon", "0", "-5", "5x", "nan", "1e3", True, "h"])
def test_what_is_no_duration_is_refused(typed: object) -> None:
    with pytest.raises(ConfigurationError, match="--max-time"):
        seconds("--max-time")(typed)


@pytest.mark.parametrize("typed", ["abc", "0", "-1", "nan", "inf", True, ""])
def test_what_is_no_cost_is_refused(typed: object) -> None:
    with pytest.raises(ConfigurationError, match="--max-cost"):
        cost("--max-cost")(typed)
    assert cost("--max-cost")("$2.50") == Decimal("2.50")


@pytest.mark.parametrize("typed", ["0", "-1", "1.5", "ten", True, "٣", ""])
def test_what_is_no_whole_number_is_refused(typed: object) -> None:
    with pytest.raises(ConfigurationError, match="--max-rounds"):
        whole("--max-rounds")(typed)


def test_the_end_of_a_long_output_outlasts_its_beginning() -> None:
    output = "The check failed: make: exit code 1\n" + "noise\n" * 1_000_000 + "AssertionError: 3 == 4"
    shown = gist(output, 120)
    assert shown.startswith("The check failed: make")
    assert shown.endswith(" noise AssertionError: 3 == 4")
    assert len(shown) <= 120
    for text in (both_ends(output, 500), str(LoopExhausted("build", 2, output))):
        assert len(text) < 700
        assert "The check failed: make" in text
        assert text.endswith("AssertionError: 3 == 4")


def test_a_short_text_and_a_long_sentence_keep_their_beginning() -> None:
    assert gist("two\nlines") == "two lines"
    assert gist("word " * 100, 40) == one_line("word " * 100, 40)
    assert both_ends("short", 5) == "short"
