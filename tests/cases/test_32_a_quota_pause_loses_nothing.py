"""Case 32: 70 of 90 were done before a rate limit, 46 after the resume. A pause for a quota loses no turn, no work and no cost."""

from pathlib import Path

from support.commandline import InProcess
from support.loops import run
from treadle.models.prices import parse_price
from treadle.testing import Fault, ScriptedEndpoint, Turn

NO_CREDIT = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}


def part(number: int) -> Turn:
    return Turn(calls=[("write_file", {"path": f"part{number}.txt", "text": f"{number}\n"})])


def test_ninety_parts_are_ninety_over_a_limit_and_a_resume(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    done = Turn(calls=[("finish", {"summary": "all of them"})])
    parts = [part(n) for n in range(30)]
    script = [Turn(text="I begin."), *parts[:20], Fault(status=429, body=NO_CREDIT), *parts[20:], done]
    with ScriptedEndpoint(script, price=parse_price("1,2")) as endpoint:
        ran = run(cli, endpoint, check="test $(ls part*.txt | wc -l) = 30")
        assert (ran.code, ran.document["status"], ran.document["code"]) == (3, "paused", "quota"), ran.err
        assert len(list(cli.workspace.glob("part*.txt"))) == 20
        before = ran.document["usage"]["requests"]
        ran = cli("resume", "last", "--json")
        assert (ran.code, ran.document["code"]) == (0, "accepted"), ran.err
        assert (before, ran.document["usage"]["requests"], len(endpoint.bill.charges)) == (21, 32, 32)
    assert len(list(cli.workspace.glob("part*.txt"))) == 30
