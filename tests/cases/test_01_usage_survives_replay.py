"""Case 1: usage added inside a durable unit vanished on replay. Receipts are in the ledger, outside of what is replayed."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.commandline import InProcess
from support.loops import GOOD, run
from support.places import Place, fee
from treadle.models.prices import parse_price
from treadle.spec.workflows import Task, Workflow
from treadle.testing import ScriptedEndpoint


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_what_a_failed_attempt_paid_is_in_the_total_of_the_replay(kind: str, tmp_path: Any) -> None:
    async def work(ctx: Any) -> str:
        ctx.report_usage(fee(2))
        ctx.report_usage_once("the one charge", fee(100))
        await ctx.checkpoint()
        if ctx.attempt < 3:
            raise OSError("no")
        return "done"

    flow = Workflow("w", [Task("a", work)])
    place = Place(kind, tmp_path)
    assert place.run(flow).status == "failed"
    assert place.resume(flow, retry_incomplete=True).status == "failed"
    result = place.resume(flow, retry_incomplete=True)
    assert result.status == "done"
    assert (result.document["cost_usd"], result.document["usage"]["requests"]) == (Decimal("1.06"), 4)
    assert place.resume(flow).document["cost_usd"] == Decimal("1.06")


@pytest.mark.parametrize("point", ["before-tool:1", "after-model:2"])
def test_whatever_was_billed_before_a_kill_is_counted_or_in_doubt(point: str, tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint(GOOD, price=parse_price("1,2")) as endpoint:
        run(cli, endpoint, environ={"TREADLE_CRASH_AT": point})
        usage = cli("resume", "last", "--json").document["usage"]
        billed = len(endpoint.bill.charges)
    assert usage["requests"] + usage["in_doubt_requests"] == billed
    assert (usage["requests"], usage["in_doubt_requests"]) == (3, billed - 3)
