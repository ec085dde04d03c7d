"""Case 45: a resumed child regained write tools. What an agent may do is in its frame: a kill, a resume or a move gives nothing back."""

from pathlib import Path

from support.commandline import InProcess
from support.loops import DONE, FIRST, LOOK, WRITE, run
from treadle.testing import ScriptedEndpoint


def test_what_was_revoked_stays_revoked_over_a_kill(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint([FIRST, LOOK, WRITE, DONE, *[DONE] * 4]) as endpoint:
        stopped = run(cli, endpoint, "--max-turns", "1", check="true")
        assert stopped.code == 4
        assert cli("lease", "revoke", "last", "fs.write", "--as", "ann").code == 0
        assert cli("extend", "last", "--max-turns", "30", "-q").code == 0
        cli("resume", "last", "-q", environ={"TREADLE_CRASH_AT": "before-model:3"})
        ran = cli("resume", "last", "--json")
        assert ran.document["code"] == "no-change", ran.err
    assert not (cli.workspace / "answer.txt").exists()
    assert "no lease covers fs.write:answer.txt" in cli("log", "last", "--json").out
