"""`treadle patterns` and `treadle lint` as a person and a program use them."""

from __future__ import annotations

from pathlib import Path

from support.commandline import CommandLine

WRONG = "treadle: 1\ntask: t\nact:\n  agent_command: ./agent\n  on_invalid: stop_batch\nverify: {check: make}\n"


def test_a_person_reads_all_patterns_and_one_of_them(tmp_path: Path) -> None:
    cli = CommandLine(tmp_path)
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
    cli = CommandLine(tmp_path)
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
