"""How an execution of a workflow has come to rest, in words: the same parts as those of a loop."""

from __future__ import annotations

import re
import shlex
from decimal import Decimal
from typing import Any

from treadle.core.endings import RETRY, ending, is_final
from treadle.core.spoken import count, duration, money, one_line, plain
from treadle.kernel.workflow_budget import standing
from treadle.kernel.workflow_states import WorkflowState
from treadle.runtime.workflow_document import document, questions, task_document, with_tasks

_DONE = "every task is done, or was not to run"


def words(state: WorkflowState) -> tuple[str, str, str]:
    """(label, colour, why)."""
    status, code = standing(state)
    if status == "running":
        return "running", "blue", ""
    row = ending(status, code)
    label = row.status if row.code in (row.status, "", "accepted") else f"{row.status}, {row.code}"
    why = _DONE if status == "done" else row.banner
    asked = questions(state) if status == "waiting-input" else []
    if asked:
        more = f" (and {len(asked) - 1} more)" if len(asked) > 1 else ""
        why = f"{why}: {one_line(asked[0]['prompt'] or asked[0]['task'], 160)}{more}"
    elif code == "quota" and state.quota is not None:
        why = f"{why}: {one_line(state.quota.message, 160)}"
    elif state.evidence and status != "done":
        why = f"{why}: {one_line(state.evidence, 160)}"
    return label, row.colour, why


def accounts(state: WorkflowState) -> str:
    """Tasks, attempts, money with what is in doubt, and active time."""
    total = state.total
    parts = [f"{len(state.done)} of {count(len(state.settings.tasks), 'task')}", count(total.attempts, "attempt")]
    if total.usage.requests or total.usage.cost_usd or total.in_doubt.requests or total.in_doubt.cost_usd:
        doubt = f" (+ {money(total.in_doubt.cost_usd)} in doubt)" if total.in_doubt.cost_usd else ""
        parts.append(f"{money(total.usage.cost_usd)}{doubt}")
    return " · ".join([*parts, duration(total.us)])


def next_command(execution_id: str, state: WorkflowState, *, store: str = "") -> str:
    """What to type next."""
    flag = f" --store {shlex.quote(store)}" if store else ""
    name = f"{execution_id}{flag}"
    status, code = standing(state)
    if status == "waiting-input" or (status == "running" and state.asking):
        return _answering(execution_id, questions(state), flag)
    if status == "stopped" and state.failed:
        return _inside_stopped(state, name, flag)
    if code == "usage-unavailable":
        return f"price= in the workflow's definition, then treadle resume {name}"
    if status == "stopped":
        return f"treadle extend {name} {_more(state)} && treadle resume {name}"
    if status in ("running", "paused"):
        return f"treadle resume {name}"
    if not is_final(status, code):
        return f"treadle {RETRY} {name}"
    return f"treadle show {name}" if status == "done" else f"treadle why {name}"


def _answering(execution_id: str, asked: list[dict[str, Any]], flag: str) -> str:
    first = asked[0]
    request = f" --request {first['request_id']}" if len(asked) > 1 else ""
    by = f" --as {shlex.quote(first['actors'][0])}" if first["actors"] else ""
    if first["kind"] == "question":
        text = shlex.quote(first["choices"][0]) if first["choices"] else "TEXT"
        return f"treadle answer {execution_id} {text}{request}{by}{flag}"
    name = f"{execution_id}{request}{by}{flag}"
    return f"treadle approve {name}  or  treadle reject {name} --reason TEXT"


_REACHED = re.compile(r"(max_\w+) \$?(\d+(?:\.\d+)?)")
_INSIDE = re.compile(r" \(in (\w+)\)$")


def _inside_stopped(state: WorkflowState, name: str, flag: str) -> str:
    """An execution inside was stopped: that one is extended, and this one goes on."""
    inside, limit = _INSIDE.search(state.evidence), _REACHED.search(state.evidence)
    resume = f"treadle {RETRY} {name}"
    if state.code == "usage-unavailable" or inside is None:
        return f"price= in its definition, then {resume}"
    more = f"--{limit[1].replace('_', '-')} {2 * Decimal(limit[2])}" if limit else "--max-cost N"
    more += "s" if limit and limit[1] == "max_time" else ""
    return f"treadle extend {inside[1]} {more}{flag} && {resume}"


def _more(state: WorkflowState) -> str:
    """A flag that doubles the limit that was reached."""
    limit = state.evidence.partition(" ")[0]
    budget = state.settings.budget
    if limit == "max_time" and budget.max_duration_us is not None:
        return f"--max-time {2 * budget.max_duration_us / 1e6:g}s"
    value: Any = budget.max_cost_usd if limit == "max_cost" else getattr(budget, limit, None)
    return f"--{limit.replace('_', '-')} {2 * value}" if value is not None else "--max-cost N"


def artifact(execution_id: str, state: WorkflowState) -> dict[str, Any]:
    """The document with its tasks."""
    return with_tasks(document(execution_id, state), state)


def page_text(execution_id: str, state: WorkflowState, *, store: str = "") -> str:
    """The page for people."""
    label, _, why = words(state)
    lines = [f"{execution_id}  {label}", why, accounts(state), "", f"Workflow {plain(state.settings.name)}"]
    for task in state.settings.tasks:
        found = task_document(state, task.key)
        said = f": {one_line(found['message'])}" if found.get("message") else ""
        lines.append(f"  {task.key}: {found['status']}{said}")
    lines += ["", f"Evidence: {plain(state.evidence)}"] if state.evidence else []
    return "\n".join([*lines, "", f"Next: {next_command(execution_id, state, store=store)}", ""])
