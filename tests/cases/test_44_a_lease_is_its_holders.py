"""Case 44: "always allow" for one agent leaked to another. A lease belongs to one execution; the next one asks for itself."""

from pathlib import Path

from support.commandline import InProcess
from support.loops import DONE, FIRST, run
from treadle.testing import ScriptedEndpoint, Turn

ASK = Turn(calls=[("request_permission", {"capability": "fs.write:docs/**", "reason": "the page is there"})])
WRITE = Turn(calls=[("write_file", {"path": "docs/a.md", "text": "a\n"})])
FLAGS = ("--allow", "fs.write:src/**", "--may-ask", "fs.write:docs/**")


def test_what_one_loop_was_granted_another_one_lacks(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint([FIRST, ASK, WRITE, DONE]) as endpoint:
        first = run(cli, endpoint, *FLAGS, check="test -e docs/a.md")
        assert (first.code, first.document["pending"]["kind"]) == (3, "approval")
        assert cli("approve", first.document["execution_id"]).code == 0
        assert cli("resume", first.document["execution_id"], "-q").code == 0
        (cli.workspace / "docs" / "a.md").unlink()
    with ScriptedEndpoint([FIRST, WRITE, DONE]) as endpoint:
        second = run(cli, endpoint, *FLAGS, "--max-rounds", "1", check="test -e docs/a.md")
        assert second.code == 1
    assert not (cli.workspace / "docs" / "a.md").exists()
    held = cli("lease", "ls", second.document["execution_id"], "--json").document["leases"]
    assert "fs.write:docs/**" not in [one["capability"] for one in held]
    assert "no lease covers fs.write:docs/a.md" in cli("log", second.document["execution_id"], "--json").out
