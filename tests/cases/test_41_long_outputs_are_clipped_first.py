"""Case 41: a long tool output just before compaction overflowed the window. Outputs are clipped to the window before they enter it."""

from pathlib import Path

import pytest

from support.commandline import InProcess
from support.loops import DONE, FIRST, run
from treadle.testing import ScriptedEndpoint, Turn

HUGE = ("run_command", {"command": "seq 40000"})


@pytest.mark.parametrize("calls", [[HUGE], [HUGE] * 6])
def test_no_request_is_longer_than_the_window(calls: list[tuple[str, dict[str, str]]], tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    batches = [[(name, {"command": f"{args['command']}; echo {n}"}) for name, args in calls] for n in range(2)]
    left = iter([FIRST, *[Turn(calls=batch) for batch in batches], DONE])
    with ScriptedEndpoint(lambda body: next(left)) as endpoint:
        ran = run(cli, endpoint, "--window", "8000", "--compact", "micro", check="true")
        assert (ran.code, ran.document["code"]) == (0, "no-change"), ran.err
        sizes = [sum(len(str(message["content"])) for message in body["messages"]) // 4 for body in endpoint.requests]
        assert max(sizes) < 8_000
    if len(calls) > 1:
        return  # several were compacted: their ids are those of later calls
    assert "39999" in cli("last", "last", "--call", "call_1_0").out, "the whole output is kept"
