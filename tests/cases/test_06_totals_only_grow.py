"""Case 6: accumulated cost went back to zero on "continue". Totals only grow, and a cap is extended by a word of its own."""

from decimal import Decimal
from pathlib import Path

from support.commandline import InProcess
from support.loops import DONE, FIRST, LOOK, WRITE, run
from treadle.models.prices import parse_price
from treadle.testing import ScriptedEndpoint


def test_totals_go_on_over_each_extension(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    seen: list[tuple[Decimal, int]] = []
    with ScriptedEndpoint([FIRST, LOOK, WRITE, LOOK, DONE], price=parse_price("1,2")) as endpoint:
        document = run(cli, endpoint, "--max-turns", "1").document
        for turns in ("2", "3", "20"):
            assert document["code"] == "limit"
            seen.append((Decimal(str(document["cost_usd"])), document["usage"]["requests"]))
            assert cli("extend", "last", "--max-turns", turns, "-q").code == 0
            document = cli("resume", "last", "--json").document
        seen.append((Decimal(str(document["cost_usd"])), document["usage"]["requests"]))
        assert document["code"] == "accepted"
        assert [requests for _, requests in seen] == [1, 2, 3, 5]
        assert seen == sorted(set(seen))
        assert seen[-1][0] == endpoint.bill.total_usd
