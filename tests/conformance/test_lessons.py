"""The store of lessons: found by words, one vote a loop, trusted after a confirmation, retired when harmful."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import anyio
import pytest

from support import postgres
from support.driving import DONE, PLAN, a_loop, in_runtime, scripted
from treadle import accept, reject
from treadle.app.runtime import Runtime
from treadle.app.stores import open_lessons
from treadle.core.errors import LedgerDamaged, LedgerTooNew, UnknownLesson
from treadle.core.lesson_events import LessonOutcome
from treadle.core.values import replace
from treadle.ledger.lessons import SqliteLessons
from treadle.memory.lessons import RECALL_TOKENS, chosen, lesson_id, told_tokens
from treadle.ports.lessons import Candidate, Lesson, Lessons, Match, Origin, Vote

PLACE = {"role": "run.act", "workspace": "/w"}


def a_candidate(id: str = "L1", step: str = "x1", text: str = "Run the code generator before the tests.", **more: Any):
    return Candidate(
        **(
            PLACE
            | {"id": id, "text": text, "source": "gate", "task": "Fix the parser", "step_exec_id": step, "at_us": 1}
            | more
        )
    )


def a_vote(outcome: LessonOutcome, step: str = "x2", id: str = "L1") -> Vote:
    return Vote(step_exec_id=step, lesson_id=id, outcome=outcome, evidence="seen", at_us=2)


def run(test: Any, place: Path | str | None) -> None:
    """On a file, in memory, or on a server at an address."""

    async def main() -> None:
        lessons = open_lessons(place) if isinstance(place, str) else SqliteLessons(place)
        try:
            await test(lessons)
        finally:
            await lessons.close()

    anyio.run(main)


@pytest.fixture(params=["file", "memory", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str | None:
    if request.param == "postgres":
        if postgres.binaries() is None:
            pytest.skip("no Postgres server is installed")
        return postgres.new_store()
    return tmp_path / "t.db.lessons" if request.param == "file" else None


@pytest.mark.req("FR-18")
def test_a_retry_cannot_vote_twice_and_the_worse_vote_of_a_loop_stays(place: Path | str | None) -> None:
    async def test(lessons: Lessons) -> None:
        await lessons.add([a_candidate()])
        for outcome in ("helpful", "helpful", "neutral", "helpful"):
            (lesson,) = await lessons.vote([a_vote(outcome)])
        assert (lesson.helpful, lesson.neutral) == (0, 1)
        (lesson,) = await lessons.vote([a_vote("helpful", step="x3"), a_vote("harmful", id="gone")])
        assert (lesson.helpful, lesson.neutral) == (1, 1)

    run(test, place)


@pytest.mark.req("FR-18")
def test_a_candidate_is_trusted_after_one_confirmation_which_its_own_loop_cannot_give(place: Path | str | None) -> None:
    async def test(lessons: Lessons) -> None:
        assert [one.standing for one in await lessons.add([a_candidate(), a_candidate("L2")])] == ["candidate"] * 2
        assert (await lessons.add([a_candidate()]))[0].standing == "candidate"
        assert (await lessons.add([a_candidate(step="x2")]))[0].standing == "trusted"
        assert (await lessons.vote([a_vote("unobserved", id="L2")]))[0].standing == "candidate"
        assert (await lessons.vote([a_vote("helpful", step="x9", id="L2")]))[0].standing == "trusted"
        assert [one.step_exec_id for one in await lessons.origins("L1")] == ["x1", "x2"]

    run(test, place)


@pytest.mark.req("FR-18")
def test_a_harmful_lesson_is_retired_found_no_more_and_not_learnt_again(place: Path | str | None) -> None:
    async def test(lessons: Lessons) -> None:
        await lessons.add([a_candidate()])
        found = partial_match(lessons, "code generator")
        assert [match.lesson.id for match in await found()] == ["L1"]
        assert (await lessons.vote([a_vote("harmful")]))[0].standing == "retired"
        assert await found() == []
        assert (await lessons.add([a_candidate(step="x3")]))[0].standing == "retired"
        assert (await lessons.edit("L1", confirm=True)).standing == "trusted"
        assert [match.lesson.id for match in await found()] == ["L1"]

    run(test, place)


@pytest.mark.req("FR-18")
def test_one_harmful_vote_does_not_undo_many_helpful_ones(place: Path | str | None) -> None:
    async def test(lessons: Lessons) -> None:
        await lessons.add([a_candidate()])
        await lessons.vote([a_vote("helpful", step=f"h{n}") for n in range(2)])
        assert (await lessons.vote([a_vote("harmful", step="b1")]))[0].standing == "trusted"
        assert (await lessons.vote([a_vote("harmful", step="b2")]))[0].standing == "retired"

    run(test, place)


def partial_match(lessons: Lessons, text: str, **where: str) -> Any:
    return lambda: lessons.match(text, **(PLACE | where), limit=50)


@pytest.mark.req("FR-17")
def test_lessons_are_found_by_shared_words_in_their_own_role_and_workspace(place: Path | str | None) -> None:
    async def test(lessons: Lessons) -> None:
        await lessons.add([a_candidate(), a_candidate("L2", text="Commas go inside."), a_candidate("L3", workspace="")])
        assert {one.lesson.id for one in await partial_match(lessons, "the tests need a code generator")()} == {
            "L1",
            "L3",
        }
        assert await partial_match(lessons, "generator")() != []
        assert await partial_match(lessons, "a generator of electric power")() == [], "one common word is too few"
        assert await partial_match(lessons, "code generator", role="other")() == []
        assert [one.lesson.id for one in await partial_match(lessons, "code generator", workspace="/v")()] == ["L3"]
        await lessons.edit("L2", text="Full stops go outside brackets.")
        assert [one.lesson.id for one in await partial_match(lessons, "full stops")()] == ["L2"]

    run(test, place)


@pytest.mark.req("SE-03")
@pytest.mark.parametrize("text", ['" OR *', "NEAR(a b)", "", "\0\x01", "ÄÖ -\"'", "a" * 100_000, "text:* AND NOT task"])
def test_a_task_is_words_and_never_a_query(place: Path | None, text: str) -> None:
    async def test(lessons: Lessons) -> None:
        await lessons.add([a_candidate()])
        assert await partial_match(lessons, text)() == []

    run(test, place)


@pytest.mark.req("FR-17")
def test_what_is_told_fits_its_budget_and_the_better_record_comes_first() -> None:
    def match(id: str, **votes: int) -> Match:
        counts = {"standing": "trusted"} | votes
        lesson = Lesson(
            id=id, text="word " * 100, role="r", workspace="", source="loop", task="t", created_us=1, **counts
        )
        return Match(lesson, 1.0)

    matches = [
        match("L1"),
        match("L2", helpful=5),
        match("L3", harmful=1, helpful=2),
        match("L4", standing="candidate"),
    ]
    found = chosen(matches, tokens=500)
    assert [one.lesson_id for one in found] == ["L2", "L1", "L3"]
    assert told_tokens(found) <= 500 < RECALL_TOKENS
    assert chosen(matches, tokens=50) == []


def test_numbers_and_addresses_tell_no_two_lessons_apart() -> None:
    assert lesson_id("r", "w", "gate", "lint: line 12 at 0x7f") == lesson_id("r", "w", "gate", "lint: line 9  at 0xff")
    assert lesson_id("r", "w", "gate", "lint") != lesson_id("r", "v", "gate", "lint")


@pytest.mark.req("FR-18")
def test_what_is_said_and_done_of_a_lesson_is_kept(place: Path | str | None) -> None:
    async def test(lessons: Lessons) -> None:
        await lessons.add([a_candidate(), a_candidate("L22", gate="lint", round=3)])
        await lessons.vote([a_vote("neutral"), a_vote("helpful", step="x3")])
        assert [(one.step_exec_id, one.outcome, one.evidence) for one in await lessons.votes("L1")] == [
            ("x2", "neutral", "seen"),
            ("x3", "helpful", "seen"),
        ]
        assert [one.id for one in await lessons.all()] == ["L22", "L1"]
        assert await lessons.origins("L22") == [Origin(step_exec_id="x1", source="gate", gate="lint", round=3, at_us=1)]
        assert (await lessons.retire("L22", "no longer so")).reason == "no longer so"
        assert (await lessons.get("L2")).id == "L22"
        await lessons.add([a_candidate("L23")])
        with pytest.raises(UnknownLesson, match="ambiguous: L22, L23"):
            await lessons.get("L2")
        known = await lessons.get("L1")
        brought = [replace(known, id="L9", text="Half \ud83d of a pair, \0 and all."), known]
        assert [await lessons.bring(one, origins=(), at_us=9) for one in brought] == [True, False]
        assert ((await lessons.get("L9")).standing, (await lessons.get("L9")).helpful) == ("candidate", 0)

    run(test, place)


@pytest.mark.req("LG-06")
def test_loops_that_vote_and_learn_at_once_lose_nothing(place: Path | str | None) -> None:
    async def test(lessons: Lessons) -> None:
        async def one(number: int) -> None:
            ids = ("L1", "L2") if number % 2 else ("L2", "L1")
            await lessons.add([a_candidate(id, step=f"x{number}") for id in ids])
            await lessons.vote([a_vote("helpful", step=f"v{number}", id=id) for id in ids])

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(one, number)
        for id in ("L1", "L2"):
            lesson = await lessons.get(id)
            assert (lesson.helpful, lesson.confirmations, len(await lessons.origins(id))) == (8, 15, 8)

    run(test, place)


@pytest.mark.req("FR-17", "LG-06")
@pytest.mark.skipif(postgres.binaries() is None, reason="no Postgres server is installed")
def test_what_a_loop_on_postgres_learns_the_next_one_is_told(tmp_path: Path) -> None:
    async def test(runtime: Runtime) -> None:
        for verdicts in ([reject("error: the parser is missing"), accept()], [accept()]):
            given = iter(verdicts)
            model = scripted(PLAN, DONE, DONE)
            session = await runtime.start(
                a_loop(model, lambda ctx, output, given=given: next(given)), "Mend the parser"
            )
            await session.run()
            await session.close()
        (told,) = session.state.memory.recalled or ()
        assert "the parser is missing" in told.text

    in_runtime(postgres.new_store(), tmp_path, test)


@pytest.mark.req("SE-03", "SV-02")
def test_a_file_of_somebody_else_or_a_damaged_one_is_refused_and_left_alone(tmp_path: Path) -> None:
    foreign, noise, newer = (tmp_path / name for name in ("foreign", "noise", "newer"))
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    noise.write_bytes(b"not a database" * 500)

    async def make(lessons: Lessons) -> None:
        await lessons.add([a_candidate()])

    run(make, newer)
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    for path, error in ((foreign, LedgerDamaged), (noise, LedgerDamaged), (newer, LedgerTooNew)):
        before = path.read_bytes()

        async def look(lessons: Lessons, error: type[Exception] = error) -> None:
            with pytest.raises(error):
                await lessons.all()

        run(look, path)
        assert path.read_bytes() == before


def test_reading_makes_no_file_and_an_unknown_id_is_named(tmp_path: Path) -> None:
    async def test(lessons: Lessons) -> None:
        assert await lessons.all() == []
        with pytest.raises(UnknownLesson, match="'L7'"):
            await lessons.get("L7")

    run(test, tmp_path / "none")
    assert not (tmp_path / "none").exists()
