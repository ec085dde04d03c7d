"""A command that judges: its exit code, what comes back to the next round, and what is told to people."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.rounds import NotedContext
from support.workspaces import write
from treadle.core.errors import CheckTimeout, ConfigurationError
from treadle.effects.checks import CommandCheck, verify_command
from treadle.ports.callback import Verdict

pytestmark = pytest.mark.anyio
TOOLS = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def judged(command, workspace, context=None, **given) -> Verdict:
    check = CommandCheck(command, workspace, **{"environ": TOOLS, "timeout_s": 60} | given)
    return await check.check(context or NotedContext(), '"done"')


@pytest.mark.parametrize("command", ["test -f kit.py", ["test", "-f", "kit.py"]], ids=["shell", "argv"])
async def test_exit_code_zero_accepts_and_anything_else_rejects(tmp_path, command):
    assert not (await judged(command, tmp_path)).accepted
    write(tmp_path, {"kit.py": ""})
    assert (await judged(command, tmp_path)).accepted


async def test_feedback_names_the_command_its_exit_code_and_what_it_said(tmp_path):
    verdict = await judged("echo told; echo warned >&2; exit 3", tmp_path)
    expected = "The check failed: echo told; echo warned >&2; exit 3: exit code 3\ntold\nwarned"
    assert verdict == Verdict(False, expected, expected.removeprefix("The check failed: "))


async def test_an_acceptance_has_its_evidence_and_no_feedback(tmp_path):
    assert await judged(["echo", "two words"], tmp_path) == Verdict(
        True, "", "echo 'two words': exit code 0\ntwo words"
    )


async def test_a_signal_is_named(tmp_path):
    assert "killed by signal 9" in (await judged("kill -9 $$", tmp_path)).feedback


async def test_long_output_keeps_its_beginning_and_more_of_its_end(tmp_path):
    verdict = await judged("seq 1 100000; exit 1", tmp_path, feedback_characters=400)
    lines = verdict.feedback.splitlines()
    assert lines[1] == "1"
    assert lines[-1] == "100000"
    assert "characters left out" in verdict.feedback
    assert verdict.feedback.index("left out") < len(verdict.feedback) / 2
    assert len(verdict.feedback) < 600


async def test_secrets_are_redacted_before_the_output_is_cut(tmp_path):
    verdict = await judged(
        "printf 'key=hunter2 %0500d\\n' 1; exit 1",
        tmp_path,
        feedback_characters=40,
        redact=lambda text: text.replace("hunter2", "[secret]"),
    )
    assert "hunter2" not in verdict.feedback + verdict.evidence
    assert "hun" not in verdict.feedback.split("exit 1: exit code 1")[1]


async def test_a_check_that_takes_too_long_is_a_timeout(tmp_path):
    with pytest.raises(CheckTimeout, match=r"more than 0\.2 s: sleep 60"):
        await judged("sleep 60", tmp_path, timeout_s=0.2)


async def test_the_command_runs_in_the_workspace_and_knows_its_round(tmp_path):
    context = NotedContext(round=3, attempt=2)
    told = "$PWD $TREADLE_EXECUTION_ID $TREADLE_ROUND $TREADLE_PHASE $TREADLE_ATTEMPT $TREADLE_IDEMPOTENCY_KEY"
    verdict = await judged(f'echo "{told}"', tmp_path, context)
    assert verdict.evidence.endswith(f"\n{tmp_path} x1 3 evaluate 2 x1:r1.evaluate")


async def test_its_process_group_is_recorded(tmp_path):
    context = NotedContext()
    assert (await judged("true", tmp_path, context)).accepted
    assert [group[0] > 1 for group in context.groups] == [True]


async def test_a_program_that_act_has_taken_away_rejects(tmp_path):
    for command, said in ((["./check.sh"], "could not be started"), ("./check.sh", "exit code 127")):
        verdict = await judged(command, tmp_path)
        assert not verdict.accepted
        assert said in verdict.feedback


async def test_a_workspace_that_is_gone_is_no_rejection(tmp_path):
    with pytest.raises(FileNotFoundError):
        await judged(["true"], tmp_path / "gone")


@pytest.mark.req("AG-29")
async def test_an_acceptance_says_that_act_changed_what_the_check_reads(tmp_path):
    context = NotedContext(changed=("kit.py", "test_kit.py", "pyproject.toml"))
    command = f"{sys.executable} -m pytest --version"
    verdict = await judged(command, tmp_path, context)
    assert verdict.accepted
    assert verdict.evidence.startswith("Note: act changed files that the check reads: test_kit.py, pyproject.toml.\n")
    untouched = await judged(command, tmp_path, NotedContext(changed=("kit.py",)))
    assert "Note" not in untouched.evidence


@pytest.fixture
def workspace(tmp_path) -> Path:
    write(
        tmp_path, {"check.sh": "#!/bin/sh\n", "data.txt": "", "tools/run it": "#!/bin/sh\n", "bin/own": "#!/bin/sh\n"}
    )
    for program in ("check.sh", "tools/run it", "bin/own"):
        (tmp_path / program).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "python -m pytest -q",
        "./check.sh --fast",
        "'tools/run it'",
        ["tools/run it"],
        ["python", "nowhere.py"],
        "CI=1 LANG=C python x",
        "! python x",
        "(python x)",
        "python x;nonsense",
        "cd sub && nonsense",
        "if true; then nonsense; fi",
        "$RUNNER x",
        "${RUNNER:-x}",
        "PATH=/elsewhere:$PATH nonsense",
        "python - <<'E'\nprint(\"it's\")\nE",
        "own",
    ],
    ids=str,
)
def test_a_command_that_can_start_is_let_pass(workspace, command):
    verify_command(command, workspace, environ={"PATH": f"{TOOLS['PATH']}:bin"})


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("nonsense --now", "no program 'nonsense' on PATH"),
        (["nonsense"], "no program 'nonsense' on PATH"),
        ("CI=1 nonsense", "no program 'nonsense' on PATH"),
        ("nonsense;true", "no program 'nonsense' on PATH"),
        ("check.sh", r"write \./check.sh"),
        ("./missing.sh", "there is no file"),
        ("./tools", "there is no file"),
        ("./data.txt", "is not executable"),
        ("", "empty"),
        ("  ", "empty"),
        ([], "empty"),
        ([""], "empty"),
        ("A=1", "empty"),
        ("'unclosed", "cannot be read"),
    ],
)
def test_a_command_that_cannot_start_is_a_configuration_error(workspace, command, said):
    with pytest.raises(ConfigurationError, match=said):
        verify_command(command, workspace, environ=TOOLS)


def test_the_process_environment_is_the_default(workspace):
    verify_command("sh", workspace)
    assert "PATH" in os.environ
