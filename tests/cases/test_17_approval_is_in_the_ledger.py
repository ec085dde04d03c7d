"""Case 17: an approval was lost when the caller passed its own context on resume. Approvals are in the ledger, whoever resumes."""

from typing import Any

import pytest

from support.places import Place, X
from treadle.app.workflows import Decision
from treadle.spec.workflows import ApprovalTask, Task, Workflow


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_approval_holds_when_what_follows_it_fails_and_others_resume(kind: str, tmp_path: Any) -> None:
    tries: list[dict[str, Any]] = []

    async def ship(ctx: Any) -> str:
        tries.append(ctx.value(gate))
        if len(tries) < 3:
            raise OSError("the depot is closed")
        return "shipped"

    gate = ApprovalTask("gate", "Ship?")
    flow = Workflow("w", [gate, Task("ship", ship, after=(gate,))])
    place = Place(kind, tmp_path)
    place.run(flow)
    yes = Decision(execution_id=X, task="gate", request_id="gate.q1", decision="approve", actor="ada", text="go")
    assert place.resume(flow, decisions=[yes]).status == "failed"
    assert place.resume(flow, retry_incomplete=True).status == "failed"
    result = place.resume(flow, retry_incomplete=True)
    assert result.outputs["ship"] == "shipped"
    assert [(one["actor"], one["text"]) for one in tries] == [("ada", "go")] * 3
