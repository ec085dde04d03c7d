"""Case 12: the exit tool was called again and again and the loop never ended. After finish nothing is asked and nothing is run."""

from pathlib import Path

from support.commandline import InProcess
from support.loops import FIRST, run
from treadle.testing import ScriptedEndpoint, Turn

FINISH = ("finish", {"summary": "that was it"})


def test_finish_is_the_last_call_of_its_act(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    both = Turn(calls=[FINISH, FINISH])
    with ScriptedEndpoint([FIRST, both, *[Turn(calls=[FINISH])] * 50]) as endpoint:
        ran = run(cli, endpoint, check="true")
        assert (ran.code, ran.document["status"]) == (0, "done")
        assert len(endpoint.requests) == 2
