"""How an execution has come to rest, in words and as an artifact for people and later tools (AG-17)."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from treadle.core.endings import RETRY, ending, is_final
from treadle.core.errors import ConfigurationError
from treadle.core.spoken import count, duration, gist, money, one_line, plain
from treadle.kernel.budget import possibly_charged
from treadle.kernel.outcomes import lacks_usage
from treadle.kernel.states import LoopState
from treadle.kernel.workflow_states import WorkflowState
from treadle.runtime.document import document, to_json

from . import workflow_ending
from .history import RoundRecord, round_document
from .listing import AnyState
from .under_way import under_way, whereabouts
from .views import budgets

_FLAGS = {"max_turns": "--max-turns", "max_cost": "--max-cost", "max_time": "--max-time", "max_tokens": "--max-tokens"}


class Rest(NamedTuple):
    """What a person must know at the end: the banner's parts, and what to type next."""

    label: str  # status, and code where it says more
    colour: str
    why: str
    accounts: str
    next: str


def rest_of(execution_id: str, state: AnyState, *, store: str = "", short_id: str = "", owned: bool = False) -> Rest:
    """The execution as it stands. `store` is named in the next command where it is not the usual one; `owned`: somebody works on it."""
    if owned:
        return _at_work(_at_rest(execution_id, state, store, short_id), short_id or execution_id, state, store)
    return _at_rest(execution_id, state, store, short_id)


def _at_work(rest: Rest, name: str, state: AnyState, store: str) -> Rest:
    if rest.label != "running":
        return rest
    flag = f" --store {shlex.quote(store)}" if store else ""
    why = rest.why
    if isinstance(state, LoopState):
        doing = under_way(state)
        why = f"{whereabouts(state)}{f': waits for {doing}' if doing else ''}"
    asked = isinstance(state, WorkflowState) and state.asking
    return rest._replace(why=why, next=rest.next if asked else f"treadle watch {name}{flag}")


def _at_rest(execution_id: str, state: AnyState, store: str, short_id: str) -> Rest:
    if isinstance(state, WorkflowState):
        label, colour, why = workflow_ending.words(state)
        following = workflow_ending.next_command(short_id or execution_id, state, store=store)
        return Rest(label, colour, why, workflow_ending.accounts(state), following)
    if state.status == "running":
        label, colour, why = "running", "blue", ""
    else:
        row = ending(state.status, state.code)
        label = row.status if row.code in (row.status, "") else f"{row.status}, {row.code}"
        colour, why = row.colour, row.banner
    if state.pending is not None and state.pending.kind != "quota":
        why = _because(why, one_line(state.pending.prompt, 160))
    elif state.scope is not None and (state.scope.note or state.scope.onto):  # whole: the paths, and what to do
        why = _because(why, one_line(state.scope.note or state.evidence, 2_000))
    elif state.evidence.startswith(f"{why} "):  # "accepted in round 2" says "accepted", too
        why = one_line(state.evidence, 160)
    elif state.evidence:
        why = _because(why, gist(state.evidence, 200))
    return Rest(label, colour, why, accounts(state), next_command(short_id or execution_id, state, store=store))


def _because(what: str, why: str) -> str:
    return f"{what}: {why}" if what else why


def accounts(state: LoopState) -> str:
    """Money with what is in doubt, rounds, turns and active time."""
    total = state.total
    cost = money(total.usage.cost_usd) if state.settings.priced or total.usage.cost_usd else "price unknown"
    in_doubt = possibly_charged(state)
    if in_doubt.cost_usd:
        cost += f" (+ {money(in_doubt.cost_usd)} in doubt)"
    elif in_doubt.requests:
        cost += f" (+ {count(in_doubt.requests, 'request')} in doubt)"
    return f"{cost} · {count(state.round, 'round')} · {count(total.turns, 'turn')} · {duration(total.us)}"


def next_command(execution_id: str, state: LoopState, *, store: str = "") -> str:
    """What to type next."""
    flag = f" --store {shlex.quote(store)}" if store else ""
    name = f"{execution_id}{flag}"
    status, code = state.status, state.code
    if state.parent and status == "stopped":
        return f"treadle show {state.parent}{flag}"
    if state.parent and status in ("running", "paused"):
        return f"treadle resume {state.parent}{flag}"  # which goes on with both
    if status == "waiting-input":
        if code == "question":
            choice = state.pending.choices[0] if state.pending and state.pending.choices else "TEXT"
            return f"treadle answer {execution_id} {shlex.quote(choice)}{flag}"
        if state.pending is not None and state.pending.kind == "plan":
            return f"treadle plan approve {name}  or  treadle plan reject {name} --reason TEXT"
        return f"treadle approve {name}  or  treadle reject {name} --reason TEXT"
    if code == "usage-unavailable":
        return f"treadle {RETRY} {name}" if lacks_usage(state) else f"treadle resume {name} --price IN,OUT"
    if status == "stopped":
        return f"treadle extend {name} {_more(state)} && treadle resume {name}"
    if status in ("running", "paused"):
        return f"treadle resume {name}"
    if not is_final(status, code):
        return f"treadle {RETRY} {name}"
    if state.scope is not None and state.scope.closed in ("", "branch", "kept"):
        to_settle = state.scope.closed or state.scope.onto  # merging says how a conflict is settled
        return f"treadle scope {'merge' if to_settle else 'diff'} {name}"
    return f"treadle diff {name}"


def _more(state: LoopState) -> str:
    """A flag that doubles the limit that was reached."""
    limits, policy = state.settings.limits, state.settings.act_policy
    found = next((name for name in _FLAGS if name in state.evidence), "max_cost")
    value: object = "N"
    if found == "max_cost" and limits.max_cost_usd is not None:
        value = 2 * limits.max_cost_usd
    elif found == "max_time" and limits.max_duration_us is not None:
        value = f"{2 * limits.max_duration_us // 1_000_000}s"
    elif found == "max_turns" and policy.max_turns is not None:
        value = 2 * policy.max_turns
    elif found == "max_tokens" and limits.max_tokens is not None:
        value = 2 * limits.max_tokens
    return f"{_FLAGS[found]} {value}"


# ---- the artifact


def artifact_path(state_dir: Path, execution_id: str) -> Path:
    """The readable page; the same name with .json is for programs."""
    return state_dir / "artifacts" / execution_id / "ending.txt"


def write_artifact(
    state_dir: Path, execution_id: str, state: AnyState, rounds: list[RoundRecord], *, store: str = "", log: str = ""
) -> Path:
    """Both forms of the ending, each whole or not at all; the path of the page. ConfigurationError where that fails.

    `log` is the end of the session log.
    """
    page = artifact_path(state_dir, execution_id)
    body = to_json(artifact(execution_id, state, rounds))
    text = page_text(execution_id, state, rounds, store=store, log=log)
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(page.with_suffix(".json"), body + b"\n")
        _write_whole(page, text.encode(errors="replace"))
    except OSError as error:
        raise ConfigurationError(f"{page.parent}: the ending cannot be written down: {error.strerror}") from error
    return page


def artifact(execution_id: str, state: AnyState, rounds: list[RoundRecord]) -> dict[str, Any]:
    """The document of SV-03, what the table of endings says of it, and the rounds."""
    flow = isinstance(state, WorkflowState)
    found = workflow_ending.artifact(execution_id, state) if flow else document(execution_id, state)
    status, code = found["status"], found["code"]
    if status != "running":
        row = ending(status, code)
        found |= {
            "is_success": row.success,
            "is_nonfailure": row.nonfailure,
            "colour": row.colour,
            "goes_on_by": list(row.goes_on_by),
        }
    found["round_records"] = [round_document(one) for one in rounds]
    return found


def advice_of(state: LoopState) -> str:
    """What to do about how it ended; a child that a limit has stopped is its parent's business."""
    if state.parent and state.status == "stopped":
        return f"{state.parent} was told and goes on without it; extend that one, and its agent may fork another."
    return state.advice


def page_text(execution_id: str, state: AnyState, rounds: list[RoundRecord], *, store: str = "", log: str = "") -> str:
    """The page for people: what was asked, how it ended and why, what it cost, each round, the last records, the next command."""
    ending_of_log = ["The last records", _indented(log), ""] if log else []
    if isinstance(state, WorkflowState):
        return "\n".join([workflow_ending.page_text(execution_id, state, store=store), *ending_of_log])
    rest = rest_of(execution_id, state, store=store)
    lines = [f"{execution_id}  {rest.label}", rest.why, rest.accounts, "", "Task", _indented(state.task)]
    if state.outcome:
        lines += ["", f"Outcome: {state.outcome}"]
        lines += [f"Evidence:\n{_indented(state.evidence)}"] if state.evidence else []
        lines += [f"Advice: {plain(advice)}"] if (advice := advice_of(state)) else []
    lines += ["", "Accounts and limits", *_accounts_lines(state)]
    for one in rounds:
        lines += ["", f"Round {one.round}: {one.verdict or 'no verdict'}, {count(one.turns, 'turn')}"]
        lines += [f"  act did not finish: {one_line(one.failure)}"] if one.failure else []
        lines += [f"  changed: {', '.join(one.changed)}"] if one.changed else []
        lines += [_indented(one.feedback)] if one.feedback else []
        lines += [f"  evidence: {gist(one.evidence, 400)}"] if one.evidence else []
    return "\n".join([*lines, "", *ending_of_log, f"Next: {rest.next}", ""])


def _accounts_lines(state: LoopState) -> list[str]:
    total, act = state.total, state.act
    lines = [f"  {name:<8}{words}" for name, _, _, words in budgets(state)]
    usage = total.usage
    lines.append(
        f"  tokens  {usage.input_tokens:,} in ({usage.cache_read_tokens:,} cached), {usage.output_tokens:,} out,"
        f" in {count(usage.requests, 'request')}"
    )
    lines.append(f"  of act  {count(act.turns, 'turn')}, {money(act.usage.cost_usd)}, {duration(act.us)}")
    doubt = possibly_charged(state)
    if doubt.requests:
        lines.append(f"  doubt   {count(doubt.requests, 'request')}, at most {money(doubt.cost_usd)}")
    if state.last_act_model:
        lines.append(f"  model   {state.last_act_model}")
    return lines


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in plain(text).splitlines())


def _write_whole(path: Path, content: bytes) -> None:
    number, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
