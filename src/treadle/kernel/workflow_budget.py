"""What a workflow may still spend, and how it stands. Limits trip at >=; what is in doubt counts as spent (TC-21)."""

from __future__ import annotations

from collections.abc import Container
from decimal import Decimal
from typing import Literal

from treadle.core.endings import Code, Status
from treadle.core.usage import NO_USAGE, Usage
from treadle.core.values import replace
from treadle.core.workflow_events import BudgetSettings

from .workflow_states import WorkflowState

_COUNTERS = ("requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "tokens")


def reached(state: WorkflowState, *, attempt: bool) -> str:
    """What limit has been reached, in words; empty where none has. `attempt`: whether what comes next is one."""
    budget, total = state.settings.budget, state.total
    if attempt and budget.max_attempts is not None and total.attempts >= budget.max_attempts:
        return f"max_attempts {budget.max_attempts} reached ({total.attempts})"
    if budget.max_duration_us is not None and total.us >= budget.max_duration_us:
        return f"max_time {budget.max_duration_us / 1e6:g} s reached ({total.us / 1e6:g} s)"
    return over(budget, total.usage + total.in_doubt, total.in_doubt)


def over(budget: BudgetSettings, spent: Usage, in_doubt: Usage = NO_USAGE) -> str:
    """Which limit this spending reaches, in words."""
    for name in _COUNTERS:
        cap, used = getattr(budget, f"max_{name}"), getattr(spent, name)
        if cap is not None and used >= cap:
            return f"max_{name} {cap} reached ({used})"
    if budget.max_cost_usd is not None and spent.cost_usd >= budget.max_cost_usd:
        doubt = f", of which ${in_doubt.cost_usd} in doubt" if in_doubt.cost_usd else ""
        return f"max_cost ${budget.max_cost_usd} reached (${spent.cost_usd}{doubt})"
    return ""


def counts_tokens(budget: BudgetSettings) -> bool:
    """Whether usage without tokens cannot be gone on from."""
    return any(getattr(budget, f"max_{name}") is not None for name in _COUNTERS if name != "requests")


def missing(state: WorkflowState, usage: Usage) -> str:
    """What a report leaves unknown that a limit needs; empty where nothing is missing."""
    budget = state.settings.budget
    if not usage.requests:
        return ""
    if not usage.tokens and counts_tokens(budget):
        return "a request was reported without its tokens under a limit on tokens"
    if budget.max_cost_usd is not None and not usage.cost_usd and not state.settings.priced:
        return "a request was reported without its cost under a limit on cost, and no price was given"
    return ""


def admission(state: WorkflowState, reserve: Usage) -> Literal["yes", "wait", "no"]:
    """Whether a charge may be announced now. "wait": what is held in reserve leaves too little room for it.

    Where nothing is in reserve, one charge may pass the limit with its worst case, as one model call of a loop may.
    """
    budget = state.settings.budget
    spent = state.total.usage + state.total.in_doubt
    if over(budget, spent):
        return "no"
    if state.reserved == NO_USAGE or not _exceeds(budget, spent + state.reserved + reserve):
        return "yes"
    return "wait"


def may_settle(state: WorkflowState, task: str, waiting: Container[str]) -> bool:
    """Whether something that is reserved can still be settled while this task waits for it, and so do the `waiting` ones."""
    for key in state.running:
        running = state.active[key]
        if any(child.reserve != NO_USAGE for child in running.children.values()):
            return True
        if running.charges and key != task and key not in waiting:
            return True
    return False


def _exceeds(budget: BudgetSettings, usage: Usage) -> bool:
    for name in _COUNTERS:
        cap = getattr(budget, f"max_{name}")
        if cap is not None and getattr(usage, name) > cap:
            return True
    return budget.max_cost_usd is not None and usage.cost_usd > budget.max_cost_usd


def room(state: WorkflowState) -> tuple[Decimal | None, int | None]:
    """(USD, tokens) that are neither spent nor reserved; None where no limit is set."""
    budget = state.settings.budget
    spent = state.total.usage + state.total.in_doubt + state.reserved
    usd = None if budget.max_cost_usd is None else max(Decimal(0), budget.max_cost_usd - spent.cost_usd)
    tokens = None if budget.max_tokens is None else max(0, budget.max_tokens - spent.tokens)
    return usd, tokens


def extended(budget: BudgetSettings, by: BudgetSettings) -> BudgetSettings:
    """The limits with those of `by` that are set."""
    names = (*(f"max_{name}" for name in _COUNTERS), "max_attempts", "max_cost_usd", "max_duration_us")
    return replace(budget, **{name: value for name in names if (value := getattr(by, name)) is not None})


def standing(state: WorkflowState) -> tuple[Status, Code]:
    """How the execution stands, for people and programs: what it waits for where nothing can run."""
    if state.status != "running" or state.running or state.attention or state.doomed:
        return state.status, state.code
    if state.quota is not None:
        return "paused", "quota"
    if state.ahead or state.ready or state.timers or not state.asking:
        return "running", ""
    kinds = {question.kind for key in state.asking for question in state.active[key].questions}
    return "waiting-input", "question" if "question" in kinds else "approval"
