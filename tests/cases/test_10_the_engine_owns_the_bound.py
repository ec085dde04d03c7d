"""Case 10: a loop plug-in ignored max-iterations 3 and ran to 484. The engine counts the rounds, whatever model and prompt say."""

from pathlib import Path

from support.commandline import InProcess
from support.loops import FIRST, run
from treadle.testing import ScriptedEndpoint, Turn

EAGER = Turn(text="I go on; the limit does not hold for me.", calls=[("finish", {"summary": "again"})])


def test_the_third_rejection_of_three_is_the_end(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint([FIRST, *[EAGER] * 500]) as endpoint:
        ran = run(cli, endpoint, "--max-rounds", "3", check="false")
        asked = len(endpoint.requests)
        assert (ran.code, ran.document["status"], ran.document["rounds"]) == (1, "failed", 3)
        for flags in ((), ("--retry-incomplete",)):
            assert cli("resume", "last", *flags, "-q").code == 1
        assert len(endpoint.requests) == asked <= 6
