"""Compacting as pure rules: for any history pairs stay together, nothing that is pinned is lost, and cuts are where they may be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.core.messages import Compacted, Message, ModelResponded, Prompted, ToolCall, ToolResult, ToolsFinished
from treadle.core.settings import AgentSettings
from treadle.core.usage import Usage
from treadle.kernel import compress, window
from treadle.kernel.compress import Row
from treadle.kernel.view import View
from treadle.kernel.window_state import WindowState

SIZES = st.integers(0, 4_000)


def response(parent: int, calls: list[ToolCall], text: str = "") -> ModelResponded:
    return ModelResponded(
        parent=parent, call=f"c{parent}", text=text, calls=tuple(calls), usage=Usage(), finish="stop", us=1
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    """A task, then turns: prompts of every origin, responses with calls whose results come in pieces, perhaps not all of them."""
    rows = [Row(2, Prompted(parent=None, text="the task"))]
    for number in range(draw(st.integers(0, 14))):
        seq = rows[-1].seq + 1
        if draw(st.booleans()):
            origin = draw(st.sampled_from(["feedback", "wrap-up", "directive", "person"]))
            rows.append(Row(seq, Prompted(parent=seq - 1, text=f"{origin} {number}", origin=origin)))
            continue
        kinds = draw(st.lists(st.sampled_from(["read", "mutating", "ask"]), max_size=3))
        calls = [ToolCall(id=f"i{index}", name="t", args={}, kind=kind) for index, kind in enumerate(kinds)]
        rows.append(Row(seq, response(seq - 1, calls, "x" * draw(SIZES))))
        results = [ToolResult(id=call.id, content="y" * draw(SIZES)) for call in calls]
        cut = draw(st.integers(0, len(results)))
        pieces = [piece for piece in (results[:cut], results[cut:]) if piece]
        for piece in pieces:
            seq += 1
            rows.append(Row(seq, ToolsFinished(parent=seq - 1, results=tuple(piece), us=1)))
    if draw(st.booleans()):
        seq = rows[-1].seq + 1
        rows.append(Row(seq, response(seq - 1, [ToolCall(id="open", name="t", args={})])))
    return rows


def compact(rows: list[Row], depth: Any, budget: int, seq: int) -> list[Row] | None:
    view = View()
    for row in rows:
        view.append(row.seq, row.message)
    plan = compress.plan(rows, view.weights, depth, budget)
    if plan is None:
        return None
    event = Compacted(
        parent=plan.parent,
        base=rows[-1].seq,
        depth=depth,
        by="pressure",
        cut=plan.cut,
        keep=plan.keep,
        summary="a summary" if plan.cut else "",
        trim_before=plan.trim_before,
        trim_over=compress.TRIM_OVER,
        trim_to=compress.TRIM_TO,
        clip_to=plan.clip_to,
        before=1,
        after=1,
        calibration=1000,
    )
    return compress.compacted(rows, seq, event)


def unpaired(messages: list[Message]) -> str:
    """What is wrong with the pairs; calls that were never answered may stand at the end alone."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolsFinished):
            for result in message.results:
                if not waiting or waiting.pop(0) != result.id:
                    return f"a result without its call: {result.id}"
        elif waiting:
            return f"calls without results: {waiting}"
        elif isinstance(message, ModelResponded):
            waiting = [call.id for call in message.calls]
    return ""


def never_lost(messages: list[Message]) -> list[Message]:
    """Task, a person's words, the last rejection, questions and what they were answered."""
    told = [one for one in messages if isinstance(one, Prompted)]
    found: list[Message] = [one for one in told if one.origin in ("task", "person")]
    found += [one for one in told if one.origin == "feedback"][-1:]
    said: Message | None = None
    for one in messages:
        said = said if isinstance(one, ToolsFinished) else one
        if isinstance(said, ModelResponded) and any(call.kind == "ask" for call in said.calls):
            found.append(one)
    return found


DEPTHS = st.sampled_from(["micro", "auto", "full", "clamp"])


@pytest.mark.req("AG-12")
@given(rows=histories(), depths=st.lists(DEPTHS, min_size=1, max_size=3), budget=st.integers(0, 30_000))
def test_pairs_stay_together_and_nothing_pinned_is_lost(rows: list[Row], depths: list[Any], budget: int) -> None:
    if unpaired([row.message for row in rows[:-1]]):
        return
    wanted = never_lost([row.message for row in rows])
    now = rows
    for number, depth in enumerate(depths):
        made = compact(now, depth, budget, 1_000 + number)
        now = now if made is None else made
        messages = [row.message for row in now]
        assert not unpaired(messages)
        kept = [one for one in messages if not isinstance(one, ToolsFinished)]
        assert [one for one in wanted if not isinstance(one, ToolsFinished) and one not in kept] == []
        answered = {result.id for one in messages if isinstance(one, ToolsFinished) for result in one.results}
        asked = {r.id for one in wanted if isinstance(one, ToolsFinished) for r in one.results}
        assert asked <= answered
        last = rows[-1].message
        if isinstance(last, ModelResponded) and last.calls and last.calls[0].id == "open":
            assert messages[-1] == last  # an unanswered call is what must be answered next
        assert len({row.seq for row in now}) == len(now)


@pytest.mark.req("AG-12")
@given(rows=histories(), budget=st.integers(1_000, 30_000))
def test_a_compaction_makes_the_history_shorter(rows: list[Row], budget: int) -> None:
    def size(some: list[Row]) -> int:
        view = View()
        for row in some:
            view.append(row.seq, row.message)
        return view.weight

    for depth in ("micro", "auto", "full"):
        made = compact(rows, depth, budget, 999)
        if made is not None:
            assert size(made) < size(rows) + 400  # the words that go before a summary


@pytest.mark.req("AG-12", "AG-16")
def test_an_old_output_becomes_a_stub_that_says_how_to_read_it_back() -> None:
    rows = [Row(2, Prompted(parent=None, text="task"))]
    for turn in range(6):
        seq = 3 + 2 * turn
        rows.append(Row(seq, response(seq - 1, [ToolCall(id=f"c{turn}", name="t", args={})])))
        result = ToolResult(id=f"c{turn}", content=f"line {turn}\n" + "z" * 900)
        rows.append(Row(seq + 1, ToolsFinished(parent=seq, results=(result,), us=1)))
    made = compact(rows, "micro", 10_000, 99)
    assert made is not None
    trimming = compress.plan(rows, [1] * len(rows), "micro", 10_000)
    assert trimming is not None
    assert trimming.parent == 3, "the branch leaves the old one before the first output that is trimmed"
    contents = [row.message.results[0].content for row in made if isinstance(row.message, ToolsFinished)]
    assert all(
        len(content) < 300 and f"read_output(call_id='c{n}@{4 + 2 * n}')" in content
        for n, content in enumerate(contents[:3])
    )
    assert all(len(content) > 900 for content in contents[3:])
    assert compact(made, "micro", 10_000, 100) is None  # what is trimmed is not trimmed again


WORTH = 2_000


@pytest.mark.req("AG-12", "AG-13")
@pytest.mark.parametrize(
    ("changes", "settings", "used", "saves", "depth"),
    [
        ({}, {}, 799, WORTH, None),
        ({}, {}, 800, WORTH, "micro"),
        ({}, {}, 800, 10, "auto"),
        ({}, {}, 960, 10, "full"),
        ({}, {"compact": "auto"}, 960, 10, "auto"),
        ({}, {"compact": "off"}, 2_000, WORTH, None),
        ({}, {"compact": "micro"}, 900, 10, None),
        ({}, {"compact": "micro"}, 1_001, 10, "clamp"),
        ({}, {"compact_at": 50}, 500, 10, "auto"),
        ({"futile": 1}, {}, 850, 10, "full"),
        ({"open": True}, {}, 900, 10, None),
        ({"open": True}, {}, 900, 300, "micro"),
        ({"open": True}, {}, 1_001, 10, "clamp"),
        ({"tried": True}, {}, 900, WORTH, None),
        ({"tried": True}, {}, 1_001, WORTH, "clamp"),
        ({"last": "auto"}, {}, 900, WORTH, None),
        ({"last": "clamp"}, {}, 1_001, WORTH, None),
    ],
)
def test_the_depth_goes_by_pressure_and_an_open_breaker_leaves_micro_and_the_clamp(
    changes: dict[str, Any], settings: dict[str, Any], used: int, saves: int, depth: str | None
) -> None:
    assert window.due(WindowState(**changes), AgentSettings(**settings), used, 1_000, lambda: saves) == depth


@pytest.mark.req("AG-13")
def test_the_clamp_clips_outputs_that_are_too_long_even_alone() -> None:
    rows = [Row(2, Prompted(parent=None, text="task"))]
    rows.append(Row(3, response(2, [ToolCall(id="a", name="t", args={}), ToolCall(id="b", name="t", args={})])))
    results = tuple(ToolResult(id=name, content="z" * 9_000) for name in "ab")
    rows.append(Row(4, ToolsFinished(parent=3, results=results, us=1)))
    made = compact(rows, "clamp", 8_000, 99)
    assert made is not None
    (last,) = [row.message for row in made if isinstance(row.message, ToolsFinished)]
    assert sum(len(result.content) for result in last.results) < 4_000
    assert all("read_output" in result.content for result in last.results)
