"""What is stored can be read back for ever, and what cannot be trusted is refused."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.samples import EVENTS, USAGE
from support.workflow_samples import WORKFLOW_EVENTS
from treadle.core.codec import decode, encode
from treadle.core.endings import ENDINGS, ending, exit_code, is_final
from treadle.core.errors import InvalidUsage, LedgerDamaged, LedgerTooNew
from treadle.core.events import KINDS
from treadle.core.usage import Usage
from treadle.core.values import Value
from treadle.core.workflow_events import WORKFLOW_KINDS

GOLDEN = Path(__file__).parent.parent / "fixtures" / "records"


@pytest.mark.req("LG-07")
@pytest.mark.parametrize(
    ("file", "events", "kinds"), [("v1", EVENTS, KINDS), ("workflow-v1", WORKFLOW_EVENTS, WORKFLOW_KINDS)]
)
def test_records_of_version_1_are_read_as_they_were_written(
    file: str, events: tuple[Value, ...], kinds: dict[str, type[Value]]
) -> None:
    lines = [json.loads(line) for line in (GOLDEN / f"{file}.jsonl").read_text().splitlines()]
    read = [decode(line["kind"], line["version"], line["body"]) for line in lines]
    assert read == list(events)
    assert {line["kind"] for line in lines} == set(kinds)


@pytest.mark.req("LG-07")
@pytest.mark.parametrize(("kind", "version"), [("prompted", 2), ("invented", 1)])
def test_an_unknown_kind_or_version_is_refused(kind: str, version: int) -> None:
    with pytest.raises(LedgerTooNew):
        decode(kind, version, b"{}")


@pytest.mark.req("SE-03")
@given(
    body=st.binary(max_size=60) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(msgspec.json.encode)
)
def test_a_body_that_is_none_is_a_damaged_store(body: bytes) -> None:
    for kind in KINDS | WORKFLOW_KINDS:
        with pytest.raises(LedgerDamaged):
            decode(kind, 1, body)


@pytest.mark.req("FR-11")
@pytest.mark.parametrize("cost", ["NaN", "-1", "Infinity"])
def test_money_that_is_none_is_refused_when_it_is_read(cost: str) -> None:
    kind, version, body = encode(EVENTS[16])
    assert kind == "usage.reported"
    with pytest.raises((InvalidUsage, LedgerDamaged)):
        decode(kind, version, body.replace(b'"0.000001"', json.dumps(cost).encode()))


@pytest.mark.req("FR-11", "TC-10")
@pytest.mark.parametrize(
    "name", ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests"]
)
@pytest.mark.parametrize("value", [-1, True, 1.0, "1", None])
def test_counters_are_whole_and_not_negative(name: str, value: Any) -> None:
    with pytest.raises(InvalidUsage, match=name):
        Usage(**{name: value}).checked()


@pytest.mark.req("FR-11")
@pytest.mark.parametrize("value", [Decimal(-1), Decimal("NaN"), Decimal("Infinity"), 1, 1.5, "1"])
def test_money_is_a_finite_decimal_and_not_negative(value: Any) -> None:
    with pytest.raises(InvalidUsage, match="cost_usd"):
        Usage(cost_usd=value).checked()


@pytest.mark.req("FR-11")
@given(st.lists(st.decimals(min_value=0, max_value=1, places=9), max_size=50))
def test_money_adds_up_exactly(costs: list[Decimal]) -> None:
    total = sum((Usage(cost_usd=cost) for cost in costs), Usage())
    assert total.cost_usd == sum(costs, Decimal(0))
    assert USAGE.checked() is USAGE


TABLE = """
done accepted 0 green yes yes
done no-change 0 green no yes
failed exhausted 1 red no no fork
stopped limit 4 amber no yes extend
stopped usage-unavailable 4 amber no yes resume with a price
failed thrash 1 red no no resume --retry-incomplete
failed timeout 1 red no no resume --retry-incomplete
failed provider 1 red no no resume --retry-incomplete
failed failed 1 red no no resume --retry-incomplete
failed conflict 1 red no no fork
failed permission 1 red no no fork
failed safety 1 red no no fork
failed required-edit-missing 1 red no no fork
failed verification 1 red no no fork
failed recovery-exhausted 1 red no no fork
paused quota 3 violet - - by itself, resume
waiting-input question 3 violet - - answer
waiting-input approval 3 violet - - approve, reject
rejected rejected 1 grey no yes fork
cancelled aborted 1 grey no yes fork
paused interrupted 130 grey - - resume
skipped skipped - grey - - with its dependency
"""


@pytest.mark.req("TC-29", "SV-02")
def test_the_table_of_endings_is_the_one_that_was_promised() -> None:
    word = {True: "yes", False: "no", None: "-"}
    rows = [
        f"{row.status} {row.code} {'-' if row.exit is None else row.exit} {row.colour} {word[row.success]}"
        f" {word[row.nonfailure]} {', '.join(row.goes_on_by)}".rstrip()
        for row in ENDINGS
    ]
    assert rows == TABLE.split("\n")[1:-1]


@pytest.mark.req("TC-29", "SV-02")
def test_the_table_of_endings_maps_each_to_one_row() -> None:
    assert len({(row.status, row.code) for row in ENDINGS}) == len(ENDINGS)
    exits = {row.code: row.exit for row in ENDINGS}
    assert (exits["accepted"], exits["no-change"], exits["exhausted"], exits["limit"]) == (0, 0, 1, 4)
    assert (exits["quota"], exits["question"], exits["approval"], exits["interrupted"]) == (3, 3, 3, 130)
    assert [exit_code("paused", "interrupted", signal=s) for s in ("SIGINT", "SIGTERM", "SIGHUP")] == [130, 143, 129]
    assert not ending("stopped", "limit").success
    assert ending("stopped", "limit").nonfailure
    final = {row.code for row in ENDINGS if is_final(row.status, row.code)}
    assert {"accepted", "exhausted", "rejected", "aborted", "conflict"} <= final
    assert not final & {"limit", "quota", "question", "thrash", "provider", "failed", "timeout", "interrupted"}
