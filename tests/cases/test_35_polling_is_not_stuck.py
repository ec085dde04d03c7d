"""Case 35: legitimate polling was called stuck after 4 repeats. Thresholds are settings, and a tool that polls says so and is exempt."""

from pathlib import Path
from typing import Any

import pytest

from support.commandline import InProcess
from support.driving import DONE, FEE, PLAN, in_runtime, scripted
from support.loops import DONE as FINISH
from support.loops import FIRST, WRITE, run
from treadle import Agent, Loop, accept, tool
from treadle.testing import ScriptedEndpoint, Turn

ASK = Turn(calls=[("build_status", {})], usage=FEE)


@pytest.mark.req("AG-11")
@pytest.mark.parametrize("polling", [True, False])
def test_a_tool_that_is_made_for_polling_may_give_the_same_for_long(polling: bool, tmp_path: Path) -> None:
    @tool(kind="read", polling=polling)
    def build_status() -> str:
        """The state of the build."""
        return "running"

    model = scripted(PLAN, *[ASK] * 30, DONE)
    loop = Loop(name="l", act=Agent(model=model, tools=(build_status,)), evaluate=lambda c, o: accept())
    codes: list[str] = []

    async def test(made: Any) -> None:
        session = await made.start(loop, "Wait for the build.")
        codes.append((await session.run())["code"])
        await session.close()

    in_runtime("memory:", tmp_path, test)
    assert codes == ["accepted" if polling else "thrash"]


@pytest.mark.parametrize(("threshold", "code"), [("20", 0), ("0", 0), ("4", 1)])
def test_the_threshold_is_the_users(threshold: str, code: int, tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    look = Turn(calls=[("run_command", {"command": "echo running"})])
    with ScriptedEndpoint([FIRST, *[look] * 10, WRITE, FINISH]) as endpoint:
        ran = run(cli, endpoint, "--guard", f"repeat={threshold}")
    assert ran.code == code, ran.err
