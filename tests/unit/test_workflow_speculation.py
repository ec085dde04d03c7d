"""Candidates side by side, each in a folder of its own: which one is taken, what the others leave, and what all of them cost."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.places import Place, X, fee
from support.speculation_victim import RUN, World, speculating
from support.workspaces import contents, git, repository, write
from treadle.app.leftovers import clear_leftovers
from treadle.app.stores import open_store
from treadle.app.workflow_runtime import WorkflowRuntime
from treadle.app.workflows import resume_workflow, speculate
from treadle.core.codec import decode
from treadle.core.errors import DefinitionError, NoneAccepted, ScopeError, TaskError
from treadle.core.usage import Usage
from treadle.effects.candidates import CandidateScopes
from treadle.kernel.steering import Cancel
from treadle.kernel.workflow_steering import to_events
from treadle.ports.callback import accept, reject
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.runtime.contexts import child_id
from treadle.runtime.journal import load_state
from treadle.runtime.workflow_journal import WorkflowJournal
from treadle.settings import load_settings
from treadle.spec.definitions import Loop
from treadle.spec.workflows import Budget, Task, Workflow


@pytest.fixture(params=["repository", "folder"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    files = {"kit.py": "start\n", "README": "A kit.\n"}
    if request.param == "repository":
        repository(folder, files)
    else:
        write(folder, files)
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("TREADLE_STATE", str(tmp_path / "state"))
    return Place("sqlite", tmp_path)


def in_a_task(candidates: Any, validate: Any, found: list[Any], **options: Any) -> Workflow:
    async def work(ctx: Any) -> None:
        found.append(await ctx.speculate(candidates, validate, **options))

    return Workflow("one", [Task("a", work)])


def writing(text: str, *, score: float = 0.0) -> Any:
    async def candidate(ctx: Any) -> dict[str, Any]:
        ctx.report_usage(fee())
        await anyio.Path(ctx.workspace / "kit.py").write_text(text)
        return {"text": text, "score": score}

    return candidate


async def by_score(ctx: Any, output: dict[str, Any]) -> Any:
    return output["score"] if output["score"] >= 0 else reject(f"{output['text']} is bad")


def leftovers(place: Place, workspace: Path) -> list[str]:
    """Folders of candidates that are still there, and worktrees and trees that git still keeps for them."""
    found = [str(folder) for folder in (place.folder / "state" / "candidates").glob("*")]
    if (workspace / ".git").exists():
        found += git(workspace, "worktree", "list").splitlines()[1:]
        for run in (X, RUN):
            name = child_id(run, "a", 1, "perform", "speculate")
            found += git(workspace, "for-each-ref", f"refs/treadle/{name}").splitlines()
    return found


@pytest.mark.req("TC-28")
def test_the_best_is_taken_all_are_paid_for_and_nothing_is_left(place: Place, workspace: Path) -> None:
    found: list[Any] = []
    candidates = [writing("one", score=1), writing("three", score=3), writing("bad", score=-1)]
    result = place.run(in_a_task(candidates, by_score, found, select="best", workspace=workspace))
    assert result.status == "done", result.document
    (taken,) = found
    assert (taken.number, taken.score, taken.output["text"], taken.paths) == (2, 3.0, "three", ("kit.py",))
    assert [(one.number, one.why) for one in taken.lost] == [(1, ""), (3, "bad is bad")]
    assert contents(workspace) == {"kit.py": (b"three", False), "README": (b"A kit.\n", False)}
    assert result.document["usage"]["requests"] == 3
    assert result.document["cost_usd"] == Decimal("0.03")
    assert not leftovers(place, workspace)


@pytest.mark.req("TC-28")
def test_the_first_that_is_accepted_ends_the_others(place: Place, workspace: Path) -> None:
    found: list[Any] = []
    cancelled: list[int] = []

    async def slow(ctx: Any) -> None:
        await anyio.Path(ctx.workspace / "slow").write_text("half")
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append(1)

    async def failing(ctx: Any) -> None:
        raise ValueError("cannot")

    refused = anyio.Event()

    async def good(ctx: Any) -> Any:
        await refused.wait()
        return await writing("good")(ctx)

    async def any_text(ctx: Any, output: Any) -> Any:
        if output["text"] == "good":
            return accept()
        refused.set()
        return reject("no")

    candidates = [slow, failing, writing("poor"), good]
    result = place.run(in_a_task(candidates, any_text, found, workspace=workspace))
    assert result.status == "done", result.document
    (taken,) = found
    assert (taken.number, taken.score) == (4, None)
    assert [one.why for one in taken.lost] == ["ended before it was judged", "ValueError: cannot", "no"]
    assert cancelled == [1]
    assert contents(workspace) == {"kit.py": (b"good", False), "README": (b"A kit.\n", False)}
    assert not leftovers(place, workspace)


@pytest.mark.req("TC-28")
def test_each_begins_from_the_workspace_as_it_was_uncommitted_changes_included(place: Place, workspace: Path) -> None:
    write(workspace, {"new/file": "not committed\n", "kit.py": "changed\n"})
    (workspace / "README").unlink()
    seen: list[Any] = []

    async def look(ctx: Any) -> int:
        assert ctx.workspace != workspace
        seen.append(contents(ctx.workspace))
        await anyio.Path(ctx.workspace / "kit.py").unlink()
        return 1

    async def yes(ctx: Any, output: Any) -> Any:
        return 1

    result = place.run(in_a_task([look, look], yes, [], select="best", workspace=workspace))
    assert result.status == "done", result.document
    assert seen == [{"new/file": (b"not committed\n", False), "kit.py": (b"changed\n", False)}] * 2
    assert contents(workspace) == {"new/file": (b"not committed\n", False)}


@pytest.mark.req("TC-28")
def test_where_none_is_accepted_the_task_fails_with_all_reasons_and_the_workspace_is_untouched(
    place: Place, workspace: Path
) -> None:
    raised: list[Any] = []

    async def work(ctx: Any) -> None:
        try:
            await ctx.speculate([writing("a", score=-1), writing("b", score=-2)], by_score, workspace=workspace)
        except NoneAccepted as error:
            raised.append(error.reasons)
            raise

    result = place.run(Workflow("one", [Task("a", work)]))
    assert (result.status, raised) == ("failed", [("a is bad", "b is bad")])
    assert contents(workspace) == {"kit.py": (b"start\n", False), "README": (b"A kit.\n", False)}
    assert not leftovers(place, workspace)


@pytest.mark.req("TC-28")
def test_what_somebody_changed_meanwhile_is_not_overwritten(place: Place, workspace: Path) -> None:
    async def meddle(ctx: Any) -> int:
        await anyio.Path(ctx.workspace / "kit.py").write_text("mine")
        await anyio.Path(workspace / "kit.py").write_text("yours")
        return 1

    async def yes(ctx: Any, output: Any) -> Any:
        return accept()

    result = place.run(in_a_task([meddle], yes, [], workspace=workspace))
    assert result.status == "failed"
    assert ScopeError.__name__ in result.document["outcome"]["evidence"]
    assert "kit.py" in result.document["outcome"]["evidence"]
    assert (workspace / "kit.py").read_text() == "yours"


@pytest.mark.req("TC-28")
def test_loops_speculate_each_in_its_own_folder(place: Place, workspace: Path) -> None:
    found: list[Any] = []

    def loop(name: str) -> Loop:
        async def act(ctx: Any, feedback: str | None) -> str:
            ctx.report_usage(fee())
            return name

        return Loop(name=name, act=act, evaluate=f"echo {name} >> kit.py")

    async def by_name(ctx: Any, output: str) -> Any:
        return len(await anyio.Path(ctx.workspace / "kit.py").read_text())

    candidates = [loop("short"), loop("much longer")]
    result = place.run(in_a_task(candidates, by_name, found, select="best", workspace=workspace, input="do"))
    assert result.status == "done", result.document
    assert found[0].output == "much longer"
    assert (workspace / "kit.py").read_text() == "start\nmuch longer\n"
    assert result.document["usage"]["requests"] == 2
    assert not leftovers(place, workspace)


@pytest.mark.req("TC-28")
def test_a_loop_that_lost_has_ended_for_good(place: Place, workspace: Path) -> None:
    begun = anyio.Event()

    async def wait(ctx: Any, feedback: str | None) -> str:
        begun.set()
        await anyio.sleep_forever()
        return "never"

    async def at_once(ctx: Any) -> str:
        await begun.wait()
        return "first"

    async def yes(ctx: Any, output: Any) -> Any:
        return accept()

    slow = Loop(name="slow", act=wait, evaluate="true")
    result = place.run(in_a_task([at_once, slow], yes, [], select="first", workspace=workspace, input="do"))
    assert result.status == "done", result.document

    async def status() -> tuple[str, str]:
        ledger = await place.open()
        lost = child_id(child_id(X, "a", 1, "perform", "speculate"), "candidate-2", 1, "perform", "run")
        state = (await load_state(ledger, lost)).state
        await ledger.close()
        return state.status, state.code

    assert anyio.run(status) == ("cancelled", "aborted"), "nobody resumes it, and a worker leaves it alone"


@pytest.mark.req("TC-28")
@pytest.mark.parametrize(
    ("candidates", "validate", "options", "says"),
    [
        ([], by_score, {}, "1 to 8 candidates, not 0"),
        ([by_score] * 9, by_score, {}, "1 to 8 candidates, not 9"),
        (["make test"], by_score, {}, "Candidate 1 is an async function"),
        ("ab", by_score, {}, "candidates is a sequence"),
        ([by_score], None, {}, "validate must be"),
        ([by_score], by_score, {"select": "worst"}, "select is first or best"),
        ([by_score], by_score, {"workspace": "/nowhere/at/all"}, "is no folder"),
    ],
)
def test_what_is_ill_defined_is_refused_before_anything_runs(
    tmp_path: Path, candidates: Any, validate: Any, options: Any, says: str
) -> None:
    with pytest.raises(DefinitionError, match=says):
        anyio.run(lambda: speculate(candidates, validate, store=f"sqlite:///{tmp_path / 't.db'}", **options))
    assert not (tmp_path / "t.db").exists()


@pytest.mark.req("TC-28")
@pytest.mark.parametrize("verdict", [None, True, "yes", float("nan")])
def test_a_verdict_that_is_none_fails_the_task(place: Place, verdict: object) -> None:
    async def one(ctx: Any) -> int:
        return 1

    async def validate(ctx: Any, output: Any) -> Any:
        return verdict

    result = place.run(in_a_task([one], validate, []))
    assert result.status == "failed"
    assert "InvalidVerdict" in result.document["outcome"]["evidence"]


@pytest.mark.req("TC-28")
def test_it_has_a_budget_and_stands_alone(place: Place, tmp_path: Path) -> None:
    async def paying(ctx: Any) -> int:
        if await ctx.intend("r", Usage(cost_usd=Decimal("0.01"))):
            ctx.report_usage_once("r", fee())
        return 1

    async def yes(ctx: Any, output: Any) -> Any:
        return 1

    store = f"sqlite:///{tmp_path / 'alone.db'}"

    def again(budget: Budget) -> Any:
        return anyio.run(
            lambda: speculate([paying] * 3, yes, select="best", store=store, budget=budget, execution_id="alone-1")
        )

    taken = again(Budget(max_cost_usd=Decimal(1)))
    assert (taken.number, len(taken.lost)) == (1, 2)
    assert again(Budget(max_cost_usd=Decimal(1))) == taken
    with pytest.raises(TaskError, match="limit"):
        anyio.run(
            lambda: speculate(
                [paying] * 3, yes, select="best", store=store, budget=Budget(max_cost_usd=Decimal("0.01"))
            )
        )


@pytest.mark.req("TC-28")
def test_the_baseline_is_pinned_once(workspace: Path, tmp_path: Path) -> None:
    async def look() -> None:
        scopes = CandidateScopes(workspace, state_dir=tmp_path / "trees")
        base = await scopes.pin("x1")
        write(workspace, {"kit.py": "later\n"})
        assert await scopes.pin("x1") == base
        assert await scopes.pin("x2") != base

    anyio.run(look)


POINTS = (
    ("phase-intended", 3),
    ("before-perform", 3),
    ("after-perform", 2),
    ("after-write", 3),
    *((point, nth) for point in ("ledger.before-commit", "ledger.after-commit") for nth in (5, 8)),
    *((point, 1) for point in ("before-take", "after-take", "candidates-cleared")),
)


def killed(place: Place, point: str, nth: int, select: str) -> World:
    """The log of a process that was killed there."""
    repository(place.folder / "work", {"kit.py": "start\n"})
    command = [sys.executable, "-m", "support.speculation_victim", str(place.folder), point, str(nth), select]
    died = subprocess.run(
        command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=120, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    return World(place.folder / "log")


async def durable_outcomes(store: str) -> set[str]:
    """Candidates whose outcomes are on record."""
    ledger = await open_store(store, NO_CRASH_POINTS)
    try:
        found: set[str] = set()
        for row in await ledger.rows():
            for record in await ledger.records(row.execution_id):
                if record.kind == "state.saved":
                    found.add(decode(record.kind, record.version, record.body).task)
        return found
    finally:
        await ledger.close()


@pytest.mark.req("TC-28")
@pytest.mark.parametrize(("point", "nth"), POINTS)
def test_a_kill_pays_for_no_candidate_twice_that_was_done(place: Place, point: str, nth: int) -> None:
    folder = place.folder
    world, store = killed(place, point, nth, "best"), f"sqlite:///{folder / 't.db'}"
    recorded = anyio.run(lambda: durable_outcomes(store))
    if point == "before-take":
        assert len(recorded) == 3
        assert (folder / "work" / "kit.py").read_text() == "start\n"

    result = anyio.run(lambda: resume_workflow(speculating(world, folder), RUN, store=store))

    assert (result.status, result.outputs["a"]) == ("done", 3), result.document
    assert (folder / "work" / "kit.py").read_text() == "start\ncandidate-3\n"
    judged = Counter(line.split()[1] for line in world.lines() if line.startswith("judged"))
    assert all(judged[name] == 1 for name in recorded), "a candidate whose outcome was durable was run again"
    usage, billed = result.document["usage"], sum(line.startswith("paid") for line in world.lines())
    assert usage["requests"] <= billed <= usage["requests"] + usage["in_doubt_requests"]
    assert not leftovers(place, folder / "work")


@pytest.mark.req("TC-28")
def test_after_a_kill_nothing_is_paid_beside_one_that_was_accepted(place: Place) -> None:
    folder = place.folder
    world, store = killed(place, "after-perform", 1, "first"), f"sqlite:///{folder / 't.db'}"
    paid = world.lines()
    result = anyio.run(lambda: resume_workflow(speculating(world, folder, "first"), RUN, store=store))
    assert (result.status, result.outputs["a"]) == ("done", 2), result.document
    assert world.lines() == [*paid, "taken"]
    assert (folder / "work" / "kit.py").read_text() == "start\ncandidate-2\n"
    assert not leftovers(place, folder / "work")


@pytest.mark.req("TC-28")
def test_cancelling_removes_the_folders_of_candidates(place: Place, workspace: Path) -> None:
    async def asks(ctx: Any) -> int:
        await ctx.interaction.suspend("Which?")
        return 1

    async def yes(ctx: Any, output: Any) -> Any:
        return 1

    result = place.run(in_a_task([asks, asks], yes, [], workspace=workspace))
    assert result.status == "waiting-input"
    assert len(result.questions) == 2
    assert leftovers(place, workspace)

    async def cancel() -> None:
        ledger = await place.open()
        runtime = WorkflowRuntime(ledger, load_settings())
        await runtime.steer(X, [Cancel(actor="me")])
        await ledger.close()

    anyio.run(cancel)
    assert not leftovers(place, workspace)


def test_what_a_kill_left_after_the_last_word_is_taken_away(place: Place, workspace: Path) -> None:
    """Cancelled, and killed before its folders and refs were gone: recover and resume look for such."""

    async def asks(ctx: Any) -> int:
        await ctx.interaction.suspend("Which?")
        return 1

    async def yes(ctx: Any, output: Any) -> Any:
        return 1

    place.run(in_a_task([asks, asks], yes, [], workspace=workspace))

    async def cancel() -> None:
        ledger = await place.open()
        settings = load_settings()
        assert await clear_leftovers(ledger, settings) == 0
        assert leftovers(place, workspace)
        journal = await WorkflowJournal.open(ledger, X, clock=place.clock, owner="killed")
        for event in to_events(journal.state, [Cancel(actor="me")], 1):
            journal.emit(event)
        await journal.close()
        assert await clear_leftovers(ledger, settings) == 1
        await ledger.close()

    anyio.run(cancel)
    assert not leftovers(place, workspace)
