"""Guards and the ladder through the installed command: told, stopped, retuned, killed and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.commandline import InProcess, Ran
from treadle.testing import Fault, ScriptedEndpoint, Turn

LOOK = Turn(calls=[("read_file", {"path": "kit.py"})])
FIX = Turn(calls=[("write_file", {"path": "kit.py", "text": "42\n"})])
DONE = Turn(calls=[("finish", {"summary": "done"})])
PLAN = Turn(text="I look first.")


def run(cli: InProcess, endpoint: ScriptedEndpoint, *more: str, **options: Any) -> Ran:
    cli.write("kit.py", "41\n")
    return cli(
        "run", "Fix the answer", "--check", "grep -q 42 kit.py", "--model", "openai:small", "--base-url", endpoint.url,
        "--price", "1,2", "--json", *more, **options,
    )  # fmt: skip


@pytest.mark.req("AG-11", "AG-17")
def test_it_is_told_then_stopped_and_goes_on_when_the_threshold_is_raised(tmp_path: Path) -> None:
    cli = InProcess(tmp_path).git()
    with ScriptedEndpoint([PLAN, *[LOOK] * 9, FIX, DONE]) as endpoint:
        ran = run(cli, endpoint)
        assert (ran.code, ran.document["code"]) == (1, "thrash")
        assert ran.document["outcome"]["kind"] == "thrash: repeat"
        assert ran.document["guards"]["fires"] == {"repeat": 2}
        why = cli("why", "last").out
        assert "guard repeat tripped 2 times, threshold 4" in why
        assert "gave the same result 8 times" in cli("log", "last", "--kind", "guard").out
        assert "guard repeat" in cli("show", "last").out
        again = cli("resume", "last", "--retry-incomplete", "--guard", "repeat=9", "--json")
    assert (again.code, again.document["code"]) == (0, "accepted")
    assert again.document["guards"]["limits"]["repeat"] == 9


@pytest.mark.req("AG-11", "FR-21")
def test_a_kill_keeps_counters_and_the_ladder_takes_over_once(tmp_path: Path) -> None:
    cli = InProcess(tmp_path).git()
    with ScriptedEndpoint([PLAN, *[LOOK] * 8, FIX, DONE]) as endpoint:
        killed = run(cli, endpoint, "--escalate-to", "openai:big", environ={"TREADLE_CRASH_AT": "before-model:7"})
        assert killed.code != 0
        again = cli("resume", "last", "--json")
        models = [body["model"] for body in endpoint.requests]
    assert (again.code, again.document["code"], again.document["model"]) == (0, "accepted", "openai:big")
    assert again.document["guards"]["fires"] == {"repeat": 2}
    assert models[-2:] == ["big", "big"]
    assert set(models[:-2]) == {"small"}
    assert "openai:big (rung 1)" in cli("log", "last", "--kind", "escalated").out


@pytest.mark.req("AG-11")
def test_a_prompt_that_is_refused_as_too_long_is_compacted_once_and_then_it_ends(tmp_path: Path) -> None:
    cli = InProcess(tmp_path).git()
    body = {"error": {"message": "maximum context length exceeded", "code": "context_length_exceeded"}}
    with ScriptedEndpoint(lambda _: Fault(status=400, body=body)) as endpoint:
        ran = run(cli, endpoint)
        assert (ran.code, ran.document["outcome"]["kind"]) == (1, "thrash: oversized")
        assert len(endpoint.requests) >= 4


@pytest.mark.req("AG-11", "FR-21")
@pytest.mark.parametrize(
    "wrong",
    [
        ("--guard", "nothing=3"),
        ("--guard", "repeat"),
        ("--guard", "no-call=0"),
        ("--escalate-to", "nobody:x"),
        ("--escalate-to", ","),
    ],
)
def test_wrong_thresholds_and_ladders_are_refused_before_anything_starts(
    tmp_path: Path, wrong: tuple[str, str]
) -> None:
    cli = InProcess(tmp_path).git()
    with ScriptedEndpoint([PLAN]) as endpoint:
        ran = run(cli, endpoint, *wrong)
        assert (ran.code, ran.document["exit_code"]) == (2, 2)
        assert endpoint.requests == []
