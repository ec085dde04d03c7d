"""Case 34: a short provider outage failed a run and threw its work away. Passing failures are waited out; for the rest the work is kept."""

from pathlib import Path

import pytest

from support.commandline import InProcess
from support.loops import DONE, FIRST, LOOK, WRITE, run
from treadle.testing import Fault, ScriptedEndpoint


@pytest.mark.parametrize("fault", [Fault(status=503), Fault(status=500), Fault(close_early=True)])
def test_one_bad_answer_is_no_end(fault: Fault, tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint([FIRST, WRITE, fault, DONE]) as endpoint:
        ran = run(cli, endpoint)
        assert (ran.code, ran.document["code"], len(endpoint.requests)) == (0, "accepted", 4), ran.err
        assert ran.document["usage"]["requests"] == 3


def test_an_outage_for_good_keeps_what_was_done(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint([FIRST, LOOK, WRITE, Fault(status=403), DONE]) as endpoint:
        ran = run(cli, endpoint)
        assert (ran.code, ran.document["status"], ran.document["code"]) == (1, "failed", "provider")
        ran = cli("resume", "last", "--retry-incomplete", "--json")
        assert (ran.document["code"], ran.document["usage"]["requests"]) == ("accepted", 4)
        assert len(endpoint.requests) == 5
