"""One event of each kind of a workflow, with every field set: what the golden file of a version holds."""

from __future__ import annotations

from decimal import Decimal

from support.samples import USAGE
from treadle.core import workflow_events as ev
from treadle.core.values import Value

SETTINGS = ev.WorkflowSettings(
    name="n",
    version="v",
    tasks=(
        ev.TaskSettings(
            key="a",
            kind="loop",
            max_rounds=2,
            timeout_us=1,
            conditional=True,
            interactive=True,
            actors=("ada",),
            retry=ev.RetrySettings(attempts=3, delay_us=1, backoff="fixed", max_delay_us=2, jitter=0.5),
        ),
        ev.TaskSettings(key="b", kind="pause", after=("a",), prompt="p", for_us=9),
    ),
    concurrency=2,
    on_error="continue",
    budget=ev.BudgetSettings(
        max_attempts=1,
        max_requests=2,
        max_input_tokens=3,
        max_output_tokens=4,
        max_cache_read_tokens=5,
        max_cache_write_tokens=6,
        max_tokens=7,
        max_cost_usd=Decimal("1.5"),
        max_duration_us=8,
    ),
    priced=True,
)

WORKFLOW_EVENTS: tuple[Value, ...] = (
    ev.WorkflowStarted(settings=SETTINGS, input_json='"i"', fingerprint={"task a": "1"}, at_us=1, definition="m:a"),
    ev.WorkflowInterrupted(epoch=2, reason="taken-over", us=3),
    ev.ConditionAsked(task="a"),
    ev.ConditionDecided(task="a", go=True),
    ev.PhaseStarted(task="a", round=1, phase="attempt", attempt=1),
    ev.PhaseStopped(task="a", us=1),
    ev.PhaseFailed(
        task="a", code="provider", message="m", at_us=1, retryable=False, jitter=0.25, retry_after_us=2, us=3
    ),
    ev.RetryScheduled(task="a", until_us=4),
    ev.TaskDue(task="a", at_us=5),
    ev.CandidateSaved(task="a", json="1", us=1),
    ev.RoundJudged(task="a", round=1, accept=True, feedback="f", evidence="e", json="1", us=2),
    ev.TaskFinished(task="a", json="1", us=1),
    ev.TaskFailed(task="a", code="exhausted", message="m"),
    ev.TaskSkipped(task="b", because="a"),
    ev.TaskSuspended(
        task="a",
        questions=(
            ev.Question(
                id="a.q1", kind="evaluation", prompt="p", choices=("x", "y"), actors=("ada",), child="c", request="r"
            ),
        ),
        state_json="1",
        until_us=2,
        us=3,
    ),
    ev.TaskAnswered(task="a", id="a.q1", decision="approve", text="t", actor="ada", at_us=1),
    ev.StateSaved(task="a", json="1"),
    ev.ChargeAnnounced(task="a", receipt="r", reserve=USAGE),
    ev.UsageCharged(task="a", usage=USAGE, receipt="r", incomplete="i"),
    ev.ChildStarted(task="a", child="c", key="k", reserve=USAGE),
    ev.ChildCharged(task="a", child="c", usage=USAGE, in_doubt=USAGE, incomplete="i"),
    ev.QuotaPaused(task="a", message="m", requested_at_us=1, reset_at_us=2, conversation_json="[]", branch="b", us=3),
    ev.QuotaEnded(at_us=1),
    ev.WorkflowExtended(actor="ada", budget=SETTINGS.budget, priced=True),
    ev.WorkflowReopened(actor="ada"),
    ev.WorkflowAdopted(actor="ada", fingerprint={"task a": "2"}, settings=SETTINGS, definition="m:a"),
    ev.WorkflowStopped(status="failed", code="failed", kind="k", evidence="e", advice="a"),
)
