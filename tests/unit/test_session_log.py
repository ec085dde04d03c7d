"""The session log: a bounded, redacted projection of the records that says where each stands."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from support.driving import DONE, LOOK, PLAN, a_loop, in_runtime, scripted
from support.samples import EVENTS
from treadle import accept, reject
from treadle.app.logs import Follower, tail_for_prompt
from treadle.core.codec import encode
from treadle.core.lesson_events import DistilledLesson, LessonsDistilled
from treadle.core.messages import Prompted, ToolResult, ToolsFinished
from treadle.core.redaction import Redactor
from treadle.ports.ledger import Record
from treadle.telemetry.said import describe
from treadle.telemetry.session_log import Entry, Projection, Wanted, document, entries, tail

SECRET = "hunter2hunter2"
redact = Redactor([SECRET]).redact


def record(seq: int, event: Any) -> Record:
    kind, version, body = encode(event)
    return Record(seq, kind, version, getattr(event, "parent", None), seq * 1_000_000, body)


def an_entry(event: Any, seq: int = 1) -> Entry:
    return Projection(redact).entry(record(seq, event))


@pytest.mark.req("AG-20")
def test_a_log_says_the_round_the_phase_and_the_turn_of_each_record(tmp_path: Any) -> None:
    verdicts = iter([reject("again"), accept()])

    async def test(made: Any) -> None:
        session = await made.start(
            a_loop(scripted(PLAN, LOOK, DONE, LOOK, DONE), evaluate=lambda ctx, output: next(verdicts)), "Do it."
        )
        await session.run()
        found = [entry async for entry in Follower(made.ledger, session.execution_id, redact).more()]
        assert [entry.seq for entry in found] == list(range(1, len(found) + 1))
        judged = [(entry.round, entry.phase) for entry in found if entry.kind == "judged"]
        assert judged == [(1, "evaluate"), (2, "evaluate")]
        turns = [(entry.round, entry.turn) for entry in found if entry.kind == "model.responded"]
        assert turns == [(1, 1), (1, 2), (1, 3), (2, 4), (2, 5)]
        assert found[-1].text.startswith("done, ")

        second = Follower(made.ledger, session.execution_id, redact, Wanted(kinds=("model",), round=2))
        wanted = [entry async for entry in second.more()]
        assert {entry.kind for entry in wanted} == {"model.intended", "model.responded"}
        assert {entry.round for entry in wanted} == {2}
        assert [entry async for entry in second.more()] == [], "what was given is not given again"
        since = Follower(made.ledger, session.execution_id, redact, Wanted(since=found[-2].seq))
        assert [entry async for entry in since.more()] == [found[-1]], "it stands in the round and turn that it did"
        await session.close()

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("AG-20")
def test_long_texts_are_cut_and_secrets_taken_out_whatever_the_records_hold() -> None:
    result = ToolResult(id="c1", content=f"key {SECRET} " + "x" * 50_000)
    entry = an_entry(ToolsFinished(parent=1, results=(result,), us=5))
    assert len(entry.text) <= 240
    found = document(entry, redact)
    assert SECRET not in json.dumps(found, default=bytes.decode) + entry.text
    assert len(json.dumps(found)) < 4_000
    assert found["body"]["results"][0]["content"].endswith("more characters)")
    whole = document(entry, redact, whole=True)
    assert bytes(whole["body"]) == entry.body


@pytest.mark.req("AG-20")
def test_an_entry_is_cut_however_much_there_is_to_say() -> None:
    learnt = [DistilledLesson(lesson_id=f"l{n}", source="gate", text="x" * 100, state="new") for n in range(9)]
    event = LessonsDistilled(lessons=tuple(learnt))
    assert len(describe(event)) > 900
    assert an_entry(event).text == describe(event)[:240]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_kind_of_record_has_words_and_none_shows_a_struct(event: Any) -> None:
    text = describe(event)
    assert text
    assert "\n" not in text
    assert text != "None"
    assert not re.search(r"\b[A-Z]\w+\(", text), "a value as Python prints it"


@pytest.mark.req("AG-20")
def test_a_tail_is_bounded_and_says_what_it_leaves_out() -> None:
    projection = Projection(redact)
    found = list(
        entries(
            (record(n, Prompted(parent=n - 1 or None, text="y" * 500)) for n in range(1, 101)), projection, Wanted()
        )
    )
    text = tail(found[-40:], earlier=60, characters=1_000)
    assert len(text) < 1_100
    assert text.splitlines()[-1].startswith("100 ")
    kept = len(text.splitlines()) - 1
    assert text.splitlines()[0] == f"({100 - kept} earlier records left out)"
    assert tail(found[:2]).count("left out") == 0


@pytest.mark.req("AG-20")
def test_a_later_run_can_read_how_an_earlier_one_went(tmp_path: Any) -> None:
    async def test(made: Any) -> None:
        session = await made.start(a_loop(scripted(PLAN, LOOK, DONE)), "Mend the parser.")
        await session.run()
        await session.close()
        text = await tail_for_prompt(made.ledger, session.execution_id, redact)
        assert f"{session.execution_id} (done, " in text
        assert "Mend the parser." in text
        assert "look" in text

    in_runtime("memory:", tmp_path, test)
