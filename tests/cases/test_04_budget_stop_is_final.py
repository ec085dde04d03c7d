"""Case 4: a budget stop was retried for ever by the engine under it. It is an ending with a label, which no resume or retry moves."""

from pathlib import Path

import pytest

from support.commandline import InProcess
from support.loops import FIRST, LOOK, run
from treadle.testing import ScriptedEndpoint


@pytest.mark.parametrize("limit", [("--max-turns", "3"), ("--max-cost", "0.000001")])
def test_nothing_but_an_extension_goes_on(limit: tuple[str, str], tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint([FIRST, LOOK, LOOK, LOOK, LOOK]) as endpoint:
        stopped = run(cli, endpoint, *limit)
        assert (stopped.code, stopped.document["status"], stopped.document["code"]) == (4, "stopped", "limit")
        asked = len(endpoint.requests)
        assert cli("resume", "last", "-q").code == 4
        assert cli("resume", "last", "--retry-incomplete", "-q").code == 4
        assert cli("recover").code == 0
        assert len(endpoint.requests) == asked
    assert cli.documents()[0]["status"] == "stopped"
