"""What a model is shown of the workspace before it plans, told by show and log, and stored with the prompt."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from support.commandline import InProcess
from treadle.testing import ScriptedEndpoint, Turn

TURNS = [Turn(text="I know where."), Turn(calls=[("finish", {"summary": "done"})])]
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


def workspace(home: Path, files: int = 30) -> InProcess:
    cli = InProcess(home).git()
    for number in range(files):
        cli.write(f"module_{number}.py", f"class Part{number}:\n    def step_{number}(self):\n        return 1\n" * 9)
    return cli


def run(cli: InProcess, endpoint: ScriptedEndpoint, *more: str, environ: dict[str, str] | None = None) -> Any:
    flags = ("--check", "true", "--model", "openai:scripted", "--base-url", endpoint.url, "--price", "1,2", *more)
    return cli("run", "Make step_17 faster", *flags, environ=environ)


def first_prompts(endpoint: ScriptedEndpoint) -> list[str]:
    """The first message that is not the system's, of each request."""
    found = [next(one["content"] for one in body["messages"] if one["role"] == "user") for body in endpoint.requests]
    return [one if isinstance(one, str) else "".join(part["text"] for part in one) for one in found]


def map_of(cli: InProcess) -> Any:
    return cli("show", "last", "--round", "1", "--json").document["map"]


@pytest.mark.req("AG-05")
def test_the_first_prompt_holds_a_map_and_the_log_says_so(tmp_path: Path) -> None:
    cli = workspace(tmp_path)
    with ScriptedEndpoint(TURNS) as endpoint:
        assert run(cli, endpoint).code == 0
        prompts = first_prompts(endpoint)
    assert len(prompts) == 2
    assert prompts[0] == prompts[1]  # the same bytes, so that the provider's cache holds
    assert prompts[0].startswith("Make step_17 faster\n")
    lines = prompts[0].splitlines()
    assert "module_17.py" in lines
    assert any(line.endswith("def step_17(self):") for line in lines)
    given = map_of(cli)
    assert (given["budget"], given["modality"], given["files"]) == (4000, "implement", 30)
    assert 0 < given["tokens"] <= 4000
    words = f"{given['tokens']:,} of 4,000 tokens, implement: 30 files"
    assert words in cli("log", "last").out
    assert words in cli("show", "last").out


@pytest.mark.req("AG-05")
def test_the_budget_is_kept_and_what_was_left_out_can_be_loaded(tmp_path: Path) -> None:
    cli = workspace(tmp_path)
    with ScriptedEndpoint(TURNS) as endpoint:
        assert run(cli, endpoint, "--map-budget", "150").code == 0
        prompt = first_prompts(endpoint)[0]
    assert len(prompt) - len("Make step_17 faster") <= 150 * 4
    assert "module_17.py" in prompt
    assert prompt.splitlines()[-1].endswith("To load: list_dir, search, read_file.")
    assert map_of(cli)["files_left"] > 0


@pytest.mark.req("AG-05")
def test_a_resume_goes_on_with_the_map_on_record(tmp_path: Path) -> None:
    cli = workspace(tmp_path)
    with ScriptedEndpoint(TURNS) as endpoint:
        killed = run(cli, endpoint, environ={"TREADLE_CRASH_AT": "after-model:1"})
        assert killed.code == -signal.SIGKILL
        cli.write("module_17.py", "def another(): ...\n")
        assert cli("resume", "last", "-q").code == 0
        prompts = first_prompts(endpoint)
    assert len(prompts) == 3
    assert len(set(prompts)) == 1
    lines = [json.loads(line) for line in cli("log", "last", "--json").out.splitlines()]
    assert sum(line["kind"] == "prompted" and line["body"].get("map") is not None for line in lines) == 1


@pytest.mark.req("AG-05")
@pytest.mark.parametrize(
    ("files", "flags", "why"),
    [(3, (), "only 3 files"), (30, ("--map-budget", "0"), None), (30, ("--map-budget", "1"), "no room")],
)
def test_where_a_map_is_not_worth_it_the_prompt_is_the_task(
    tmp_path: Path, files: int, flags: tuple[str, ...], why: str | None
) -> None:
    cli = workspace(tmp_path, files)
    with ScriptedEndpoint(TURNS) as endpoint:
        assert run(cli, endpoint, *flags).code == 0
        assert first_prompts(endpoint)[0] == "Make step_17 faster"
    given = map_of(cli)
    assert given is None if why is None else why in given["none"]


def test_a_folder_without_git_is_mapped_when_it_is_asked_for(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    cli.write("alone.py", "def step_17():\n    return 1\n")
    with ScriptedEndpoint(TURNS) as endpoint:
        assert run(cli, endpoint).code == 0
        assert "no git" in map_of(cli)["none"]
        assert run(cli, endpoint, "--map-budget", "400").code == 0
        assert "alone.py" in first_prompts(endpoint)[-1]


@pytest.mark.req("SE-01")
def test_a_secret_in_a_file_is_not_in_the_map(tmp_path: Path) -> None:
    cli = workspace(tmp_path)
    cli.write("module_17.py", f"def step_17(key='{SECRET}'):\n    return key\n")
    with ScriptedEndpoint(TURNS) as endpoint:
        assert run(cli, endpoint).code == 0
        prompt = first_prompts(endpoint)[0]
    assert "step_17(key=" in prompt
    assert SECRET not in prompt
    assert SECRET not in cli("log", "last", "--json").out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--map-budget", "-1", "--model", "openai:x"), "at least 0"),
        (("--map-budget", "9", "--agent-command", "true"), "for a model"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(tmp_path: Path, flags: tuple[str, ...], said: str) -> None:
    ran = InProcess(tmp_path)("run", "Do it", "--check", "true", *flags)
    assert (ran.code, said in ran.err) == (2, True), ran.err
