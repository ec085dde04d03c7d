"""Case 36: the same successful search ran dozens of times. The guard looks at call and result, whether the call succeeds or fails."""

from pathlib import Path

from support.commandline import InProcess
from support.loops import DONE, FIRST, run
from treadle.testing import ScriptedEndpoint, Turn

SEARCH = Turn(calls=[("search", {"pattern": "needle"})])


def test_a_search_that_finds_the_same_is_told_and_then_stopped(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    cli.write("hay.txt", "a needle\n")
    with ScriptedEndpoint([FIRST, *[SEARCH] * 60]) as endpoint:
        ran = run(cli, endpoint, task="Where is the needle?")
        assert (ran.code, ran.document["outcome"]["kind"]) == (1, "thrash: repeat")
        assert len(endpoint.requests) == 1 + 8
        told = [message for message in endpoint.requests[-1]["messages"] if "the same result 4 times" in str(message)]
        assert len(told) == 1


def test_the_same_call_with_new_results_is_work(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    count = Turn(calls=[("run_command", {"command": "echo x >> log; wc -l < log"})])
    with ScriptedEndpoint([FIRST, *[count] * 12, DONE]) as endpoint:
        ran = run(cli, endpoint, check="true")
    assert (ran.code, ran.document["guards"]["fires"]) == (0, {})
