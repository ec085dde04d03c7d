"""The workflow machine without I/O: what is recorded decides what comes next, and records that contradict one another are refused."""

from __future__ import annotations

import random
from typing import Any

import anyio
import msgspec
import pytest

from support.places import Place, X, fee
from treadle.app.workflows import resume_workflow, run_workflow
from treadle.core import workflow_events as ev
from treadle.core.codec import decode, encode
from treadle.core.errors import InvalidStateTransition, LedgerDamaged, OutsideRound
from treadle.core.workflow_events import WORKFLOW_KINDS
from treadle.kernel import workflow as wf
from treadle.kernel.workflow_fold import FOLD
from treadle.kernel.workflow_states import SNAPSHOT_VERSION, WorkflowState, freeze, thaw
from treadle.ledger.inmemory import InMemoryLedger
from treadle.ports.callback import accept, reject
from treadle.ports.ledger import Batch, Record
from treadle.spec.workflows import LoopTask, Workflow


def started(*tasks: ev.TaskSettings, **options: Any) -> ev.WorkflowStarted:
    settings = ev.WorkflowSettings(name="w", version="1", tasks=tasks, **options)
    return ev.WorkflowStarted(settings=settings, input_json="null", fingerprint={}, at_us=1)


LOOP = ev.TaskSettings(key="loop", kind="loop", max_rounds=3)


def fold(*events: Any, state: WorkflowState | None = None) -> WorkflowState:
    state = state or WorkflowState()
    for event in events:
        state = wf.advance(state, event)
    return state


def rounds(*verdicts: bool) -> list[Any]:
    """The events of a loop up to its last verdict."""
    events: list[Any] = [started(LOOP)]
    for number, accepted in enumerate(verdicts, 1):
        events += [
            ev.PhaseStarted(task="loop", round=number, phase="attempt", attempt=number),
            ev.CandidateSaved(task="loop", json=f"{number}"),
            ev.PhaseStarted(task="loop", round=number, phase="check", attempt=number),
            ev.RoundJudged(task="loop", round=number, accept=accepted, feedback="no", json=f"{number}0"),
        ]
    return events


@pytest.mark.req("TC-16")
def test_an_accepted_loop_that_was_not_finished_is_finished_with_its_output_and_nothing_else(tmp_path: Any) -> None:
    async def never(ctx: Any, *rest: Any) -> Any:
        raise AssertionError("called")

    async def main() -> None:
        flow = Workflow("w", [LoopTask("loop", never, never, max_rounds=3)])
        ledger = InMemoryLedger()
        await run_workflow(flow, store=ledger, execution_id="probe-1")
        first = (await ledger.records("probe-1"))[0]
        events = [decode(first.kind, first.version, first.body), *rounds(False, True)[1:]]
        await stored(ledger, events)
        result = await resume_workflow(flow, X, store=ledger)
        assert (result.status, result.outputs, result.document["attempts"]) == (
            "done",
            {"loop": 20},
            2,
        )  # as the check has left it

    anyio.run(main)


async def stored(ledger: InMemoryLedger, events: list[Any]) -> None:
    own = await ledger.create(X, kind="workflow", owner="dead", at_us=1)
    records = [Record(n, *encode(event)[:2], None, 1, encode(event)[2]) for n, event in enumerate(events, 1)]
    ledger.submit(Batch(own, records), lambda error: None)
    await anyio.lowlevel.checkpoint()
    await ledger.release(own)


@pytest.mark.req("TC-18")
@pytest.mark.parametrize(
    "break_them",
    [
        lambda events: [events[0], *events[5:]],  # a round is missing
        lambda events: [*events[:4], msgspec.structs.replace(events[4], round=2), *events[5:]],
        lambda events: [*events[:2], *events[3:]],  # a check without its start
        lambda events: [*events[:-1], msgspec.structs.replace(events[-1], task="nobody")],
        lambda events: [*events[:5], msgspec.structs.replace(events[5], attempt=7), *events[6:]],
        lambda events: [events[0], msgspec.structs.replace(events[1], round=2), *events[2:]],
    ],
)
def test_records_that_contradict_one_another_are_refused_before_any_callback(break_them: Any) -> None:
    async def never(ctx: Any, *rest: Any) -> Any:
        raise AssertionError("called")

    async def main() -> None:
        flow = Workflow("w", [LoopTask("loop", never, never, max_rounds=3)])
        ledger = InMemoryLedger()
        await stored(ledger, break_them(rounds(False, False)))
        with pytest.raises(LedgerDamaged, match="contradict"):
            await resume_workflow(flow, X, store=ledger)

    anyio.run(main)


@pytest.mark.req("TC-18")
def test_round_records_are_contiguous_from_1(tmp_path: Any) -> None:
    async def attempt(ctx: Any, feedback: str | None) -> int:
        return ctx.round

    async def check(ctx: Any, candidate: int) -> Any:
        return accept() if candidate == 4 else reject("no")

    place = Place("memory", tmp_path)
    assert place.run(Workflow("w", [LoopTask("a", attempt, check, max_rounds=9)])).document["rounds"] == 4
    records = place.shared.executions[X].records
    judged = [decode(r.kind, r.version, r.body) for r in records if r.kind == "round.judged"]
    assert [event.round for event in judged] == [1, 2, 3, 4]


@pytest.mark.req("TC-10")
@pytest.mark.parametrize("begun", [1, 3], ids=["before its phases", "between them"])
def test_reports_of_a_task_that_does_not_run_are_refused(begun: int) -> None:
    state = fold(*rounds(True)[:begun])
    for event in (
        ev.UsageCharged(task="loop", usage=fee()),
        ev.ChargeAnnounced(task="loop", receipt="r", reserve=fee()),
    ):
        with pytest.raises(OutsideRound):
            wf.advance(state, event)


def test_an_event_that_does_not_fit_changes_nothing() -> None:
    state = fold(*rounds(False))
    for event in rounds(False, True)[1:4]:
        with pytest.raises(InvalidStateTransition):
            wf.advance(state, event)


def test_every_kind_is_folded_and_comes_back_from_its_stored_form() -> None:
    assert set(FOLD) == set(WORKFLOW_KINDS.values())
    for event in rounds(False, True):
        assert decode(*encode(event)) == event


def play(seed: int) -> list[Any]:
    """A random graph with random outcomes, until it rests or 300 events have happened."""
    chance = random.Random(seed)
    tasks = [
        ev.TaskSettings(
            key=f"t{n}",
            kind=chance.choice(["task", "loop", "approval"]),
            after=tuple(f"t{m}" for m in range(n) if chance.random() < 0.25),
            max_rounds=2,
            retry=ev.RetrySettings(attempts=2),
        )
        for n in range(chance.randrange(1, 9))
    ]
    chosen: Any = chance.choice(["stop", "continue"])
    events: list[Any] = [started(*tasks, concurrency=chance.randrange(1, 4), on_error=chosen)]
    state = fold(*events)
    while len(events) < 300:
        actions = wf.next_actions(state)
        event = outcome(state, chance.choice(actions), chance, chosen)
        if event is None:
            return events
        state = wf.advance(state, event)
        events.append(event)
        consistent(state)
    return events


def outcome(state: WorkflowState, action: Any, chance: random.Random, on_error: str) -> Any:
    match action:
        case wf.Decide():
            return action.event
        case wf.Perform() if chance.random() < 0.08:
            return ev.WorkflowInterrupted(epoch=2, reason="taken-over")
        case wf.Perform() if wf.stopping(state):
            return ev.PhaseStopped(task=action.task)
        case wf.Perform() if chance.random() < 0.15:
            return ev.PhaseFailed(task=action.task, code="failed", message="no", at_us=1)
        case wf.Perform(phase="perform"):
            return ev.TaskFinished(task=action.task, json="1")
        case wf.Perform(phase="attempt"):
            return ev.CandidateSaved(task=action.task, json="1")
        case wf.Perform():
            accepted = chance.random() < 0.5
            return ev.RoundJudged(task=action.task, round=action.round, accept=accepted, feedback="f", json="1")
        case wf.Rest(wants="time"):
            return ev.TaskDue(task=next(iter(state.timers)), at_us=9)
        case wf.Rest(wants="answer"):
            question = state.active[state.asking[0]].questions[0]
            decision: Any = chance.choice(["approve", "approve", "reject"])
            return ev.TaskAnswered(
                task=state.asking[0], id=question.id, decision=decision, text="t", actor="a", at_us=1
            )
        case _:
            return None


def consistent(state: WorkflowState) -> None:
    """Every task is in one place, and nothing runs before what it depends on."""
    places = [state.waiting, state.active, state.done, state.failed, state.skipped]
    for task in state.settings.tasks:
        fresh = task.key in (*state.ahead, *state.ready) and task.key not in state.active
        assert sum(task.key in place for place in places) + fresh == 1, task.key
        if task.key in state.active or task.key in state.done:
            assert all(dependency in state.done for dependency in task.after)
    assert len(state.running) <= state.settings.concurrency
    queues = (state.ahead, state.ready, state.running, state.attention)
    assert len({key for queue in queues for key in queue}) == sum(map(len, queues))


@pytest.mark.req("TC-19", "TC-25")
@pytest.mark.parametrize("seed", range(60))
def test_any_course_of_events_ends_folds_the_same_and_survives_a_snapshot(seed: int) -> None:
    events = play(seed)
    state = fold(*events)
    assert state.status in ("done", "failed", "rejected")
    half = fold(*events[: len(events) // 2])
    again = fold(*events[len(events) // 2 :], state=thaw(freeze(half), SNAPSHOT_VERSION))
    assert again == state
    if state.status == "done":
        assert len(state.done) == len(state.settings.tasks)


TASK = {key: ev.TaskSettings(key=key, kind="task") for key in "ab"}


def paused(first: int | None, second: int | None) -> WorkflowState:
    """Two tasks run, and both find a quota used up."""
    begun = [ev.PhaseStarted(task=key, round=1, phase="perform", attempt=1) for key in "ab"]
    pauses = [
        ev.QuotaPaused(task=key, message=key, requested_at_us=1, reset_at_us=reset)
        for key, reset in (("a", first), ("b", second))
    ]
    return fold(started(*TASK.values()), *begun, *pauses)


@pytest.mark.req("TC-24")
@pytest.mark.parametrize(("first", "second", "until"), [(5, 9, 9), (9, 5, 9), (None, 5, None), (5, None, None)])
def test_of_two_quota_pauses_the_longer_is_waited_for(first: int | None, second: int | None, until: int | None) -> None:
    (rest,) = wf.next_actions(paused(first, second))
    assert rest == wf.Rest(wants="quota", until_us=until)


@pytest.mark.req("TC-20")
def test_of_two_timers_the_earlier_is_waited_for_and_a_round_is_never_retried() -> None:
    gates = [ev.TaskSettings(key=key, kind="pause", for_us=1) for key in "ab"]
    waits = [ev.TaskSuspended(task=key, questions=(), until_us=until) for key, until in (("a", 9), ("b", 5))]
    assert wf.next_actions(fold(started(*gates), *waits)) == (wf.Rest(wants="time", until_us=5),)
    retry = ev.RetrySettings(attempts=3, delay_us=1, backoff="fixed", max_delay_us=None, jitter=0.0)
    state = fold(
        started(msgspec.structs.replace(LOOP, retry=retry)),
        ev.PhaseStarted(task="loop", round=1, phase="attempt", attempt=1),
        ev.PhaseFailed(task="loop", code="failed", message="m", at_us=1, retryable=True, jitter=0.0),
    )
    (decided,) = wf.next_actions(state)
    assert isinstance(decided, wf.Decide)
    assert isinstance(decided.event, ev.TaskFailed)


@pytest.mark.req("TC-19")
def test_a_round_goes_on_before_another_task_begins() -> None:
    settings = (LOOP, *TASK.values())
    state = fold(
        started(*settings, concurrency=1),
        ev.PhaseStarted(task="loop", round=1, phase="attempt", attempt=1),
        ev.CandidateSaved(task="loop", json="1"),
    )
    (decided,) = wf.next_actions(state)
    assert isinstance(decided, wf.Decide)
    assert decided.event == ev.PhaseStarted(task="loop", round=1, phase="check", attempt=1)


def only(state: WorkflowState) -> Any:
    """The one decision that is due."""
    (decided,) = wf.next_actions(state)
    assert isinstance(decided, wf.Decide)
    return decided.event


def test_a_check_that_was_stopped_is_another_attempt_of_its_round() -> None:
    state = fold(*rounds(True)[:4], ev.PhaseStopped(task="loop"))
    assert only(state) == ev.PhaseStarted(task="loop", round=1, phase="check", attempt=2)


def test_a_rejected_round_leaves_no_candidate_to_the_next() -> None:
    assert fold(*rounds(False)).active["loop"].candidate_at is None


def failing(key: str) -> list[Any]:
    return [
        ev.PhaseStarted(task=key, round=1, phase="perform", attempt=1),
        ev.PhaseFailed(task=key, code="failed", message="m", at_us=1, retryable=True),
    ]


def test_what_depends_on_two_failed_tasks_is_skipped_for_the_first() -> None:
    both = ev.TaskSettings(key="c", kind="task", after=("a", "b"))
    state = fold(started(*TASK.values(), both, on_error="continue"), *failing("a"), *failing("b"))
    for key in "ab":
        assert only(state).task == key
        state = wf.advance(state, only(state))
    assert only(state) == ev.TaskSkipped(task="c", because="a")


def test_a_failed_task_has_its_tries_again_when_it_is_reopened_and_what_a_condition_skipped_stays_so() -> None:
    retried = ev.TaskSettings(key="a", kind="task", retry=ev.RetrySettings(attempts=1))
    perhaps = ev.TaskSettings(key="b", kind="task", conditional=True)
    after = ev.TaskSettings(key="c", kind="task", after=("b",))
    state = fold(
        started(retried, perhaps, after, on_error="continue"),
        *failing("a"),
        ev.TaskFailed(task="a", code="failed", message="m"),
        ev.ConditionAsked(task="b"),
        ev.ConditionDecided(task="b", go=False),
        ev.TaskSkipped(task="b", because=""),
        ev.TaskSkipped(task="c", because="b"),
        ev.WorkflowStopped(status="failed", code="failed", kind="failed", evidence="e"),
        ev.WorkflowReopened(actor="ada"),
    )
    assert state.active["a"].tries == 0
    assert only(state) == ev.TaskSkipped(task="c", because="b")
