"""Case 42: plan mode was only asked for in the prompt. What changes something is refused when it is called, whatever the model thinks."""

from pathlib import Path

import pytest

from support.commandline import InProcess
from support.loops import DONE, FIRST, WRITE, run
from treadle.testing import ScriptedEndpoint, Turn

STEPS = [{"title": "write 42", "check": "grep -q 42 answer.txt"}]
VERIFY = Turn(calls=[("run_command", {"command": "grep -q 42 answer.txt"})])
PLAN = Turn(calls=[("write_plan", {"steps": STEPS})])


@pytest.mark.parametrize(
    "deed",
    [
        ("write_file", {"path": "answer.txt", "text": "42\n"}),
        ("run_command", {"command": "touch answer.txt"}),
        ("finish", {"summary": "I have it anyway"}),
    ],
)
def test_a_model_that_acts_before_the_approval_does_nothing(deed: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint([FIRST, Turn(calls=[deed]), PLAN, WRITE, VERIFY, DONE]) as endpoint:
        ran = run(cli, endpoint, "--plan")
        assert (ran.code, ran.document["pending"]["kind"]) == (3, "plan"), ran.err
        assert not (cli.workspace / "answer.txt").exists()
        assert cli("plan", "approve", "last").code == 0
        assert cli("resume", "last", "--json").document["code"] == "accepted"
    assert (cli.workspace / "answer.txt").read_text() == "42\n"
