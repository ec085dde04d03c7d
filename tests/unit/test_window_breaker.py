"""Summaries that fail, and the breaker: what they leave as it was, what they cost, when it opens and what closes it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.driving import in_runtime, runtime
from support.reading import NOTE, TASK, Scribe, is_summary, loop, of, records
from treadle.app.runtime import Reopening, Runtime
from treadle.core import events as ev
from treadle.core.messages import Compacted
from treadle.core.usage import Usage
from treadle.kernel.steering import Compact, Extend
from treadle.testing import Fault, Turn

FAILURES: dict[str, tuple[Any, str]] = {
    "refused": (Fault(status=400, bill=False), "provider"),
    "broken off": (Fault(close_early=True, bill=True, usage=Usage(input_tokens=900)), "provider"),
    "empty": (Turn(text=" \n"), "empty"),
    "grown": (Turn(text="word " * 8_000), "grew"),
}
SAYS = "I read on. " * 25  # what only a summary can take away


@pytest.mark.req("AG-12")
@pytest.mark.parametrize("how", FAILURES)
def test_a_failed_summary_leaves_the_history_as_it_was_and_its_cost_is_charged(how: str, tmp_path: Path) -> None:
    step, reason = FAILURES[how]
    model = Scribe(40, says=SAYS, note=lambda number: step if number == 1 else Turn(text=NOTE))

    async def test(made: Runtime) -> None:
        session = await made.start(loop(model), TASK)
        document = await session.run()
        assert document["code"] == "accepted", document
        at = next(index for index, body in enumerate(model.seen) if is_summary(body))
        before, after = model.seen[at - 1]["messages"], model.seen[at + 1]["messages"]
        assert after[: len(before)] == before
        assert len(after) == len(before) + 2  # the response and its result
        events = await records(made, session.execution_id)
        assert [failed.reason for failed in of(events, ev.CompactionFailed)] == [reason]
        charged, doubt = document["cost_usd"], document["in_doubt_usd"]
        assert document["usage"]["requests"] + (how == "broken off") == len(model.bill.charges)
        assert charged <= model.bill.total_usd <= charged + doubt
        assert (doubt > 0) == (how == "broken off")
        assert session.state.window.failures == 0  # a summary that came about forgives it
        assert not session.state.window.open
        await session.close()

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("AG-12")
def test_three_failures_open_the_breaker_and_a_measured_shrink_closes_it(tmp_path: Path) -> None:
    model = Scribe(120, says=SAYS, note=Turn(text=""))

    async def test(made: Runtime) -> None:
        session = await made.start(loop(model), TASK)
        document = await session.run()
        assert document["code"] == "accepted", document
        events = await records(made, session.execution_id)
        told = of(events, ev.CompactionIntended, ev.CompactionFailed, ev.CompactionJudged, Compacted)
        opened = next(index for index, event in enumerate(told) if getattr(event, "opens", False))
        failures = of(told[: opened + 1], ev.CompactionFailed)
        assert [failed.opens for failed in failures] == [False, False, True]
        closed = next(index for index, event in enumerate(told) if getattr(event, "breaker", "") == "closes")
        while_open = told[opened + 1 : closed]
        assert while_open
        assert {event.depth for event in of(while_open, Compacted)} <= {"micro", "clamp"}
        assert not of(while_open, ev.CompactionIntended, ev.CompactionFailed)
        assert told[closed].saved * 100 >= told[closed].before * 5
        assert of(told[closed:], ev.CompactionIntended)  # closed, it tries again
        assert document["cost_usd"] == model.bill.total_usd
        await session.close()

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("AG-12")
def test_three_compactions_that_shrink_nothing_open_it_too(tmp_path: Path) -> None:
    """Each takes something away, and the window stays as full as the provider counts: every turn would pay for another."""
    model = Scribe(45, says=SAYS, counts=lambda tokens: 6_000 if model.summaries else tokens)

    async def test(made: Runtime) -> None:
        session = await made.start(loop(model), TASK)
        document = await session.run()
        assert document["code"] == "accepted", document
        events = await records(made, session.execution_id)
        told = of(events, ev.CompactionIntended, ev.CompactionJudged, Compacted)
        opened = next(index for index, event in enumerate(told) if getattr(event, "breaker", "") == "opens")
        judged = of(told[: opened + 1], ev.CompactionJudged)
        last_use = max((at for at, one in enumerate(judged) if one.shrunk), default=-1)
        judged = judged[last_use + 1 :]
        assert [(one.shrunk, one.breaker) for one in judged] == [(False, ""), (False, ""), (False, "opens")]
        assert all(one.after * 100 >= 80 * 7_000 for one in judged)
        assert not isinstance(told[opened + 1], ev.CompactionIntended)
        assert model.summaries < 15  # of 45 turns
        await session.close()

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("AG-12")
@pytest.mark.parametrize("by_person", [False, True], ids=["resumed", "a person's run"])
def test_the_breaker_outlives_a_resume_and_a_persons_run_closes_it(by_person: bool, tmp_path: Path) -> None:
    model = Scribe(28, says=SAYS, note=lambda number: Turn(text="" if number < 4 else NOTE))
    store = f"sqlite:///{tmp_path / 't.db'}"

    async def test(made: Runtime) -> None:
        session = await made.start(loop(model, max_turns=26), TASK)
        assert (await session.run())["code"] == "limit"
        name, seq = session.execution_id, session.state.seq
        assert session.state.window.open
        await session.close()
        async with runtime(store, tmp_path) as other:
            await other.steer(name, Extend(actor="kim", max_turns=60))
            if by_person:
                await other.steer(name, Compact(actor="kim", depth="auto"))
            again = await other.resume(name, loop(model), Reopening())
            assert again.state.window.open
            assert (await again.run())["code"] == "accepted"
            after = (await records(other, name))[seq:]
            first = of(after, ev.CompactionIntended, ev.CompactionFailed, Compacted)[0]
            if by_person:
                assert (first.by, first.depth) == ("person", "auto")
                done = next(r for r in await other.ledger.records(name, after=seq) if r.kind == "compacted")
                assert not (await other.state(name, at=done.seq)).window.open
            else:
                assert isinstance(first, Compacted)
                assert first.depth in ("micro", "clamp")
            await again.close()

    in_runtime(store, tmp_path, test)


def test_after_a_person_let_it_go_on_a_summary_that_failed_is_tried_again(tmp_path: Path) -> None:
    dear = Turn(text="", usage=Usage(input_tokens=2_000_000))
    model = Scribe(28, says=SAYS, note=lambda number: dear if number == 1 else Turn(text=NOTE))

    async def test(made: Runtime) -> None:
        session = await made.start(replace(loop(model), max_cost_usd=Decimal(8)), TASK)
        document = await session.run()
        assert document["code"] == "limit", document
        asked, name = len(model.seen), session.execution_id
        await session.close()
        await made.steer(name, Extend(actor="kim", max_cost_usd=Decimal(100)))
        again = await made.resume(name, loop(model), Reopening())
        assert (await again.run())["code"] == "accepted"
        assert is_summary(model.seen[asked])
        await again.close()

    in_runtime("memory:", tmp_path, test)
