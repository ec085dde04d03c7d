"""`treadle patterns` and `treadle lint` as a person and a program use them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commandline import InProcess
from treadle.testing import ScriptedEndpoint, Turn

WRONG = "treadle: 1\ntask: t\nact:\n  agent_command: ./agent\n  on_invalid: stop_batch\nverify: {check: make}\n"


def test_a_person_reads_all_patterns_and_one_of_them(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    listed = cli("patterns")
    assert listed.code == 0
    assert sum(line.startswith("agent-") for line in listed.out.splitlines()) == 20
    page = cli("patterns", "agent-07")
    assert page.code == 0
    for words in (
        "agent-07",
        "takes in",
        "gives on",
        "pitfall",
        "control.plan",
        "test_in_plan_mode_only_what_reads_is_run",
    ):
        assert words in page.out
    document = cli("patterns", "7", "--json").document
    assert (document["id"], document["requirement"]) == ("agent-07", "AG-07")
    assert {"name": "Plan", "type": "treadle.kernel.states:PlanState"}.items() <= document["inputs"][0].items()
    assert len(cli("patterns", "--json").document["patterns"]) == 20
    wrong = cli("patterns", "agent-21")
    assert (wrong.code, wrong.out) == (2, "")
    assert "1 to 20" in wrong.err


def test_a_loop_file_is_refused_with_2_and_the_line_or_passes_with_warnings(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    wrong = cli("lint", str(cli.write("wrong.yaml", WRONG)))
    assert wrong.code == 2
    assert "wrong.yaml:5:3: error: act.on_invalid needs ToolCall, and nothing here produces it" in wrong.out
    assert "(agent-15)" in wrong.out
    document = cli("lint", "wrong.yaml", "--json").document
    assert (document["ok"], document["findings"][1]["line"]) == (False, 5)
    assert cli("run", "--loop", "wrong.yaml", "-q").code != 0

    risky = cli("lint", str(cli.write("risky.yaml", "treadle: 1\ntask: t\n")))
    assert risky.code == 0
    assert "warning: perceive is not there" in risky.out
    assert "0 errors, 2 warnings." in risky.out
    missing = cli("lint", "nowhere.yaml")
    assert (missing.code, missing.out) == (2, "")
    assert "nowhere.yaml cannot be read" in missing.err


@pytest.mark.req("AG-07")
def test_the_padlock_of_a_loop_file_holds_act_back_until_its_plan_is_approved(tmp_path: Path) -> None:
    cli = InProcess(tmp_path).git()
    script = [
        Turn(text="I write.", calls=[("write_file", {"path": "a.txt", "text": "a"})]),
        Turn(calls=[("write_plan", {"steps": [{"title": "write it", "check": "test -f a.txt"}]})]),
        Turn(calls=[("write_file", {"path": "a.txt", "text": "a"})]),
        Turn(calls=[("run_command", {"command": "test -f a.txt"})]),
        Turn(calls=[("finish", {"summary": "written"})]),
    ]
    with ScriptedEndpoint(script) as endpoint:
        file = cli.write(
            "loop.yaml",
            f"treadle: 1\ntask: Write\ncontrol: {{plan: true, max_turns: 20}}\nperceive:\nverify: {{check: test -f a.txt}}\n"
            f"foundation: {{model: openai:scripted, base_url: {endpoint.url}, window: 32000, compact: auto, compact_at: 0.7}}\n",
        )
        assert cli("lint", str(file)).out == f"{file}: nothing to say against it.\n"
        ran = cli("run", "--loop", str(file), "--json")
        assert (ran.code, ran.document["pending"]["kind"]) == (3, "plan"), ran.err
        assert not (cli.workspace / "a.txt").exists()
        assert cli("context", "last", "--json").document["window"] == 32_000
        assert cli("plan", "approve", "last").code == 0
        ran = cli("resume", "last", "--json")
    assert ran.document["code"] == "accepted", ran.err
