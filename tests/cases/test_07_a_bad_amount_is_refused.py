"""Case 7: "$5" typed at a limit prompt crashed and lost the run. It is five dollars, and what is no amount is refused."""

from pathlib import Path

from support.commandline import InProcess
from support.loops import GOOD, run
from treadle.models.prices import parse_price
from treadle.testing import ScriptedEndpoint

CAP = "0.000001"


AMOUNTS = ("5 dollars", "nan", "-1")


def test_a_cap_that_is_no_amount_changes_nothing(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint(GOOD, price=parse_price("1,2")) as endpoint:
        assert run(cli, endpoint, "--max-cost", CAP).code == 4
        before = cli("show", "last", "--json").document
        for amount in AMOUNTS:
            refused = cli("extend", "last", f"--max-cost={amount}")
            assert (refused.code, refused.out) == (2, ""), amount
            assert "--max-cost" in refused.err
        assert cli("show", "last", "--json").document == before
        assert cli("extend", "last", "--max-cost", "$5", "-q").code == 0
        assert cli("resume", "last", "--json").document["code"] == "accepted"
