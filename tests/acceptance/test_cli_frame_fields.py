"""Every field of the frame changes in one real run, and `treadle frame` shows each change."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from support.commandline import InProcess
from support.whole_frame import CONSTANT, GATE, LEASES, LESSON, TASK, endpoint_script, lesson, prepare
from treadle.kernel.frame import FIELDS
from treadle.ledger.lessons import SqliteLessons
from treadle.testing import ScriptedEndpoint


@pytest.mark.req(
    "FR-01", "FR-08", "FR-12", "FR-13", "FR-14", "FR-15", "FR-16", "FR-17", "FR-18", "FR-20", "FR-21", "FR-27"
)
def test_every_field_is_seen_changing(tmp_path: Path) -> None:
    cli = InProcess(tmp_path)
    prepare(cli.workspace)

    async def teach() -> None:
        store = SqliteLessons(Path(f"{cli.store_file}.lessons"))
        await store.add([lesson("run.act", cli.workspace)])
        await store.close()

    cli.state.mkdir(parents=True)
    anyio.run(teach)
    with ScriptedEndpoint(endpoint_script) as endpoint:
        ran = cli(
            "run", TASK, "--judge", "openai:judge", "--model", "openai:first", "--escalate-to", "openai:second",
            "--escalate-after", "1", "--base-url", endpoint.url, "--isolate", "--gate", f"answer={GATE}",
            *(word for lease in LEASES for word in ("--allow", lease)), "--may-ask", "fs.write:docs/**", "--price", "1,2",
            "--json",
        )  # fmt: skip
        assert (ran.code, ran.document["code"]) == (3, "approval"), ran.err
        parked = cli("frame", "show", "last", "--json").document["frame"]
        assert cli("approve", "last").code == 0
        ran = cli("resume", "last", "--json")
    assert (ran.code, ran.document["rounds"]) == (0, 3), ran.err
    told = cli("frame", "history", "last", "--json").document
    by_field = {field: [one for one in told if one["field"] == field] for field in FIELDS}
    assert {field for field in FIELDS if len(by_field[field]) < 2} == set(CONSTANT)
    assert [one["after"] for one in by_field["conflictCheckArmed"]] == [False, True]
    assert [one["after"] for one in by_field["iteration"]] == [0, 1, 2]
    assert [one["after"] for one in by_field["lastActModelId"]] == ["openai:first", "openai:second"]
    assert [len(one["after"]) for one in by_field["bufferedGateRecoveries"]] == [0, 1, 0]
    assert [one["after"] for one in by_field["accumulatedLessonOutcomes"]] == [
        {}, {LESSON: "unobserved"}, {LESSON: "helpful"},
    ]  # fmt: skip
    assert [lease["capability"] for lease in by_field["grantedLoopLeases"][-1]["after"]] == [
        *LEASES,
        "fs.write:docs/note.md",
    ]
    at = by_field["grantedLoopLeases"][-1]["seq"] - 1
    before = cli("frame", "show", "last", "--at", str(at), "--json").document["frame"]
    assert before["grantedLoopLeases"] == parked["grantedLoopLeases"]
    assert "src/AGENTS.md" in by_field["injectedScopedRuleIds"][-1]["after"]
