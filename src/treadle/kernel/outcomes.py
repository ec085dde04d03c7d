"""Every way in which a loop can end, as one ordered table (AG-17): where several hold at once, the first is what it is called.

A row has the kind of outcome, the ending it leads to, what it means, what to do next, and the rule that decides it where the
machine itself does. `kind` is stored with what it was in particular behind a colon: "budget: max_cost", "thrash: repeat".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from treadle.core.endings import Code, Status
from treadle.core.events import Escalated, Stopped

from . import texts
from .budget import has_cost_cap, needs_usage, reached
from .escalation import next_rung
from .guards import stopping
from .plan_standing import refused_too_often
from .states import LoopState

Found = tuple[str, str] | None  # (what it was in particular, evidence)
Rule = Callable[[LoopState], Found]


class Outcome(NamedTuple):
    """One row."""

    kind: str
    status: Status
    code: Code
    means: str
    advice: str = ""
    rule: Rule | None = None  # None: an effect, a person or a fault brings it about
    at_boundary: bool = True  # asked only when nothing is in flight
    escalates: bool = False  # another model may do better (FR-21)


def _missing_edit(state: LoopState) -> Found:
    if state.accepted and state.settings.edit_required and _unchanged(state):
        return "", f"it was accepted in round {state.round}, but nothing in the workspace has changed"
    return None


def _no_change(state: LoopState) -> Found:
    return ("", _accepted_by(state)) if state.accepted and _unchanged(state) else None


def _accepted(state: LoopState) -> Found:
    return ("", _accepted_by(state)) if state.accepted else None


def _unchanged(state: LoopState) -> bool:
    return state.changed is False and not state.touched


def _accepted_by(state: LoopState) -> str:
    return state.evidence or f"accepted in round {state.round}"


def _unpriced(state: LoopState) -> Found:
    if has_cost_cap(state) and not state.settings.priced:
        return "price", "a cost limit is set, and the price of a model is unknown"
    return None


def _unmetered(state: LoopState) -> Found:
    if state.unmetered and needs_usage(state):
        text = f"the provider reported no usage for {state.unmetered} response(s) under a limit on cost or tokens"
        return "usage", text
    return None


def lacks_usage(state: LoopState) -> bool:
    """Whether it was stopped for usage that the provider does not report, and no price would help."""
    return state.code == "usage-unavailable" and _unpriced(state) is None


def _budget(state: LoopState) -> Found:
    text = reached(state)
    return (next((name for name in LIMITS if name in text), "limit"), text) if text else None


def _recovery(state: LoopState, only: str) -> Found:
    counters, limit = state.agent.guards, state.settings.guards.recovery
    if counters.recovery < limit or (only and counters.classes != (only,)):
        return None
    classes = ", ".join(counters.classes) or "unknown"
    return "", f"every call failed in {counters.recovery} batches in a row (class of error: {classes})"


def _thrash(state: LoopState) -> Found:
    return stopping(state) or refused_too_often(state)


def _provider(state: LoopState) -> Found:
    agent = state.agent
    if agent.step != "back-off":
        return None
    kind = agent.failure.split(":", 1)[0]
    lasting = agent.retry_at_us is None or agent.failures >= _attempts(state)
    return (kind, agent.failure) if lasting and kind not in ("quota", "context-too-long") else None


def _attempts(state: LoopState) -> int:
    settings = state.settings.act_agent if state.phase == "act" else state.settings.evaluate_agent
    return settings.provider_attempts


def _no_verdict(state: LoopState) -> Found:
    agent = state.agent
    if state.phase != "evaluate" or agent.step != "ready" or state.settings.evaluate != "agent":
        return None
    if agent.iteration < state.settings.evaluate_agent.max_turns_per_act:
        return None
    return "", f"the evaluator gave no verdict in {agent.iteration} turns"


LIMITS = ("max_turns", "max_cost", "max_time", "max_tokens")
ANOTHER = "Start anew with a clearer task, other tools or another model."
OUTCOMES: tuple[Outcome, ...] = (
    Outcome(
        "required edit missing",
        "failed",
        "required-edit-missing",
        "accepted, but a change was asked for and none was made",
        "Make the check depend on the change, or start without --must-change.",
        _missing_edit,
        at_boundary=False,
    ),
    Outcome("no change", "done", "no-change", "accepted, and nothing had to change", "", _no_change, at_boundary=False),
    Outcome("accepted", "done", "accepted", "the check accepted the work", "", _accepted, at_boundary=False),
    Outcome(
        "usage unavailable",
        "stopped",
        "usage-unavailable",
        "a limit on money or tokens cannot be kept",
        "resume --price IN,OUT (USD per million tokens)",
        _unpriced,
    ),
    Outcome(
        "usage unavailable",
        "stopped",
        "usage-unavailable",
        "a limit on money or tokens cannot be kept",
        "Use an endpoint that reports usage, then resume --retry-incomplete.",
        _unmetered,
    ),
    Outcome("budget", "stopped", "limit", "a limit was reached", "treadle extend, then treadle resume", _budget),
    Outcome(
        "safety",
        "failed",
        "safety",
        "every call was refused for safety",
        "Look at what it tried (treadle log). " + ANOTHER,
        partial(_recovery, only="safety"),
    ),
    Outcome(
        "permission",
        "failed",
        "permission",
        "every call lacked a permission",
        "Look at what it needed (treadle log), and grant that or start with another task.",
        partial(_recovery, only="permission"),
    ),
    Outcome(
        "conflict",
        "failed",
        "conflict",
        "every call met others' changes",
        "Settle who else works there, then start anew.",
        partial(_recovery, only="conflict"),
    ),
    Outcome(
        "recovery exhausted",
        "failed",
        "recovery-exhausted",
        "call after call failed",
        "Read the errors (treadle log), mend what they name, then start anew.",
        partial(_recovery, only=""),
        escalates=True,
    ),
    Outcome("thrash", "failed", "thrash", "a guard stopped it", texts.THRASH_ADVICE, _thrash, escalates=True),
    Outcome("provider", "failed", "provider", "the model could not be used", "", _provider, escalates=True),
    Outcome(
        "verification failed",
        "failed",
        "verification",
        "the evaluator gave no verdict",
        "Give the evaluator more turns, another model, or use a check command.",
        _no_verdict,
        escalates=True,
    ),
    Outcome("max iterations", "failed", "exhausted", "the last round was rejected", texts.EXHAUSTED_ADVICE),
    Outcome("timeout", "failed", "timeout", "a check or an actor took too long", texts.RAISED_ADVICE),
    Outcome("internal", "failed", "failed", "a callback, a tool or Treadle itself raised", texts.RAISED_ADVICE),
    Outcome("rejected", "rejected", "rejected", "a person said no"),
    Outcome("cancelled", "cancelled", "aborted", "a person ended it"),
    Outcome(
        "unknown", "failed", "failed", "an ending that this release has no name for", "treadle log has the records."
    ),
)
_DECIDED = tuple(row for row in OUTCOMES if row.rule is not None)
_AT_ONCE = tuple(row for row in _DECIDED if not row.at_boundary)
_BY_KIND = {row.kind: row for row in OUTCOMES}


def decided(state: LoopState, *, boundary: bool) -> Stopped | Escalated | None:
    """The end that the rules see, or the step to another model in its stead; None while it goes on."""
    if not boundary and not state.accepted:
        return None  # all rules that are asked at any time are about an acceptance
    for row in _DECIDED if boundary else _AT_ONCE:
        assert row.rule is not None
        found = row.rule(state)
        if found is None:
            continue
        detail, evidence = found
        if row.escalates and (step := next_rung(state, f"{_kind(row, detail)}: {evidence}"[:300])) is not None:
            return step
        advice = row.advice or texts.PROVIDER_ADVICE.get(detail, "")
        if row.kind == "thrash":
            advice += texts.retune(detail)
        return Stopped(status=row.status, code=row.code, kind=_kind(row, detail), evidence=evidence, advice=advice)
    return None


def _kind(row: Outcome, detail: str) -> str:
    return f"{row.kind}: {detail}" if detail else row.kind


def outcome_of(kind: str) -> Outcome:
    """The row of a stored kind; that of `unknown` for one that this release does not have."""
    return _BY_KIND.get(kind.partition(":")[0], _BY_KIND["unknown"])
