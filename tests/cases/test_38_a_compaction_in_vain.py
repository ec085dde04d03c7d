"""Case 38: a compaction that could not shrink looped. A breaker judged by outcome opens, is stored, and waits twice as long each time."""

from itertools import pairwise
from pathlib import Path

import pytest

from support.driving import in_runtime, runtime
from support.reading import TASK, Scribe, is_summary, loop
from treadle.app.runtime import Reopening, Runtime
from treadle.kernel.steering import Extend
from treadle.testing import Turn

SAYS = "I read on. " * 25  # what only a summary can take away


@pytest.mark.req("AG-12")
def test_summaries_longer_than_what_they_replace_are_asked_for_ever_less(tmp_path: Path) -> None:
    model = Scribe(130, says=SAYS, note=Turn(text="word " * 20_000))
    store = f"sqlite:///{tmp_path / 't.db'}"

    async def test(made: Runtime) -> None:
        session = await made.start(loop(model, max_turns=80, max_turns_per_act=400), TASK)
        assert (await session.run())["code"] == "limit"
        name, first = session.execution_id, model.summaries
        window = session.state.window
        assert (window.trips, first) == (first - 2, first), "three failures open it, then each trial that fails"
        await session.close()
        async with runtime(store, tmp_path) as other:
            await other.steer(name, Extend(actor="kim", max_turns=400))
            again = await other.resume(name, loop(model, max_turns_per_act=400), Reopening())
            assert (again.state.window.trips, again.state.window.open) == (window.trips, window.open)
            assert (await again.run())["code"] == "accepted"
            await again.close()

    in_runtime(store, tmp_path, test)
    asked = [at for at, body in enumerate(model.seen) if is_summary(body)]
    gaps = [after - before for before, after in pairwise(asked[2:])]
    assert len(gaps) == 4, "trials, of 130 turns"
    assert gaps[3] > 1.5 * gaps[2] > gaps[1]


@pytest.mark.req("AG-12")
def test_one_summary_of_use_makes_the_breaker_as_patient_as_it_was(tmp_path: Path) -> None:
    model = Scribe(160, says=SAYS, note=lambda number: Turn(text="" if number < 5 else "Pages were read."))

    async def test(made: Runtime) -> None:
        session = await made.start(loop(model, max_turns_per_act=400), TASK)
        assert (await session.run())["code"] == "accepted"
        assert model.summaries > 8
        assert (session.state.window.trips, session.state.window.open) == (0, False)
        await session.close()

    in_runtime("memory:", tmp_path, test)
