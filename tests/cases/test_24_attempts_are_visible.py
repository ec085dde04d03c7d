"""Case 24: a step body ran twice while the journal showed once. Every run of a callback is an attempt that the records show."""

from typing import Any

import pytest

from support.places import Place, X
from treadle.core.codec import decode
from treadle.spec.workflows import Retry, Task, Workflow


@pytest.mark.parametrize("kind", ["memory"])
def test_each_run_has_a_durable_attempt_of_its_own_before_it_begins(kind: str, tmp_path: Any) -> None:
    place = Place(kind, tmp_path)
    ran: list[int] = []

    async def work(ctx: Any) -> str:
        records = place.shared.executions[X].records
        shown = [decode(r.kind, r.version, r.body).attempt for r in records if r.kind == "phase.started"]
        assert shown == [*ran, ctx.attempt]
        ran.append(ctx.attempt)
        if len(ran) % 2:
            raise OSError("no")
        return "done" if len(ran) == 4 else ctx.undefined

    flow = Workflow("w", [Task("a", work, retry=Retry(attempts=3))])
    assert place.run(flow).status == "failed"
    assert place.resume(flow, retry_incomplete=True).status == "done"
    assert ran == [1, 2, 3, 4]
    assert place.resume(flow).document["attempts"] == 4
