"""A command that acts: what it is told, what is recorded of it, and what it says it has cost (AG-26)."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from support.rounds import NotedContext
from support.workspaces import write
from treadle.core.usage import Usage
from treadle.effects.actors import CommandActor

pytestmark = pytest.mark.anyio
TOOLS = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def acted(command, workspace, context=None, **given):
    actor = CommandActor(command, workspace, **{"environ": TOOLS, "timeout_s": 60} | given)
    result = await actor.act(context or NotedContext("act"))
    return json.loads(result.output_json), result.failure


@pytest.mark.req("AG-26")
@pytest.mark.parametrize("command", ["cat", ["cat"], 'cat "$TREADLE_PROMPT_FILE"'], ids=str)
async def test_it_reads_the_task_and_the_feedback_from_stdin_or_a_file(tmp_path, command):
    output, _ = await acted(command, tmp_path, NotedContext("act", task="Fix the\nkit"))
    assert output["output"] == "Fix the\nkit"
    output, _ = await acted(command, tmp_path, NotedContext("act", task="Fix the\nkit", feedback="still -1\n"))
    assert output["output"] == "Fix the\nkit\n\nThe last attempt was rejected:\nstill -1"


@pytest.mark.req("AG-26")
async def test_it_finds_task_and_feedback_apart_and_its_round_in_the_environment(tmp_path):
    context = NotedContext("act", round=2, attempt=3, feedback="no ünï")
    command = (
        'cat "$TREADLE_TASK_FILE"; echo /; cat "$TREADLE_FEEDBACK_FILE"; '
        'echo "/$TREADLE_EXECUTION_ID $TREADLE_ROUND $TREADLE_PHASE $TREADLE_ATTEMPT $TREADLE_IDEMPOTENCY_KEY"'
    )
    output, _ = await acted(command, tmp_path, context)
    assert output["output"] == "Fix it/\nno ünï/x1 2 act 3 x1:r1.act"
    output, _ = await acted('wc -c < "$TREADLE_FEEDBACK_FILE"', tmp_path)
    assert output["output"] == "0"


@pytest.mark.req("AG-26")
async def test_it_works_in_the_workspace(tmp_path):
    await acted("echo 'x = 1' > kit.py", tmp_path)
    assert (tmp_path / "kit.py").read_text() == "x = 1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["kit.py"]


@pytest.mark.req("AG-26")
async def test_exit_code_output_and_time_are_recorded(tmp_path):
    output, failure = await acted("echo working; echo oops >&2; exit 3", tmp_path)
    assert output.pop("elapsed_ms") >= 0
    assert output == {
        "exit_code": 3,
        "signal": None,
        "timed_out": False,
        "output": "working\noops",
        "left_out_bytes": 0,
    }
    assert failure == "the command failed: exit code 3"
    _, failure = await acted("true", tmp_path)
    assert failure == ""


async def test_a_signal_and_a_timeout_are_failures(tmp_path):
    output, failure = await acted("kill -9 $$", tmp_path)
    assert (output["exit_code"], output["signal"], failure) == (None, 9, "the command failed: killed by signal 9")
    output, failure = await acted("echo begun; sleep 60", tmp_path, timeout_s=0.3)
    assert (output["timed_out"], failure) == (True, "the command took more than 0.3 s")


async def test_its_process_group_is_recorded(tmp_path):
    context = NotedContext("act")
    await acted("true", tmp_path, context)
    assert len(context.groups) == 1


async def test_the_recorded_output_is_redacted_and_clipped(tmp_path):
    output, _ = await acted(
        "echo hunter2; seq 1 1000; echo hunter2",
        tmp_path,
        redact=lambda text: text.replace("hunter2", "***"),
        output_characters=100,
    )
    assert output["output"].startswith("***\n1\n")
    assert output["output"].endswith("1000\n***")
    assert len(output["output"]) < 200


@pytest.mark.req("AG-26")
async def test_usage_that_it_prints_is_counted_once_an_attempt(tmp_path):
    write(tmp_path, {"end.json": '{"usage": {"input_tokens": 7, "output_tokens": 2}, "total_cost_usd": 0.10}'})
    context = NotedContext("act", attempt=2)
    await acted("echo talking; cat end.json", tmp_path, context)
    usage = Usage(input_tokens=7, output_tokens=2, requests=1, cost_usd=Decimal("0.10"))
    assert context.reported == [("x1:r1.act:2", usage)]
    assert context.intended == []


async def test_a_reserve_is_intended_before_anything_runs(tmp_path):
    reserve = Usage(requests=1, cost_usd=Decimal(2))
    context = NotedContext("act")
    await acted("true", tmp_path, context, reserve=reserve)
    assert context.intended == [("x1:r1.act:1", reserve)]
    assert context.reported == []


async def test_a_program_that_is_not_there_is_raised(tmp_path):
    with pytest.raises(FileNotFoundError):
        await acted(["./nowhere"], tmp_path)
