"""One step at a time through the service and by the command line: a turn, a check, a round, and then it is held."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from support.commandline import InProcess
from support.loops import GOOD, run
from support.studio import Served, in_studio
from treadle.testing import Fault, ScriptedEndpoint, Turn

LOOK = Turn(text="looking", calls=(("list_dir", {}),))
DONE = Turn(text="done", calls=(("finish", {"summary": "did it"}),))


@pytest.mark.req("CV-23", "SV-04")
def test_a_loop_that_rests_goes_on_for_one_step_at_a_time(tmp_path: Path) -> None:
    async def test(it: Served) -> None:
        name = await it.start(it.loop("verify: {check: 'true'}\n"))
        with anyio.fail_after(30):
            while not it.endpoint.requests:  # noqa: ASYNC110 - it is asked over HTTP
                await anyio.sleep(0.01)
        running = await it.get(f"/api/executions/{name}")
        assert "step" in running["can"]
        await it.post(f"/api/executions/{name}/pause", {"seen": running["head"]})
        found = await it.rest(name)
        turns: list[int] = []
        while found["execution"]["status"] == "paused":
            assert "step" in found["can"]
            said = await it.post(f"/api/executions/{name}/step", {"seen": found["head"], "unit": "turn"})
            assert (said.status_code, said.json()["given"]) == (200, False)
            found = await it.rest(name)
            turns.append(found["live"]["turns"])
        assert found["execution"]["status"] == "done"
        assert turns == [1, 2, 3, 3], "the last one is the check"
        assert "step" not in found["can"]

    in_studio(tmp_path, [Fault(hang=True), LOOK, LOOK, DONE], test)


@pytest.mark.req("CV-23", "SV-01")
def test_resume_step_does_as_much_from_a_terminal(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    with ScriptedEndpoint(list(GOOD)) as endpoint:
        first = run(cli, endpoint, "--max-turns", "1").document
        assert first["status"] == "stopped"
        name = first["execution_id"]
        assert cli("extend", name, "--max-turns", "9").code == 0
        found = [cli("resume", name, "--step", "--json").document for _ in range(3)]
        assert [(one["status"], one["turns_taken"]) for one in found] == [("paused", 2), ("paused", 3), ("done", 3)]
        assert cli("resume", name, "--step", "week").code == 2
