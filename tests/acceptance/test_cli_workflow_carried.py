"""Workflows at the command line: their frame, carried to another store; what only loops have; limits that are typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.commandline import CommandLine

FLOW = """
import anyio

from treadle import ApprovalTask, Command, Loop, Person, RunTask, Task, Workflow, run_workflow

loop = Loop(name="inner", act=Command(command="true"), evaluate=Person(), workspace=".")
inner = RunTask("inner", Workflow("middle", (RunTask("loop", loop, input="do it"),)))
gate = ApprovalTask("gate", "Ship it?", after=(inner,))
nested = Workflow("nested", (inner, gate))


async def slow(ctx):
    await anyio.sleep(1.2)


one = Task("one", slow)
timed = Workflow("timed", (one, Task("two", slow, after=(one,))))


async def act(ctx, *given):
    return "done"


script = Workflow("script", (RunTask("inner", Loop(name="own", act=act, evaluate=Person()), input="do it"),))
if __name__ == "__main__":
    anyio.run(lambda: run_workflow(script, definition="flow:script"))
"""
OTHER = "sqlite:///other.db"


def home(tmp_path: Path) -> CommandLine:
    cli = CommandLine(tmp_path)
    cli.write("flow.py", FLOW)
    return cli


@pytest.mark.req("FR-27", "FR-01")
def test_a_workflow_is_carried_to_another_store_with_what_runs_inside_it(tmp_path: Path) -> None:
    cli = home(tmp_path)
    waiting = cli("run", "flow:nested", "--json", "-q").document
    sealed = json.loads(cli("frame", "show", "last", "--json").out)
    assert (sealed["frame"]["kind"], sealed["frame"]["name"]) == ("workflow-frame", "nested")
    assert cli("frame", "verify", "last").code == 0
    assert cli("frame", "export", "last", "whole.json").code == 0
    assert "a sound export of" in cli("frame", "verify", "whole.json").err

    assert cli("frame", "import", "whole.json", "--workspace", ".", "--store", OTHER).code == 2, "for loops"
    assert cli("frame", "import", "whole.json", "--store", OTHER).code == 0
    assert cli("frame", "import", "whole.json", "--store", OTHER).code == 2, "the id is taken"
    carried = cli("show", "last", "--json", "--store", OTHER).document
    assert carried["questions"] == waiting["questions"]
    (deep,) = [one["request_id"] for one in carried["questions"]]
    assert cli("approve", "last", "--request", deep, "-q", "--store", OTHER).code == 0
    assert cli("resume", "last", "-q", "--store", OTHER).code == 3
    assert cli("approve", "last", "-q", "--store", OTHER).code == 0
    assert cli("resume", "last", "-q", "--store", OTHER).code == 0


@pytest.mark.req("FR-01", "FR-23")
def test_a_changed_export_or_frame_of_a_workflow_is_refused_and_nothing_is_imported(tmp_path: Path) -> None:
    cli = home(tmp_path)
    cli("run", "flow:nested", "-q")
    whole = cli("frame", "export", "last").out
    cli.write("bad.json", whole.replace("Ship it?", "Ship what?", 1))
    refused = cli("frame", "import", "bad.json", "--store", OTHER)
    assert (refused.code, "$.digest" in refused.err) == (1, True)
    sealed = cli("frame", "show", "last", "--json").out
    cli.write("frame.json", sealed)
    assert cli("frame", "verify", "frame.json").code == 0
    refused = cli("frame", "import", "frame.json", "--store", OTHER)
    assert (refused.code, "expected an export" in refused.err) == (1, True)


def test_what_only_loops_have_is_refused_with_what_to_do(tmp_path: Path) -> None:
    cli = home(tmp_path)
    cli("run", "flow:nested", "-q")
    for command in (("diff", "last"), ("revert", "last", "--yes"), ("context", "last")):
        refused = cli(*command)
        assert refused.code == 2, refused.err
        assert "names the loops inside it" in refused.err
        assert "Traceback" not in refused.err


@pytest.mark.req("TC-21")
def test_a_limit_on_time_that_is_typed_stops_a_workflow_which_goes_on_once_it_is_extended(tmp_path: Path) -> None:
    cli = home(tmp_path)
    stopped = cli("run", "flow:timed", "--max-time", "1s", "--json", "-q")
    assert (stopped.code, stopped.document["code"]) == (4, "limit")
    assert "max_time 1 s reached" in stopped.document["outcome"]["evidence"]
    assert stopped.document["tasks"]["two"]["attempts"] == 0
    assert cli("extend", "last", "--max-time", "1m", "-q").code == 0
    assert cli("resume", "last", "-q").code == 0


@pytest.mark.req("FR-25")
def test_what_a_script_has_started_is_resumed_by_the_name_of_its_module(tmp_path: Path) -> None:
    cli = home(tmp_path)
    subprocess.run([sys.executable, "flow.py"], cwd=cli.workspace, env=cli.environ, check=True, timeout=120)
    assert cli("show", "last", "--json").document["status"] == "waiting-input"
    assert cli("approve", "last", "-q").code == 0
    resumed = cli("resume", "last", "--json", "-q")
    assert (resumed.code, resumed.document["status"]) == (0, "done"), resumed.err
