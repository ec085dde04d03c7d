"""run_command: what the model is told, what the command inherits, how far it reaches, and that cancelling ends it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio
import pytest

from support.tools import call, context, refusal, use
from treadle.core.errors import ConfigurationError
from treadle.tools.builtin import WorkspaceTools

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def run(tools: WorkspaceTools, command: str, **args) -> str:
    return use(tools, "run_command", command=command, **args).content


def description(tools: WorkspaceTools) -> str:
    return next(tool.description for tool in tools.tools() if tool.name == "run_command")


@pytest.mark.req("AG-23")
def test_output_and_exit_code_come_back_and_failing_is_a_result_like_any_other(tmp_path):
    tools = WorkspaceTools(tmp_path, environ=ENV)
    first = run(tools, "pwd; echo wrong >&2; exit 3").splitlines()
    assert first[1:3] == [str(tmp_path), "wrong"]
    assert first[3].startswith("[exit code 3, ")
    assert run(tools, "kill -9 $$").startswith("[ended by signal 9 (SIGKILL), ")
    assert run(tools, "printf 'no end'").splitlines()[0] == "no end"


@pytest.mark.req("AG-23")
def test_without_a_sandbox_the_description_and_the_first_output_say_so(tmp_path):
    tools = WorkspaceTools(tmp_path, environ=ENV)
    assert "not sandboxed" in description(tools)
    assert run(tools, "true").startswith("[not sandboxed: ")
    assert "sandbox" not in run(tools, "true")


@pytest.mark.req("AG-23")
def test_a_command_over_its_time_is_stopped_and_its_output_so_far_is_told(tmp_path):
    tools = WorkspaceTools(tmp_path, environ=ENV)
    error = refusal(tools, "run_command", command="echo begun; sleep 100", timeout_s=0.3)
    assert error.kind == "timeout"
    assert "begun" in str(error)
    assert "0.3 s" in str(error)
    assert error.hint
    assert not error.transient  # it must not be repeated by itself


def test_the_usual_time_is_the_toolsets(tmp_path):
    assert (
        refusal(WorkspaceTools(tmp_path, environ=ENV, command_timeout_s=0.3), "run_command", command="sleep 9").kind
        == "timeout"
    )


@pytest.mark.req("AG-23")
def test_a_large_output_loses_its_middle(tmp_path):
    shown = run(
        WorkspaceTools(tmp_path, environ=ENV, output_limit_bytes=200), "echo first; yes | head -100000; echo last"
    )
    assert len(shown) < 500
    assert "first" in shown
    assert "last" in shown
    assert "bytes left out" in shown


@pytest.mark.req("SE-01")
def test_hidden_variables_are_not_inherited_others_are(tmp_path):
    tools = WorkspaceTools(
        tmp_path, environ={**ENV, "SOME_API_KEY": "k", "OTHER": "o"}, hidden_env=("SOME_API_KEY", "NOT_THERE")
    )
    assert run(tools, "echo [$SOME_API_KEY] [$OTHER]").splitlines()[1] == "[] [o]"
    assert "k" not in [line.partition("=")[2] for line in run(tools, "env").splitlines()]


def test_it_has_no_terminal_no_input_and_no_pager(tmp_path):
    tools = WorkspaceTools(tmp_path, environ=ENV)
    assert run(
        tools, "cat; test -t 0 || echo no terminal; (: < /dev/tty) 2>/dev/null || echo none at all; echo $PAGER"
    ).splitlines()[1:4] == [
        "no terminal",
        "none at all",
        "cat",
    ]


@pytest.mark.req("AG-23")
def test_its_process_group_is_recorded_and_cancelling_ends_it(tmp_path):
    recorded: list[int] = []

    async def main() -> bool:
        tools = WorkspaceTools(tmp_path, environ=ENV)

        async def start() -> None:
            made = call(tools, "run_command", command="echo $$ > pid; while :; do sleep 0.01; done")
            await tools.run(made, context(started=lambda pgid, _birth: recorded.append(pgid)))

        async with anyio.create_task_group() as group:
            group.start_soon(start)
            with anyio.fail_after(60):
                while not (await anyio.Path(tmp_path / "pid").exists()):  # noqa: ASYNC110 - another process tells
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        return await anyio.Path(f"/proc/{recorded[0]}").exists()

    assert anyio.run(main) is False
    assert int((tmp_path / "pid").read_text()) == recorded[0]


@pytest.mark.parametrize("command", ["echo \0", "\ud800"])
def test_what_cannot_be_told_to_a_shell_is_refused(tmp_path, command):
    assert refusal(WorkspaceTools(tmp_path, environ=ENV), "run_command", command=command).kind == "argument"


def test_a_command_too_long_for_the_system_is_refused_with_a_way_out(tmp_path):
    error = refusal(WorkspaceTools(tmp_path, environ=ENV), "run_command", command="echo " + "x" * 3_000_000)
    assert error.kind == "execution"
    assert "file" in error.hint


# ---- sandbox


@pytest.mark.req("AG-23")
def test_a_sandbox_that_was_asked_for_and_cannot_be_had_is_a_configuration_error(tmp_path):
    """Never silently without."""
    with pytest.raises(ConfigurationError, match="bubblewrap"):
        WorkspaceTools(tmp_path, environ={"PATH": str(tmp_path)}, sandbox=True)
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho no user namespaces >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    with pytest.raises(ConfigurationError, match="no user namespaces"):
        WorkspaceTools(tmp_path, environ={"PATH": f"{tmp_path}:{ENV['PATH']}"}, sandbox=True)


@pytest.fixture
def sandboxed(tmp_path: Path) -> WorkspaceTools:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    root, home = tmp_path / "ws", tmp_path / "home"
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("[core]\n")
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("private")
    (home / ".netrc").write_text("private")
    (home / "readable").write_text("readable")
    try:
        return WorkspaceTools(root, environ={**ENV, "HOME": str(home)}, sandbox=True)
    except ConfigurationError as error:
        pytest.skip(str(error))


@pytest.mark.req("AG-23")
def test_in_the_sandbox_only_the_workspace_can_be_written(sandboxed, tmp_path):
    assert "sandboxed: only the workspace" in description(sandboxed)
    shown = run(
        sandboxed, f"echo x > made; echo x > /tmp/t && cat /tmp/t; echo y > {tmp_path}/escaped; echo y > /etc/escaped"
    )
    assert shown.startswith("[sandboxed: ")
    assert (tmp_path / "ws" / "made").read_text() == "x\n"
    assert not (tmp_path / "escaped").exists()
    assert not Path("/etc/escaped").exists()
    assert not Path("/tmp/t").exists()


@pytest.mark.req("AG-23")
def test_in_the_sandbox_there_is_no_network_no_other_process_and_no_secret(sandboxed, tmp_path):
    shown = run(
        sandboxed, "cat ~/readable; cat ~/.ssh/id ~/.netrc; cat /proc/net/dev | grep -c ':'; ls -d /proc/[0-9]* | wc -l"
    )
    lines = shown.splitlines()
    assert "private" not in shown
    assert lines[1] == "readable" or "readable" in lines[1]
    assert lines[-3].strip() == "1"  # the loopback alone
    assert int(lines[-2]) < 10


def test_in_the_sandbox_what_git_runs_cannot_be_planted(sandboxed, tmp_path):
    run(sandboxed, "echo evil > .git/hooks/pre-commit; echo evil > .git/config; echo fine > .git/other")
    assert list((tmp_path / "ws" / ".git" / "hooks").iterdir()) == []
    assert (tmp_path / "ws" / ".git" / "config").read_text() == "[core]\n"
    assert (tmp_path / "ws" / ".git" / "other").read_text() == "fine\n"


def test_a_sandboxed_command_over_its_time_is_stopped_with_all_it_started(sandboxed, tmp_path):
    command = "setsid sh -c 'while :; do echo x >> log; sleep 0.01; done' & sleep 100"
    assert refusal(sandboxed, "run_command", command=command, timeout_s=1).kind == "timeout"
    log = tmp_path / "ws" / "log"
    size = log.stat().st_size if log.exists() else 0
    run(sandboxed, "true")
    assert (log.stat().st_size if log.exists() else 0) == size
