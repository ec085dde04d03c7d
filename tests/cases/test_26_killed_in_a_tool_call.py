"""Case 26: killed during a tool call, the session was unusable afterwards. An open call is closed on resume, as what it is: in doubt."""

from pathlib import Path

from support.commandline import InProcess
from support.loops import DONE, FIRST, LOOK, WRITE, run, unpaired
from treadle.testing import ScriptedEndpoint, Turn


def test_the_session_goes_on_and_every_call_has_its_result(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    both = Turn(
        calls=[("list_dir", {}), ("run_command", {"command": "echo once >> ran; kill -9 $PPID; sleep 9"}), *WRITE.calls]
    )
    with ScriptedEndpoint([FIRST, both, LOOK, WRITE, DONE]) as endpoint:
        killed = run(cli, endpoint, environ={"TREADLE_CRASH_AT": "after-tool:1"})
        assert killed.code < 0
        ran = cli("resume", "last", "--json")
        assert (ran.code, ran.document["code"]) == (0, "accepted"), ran.err
        assert [unpaired(body) for body in endpoint.requests] == [[]] * len(endpoint.requests)
    assert (cli.workspace / "ran").read_text() == "once\n", "what may have run is not run again unseen"
