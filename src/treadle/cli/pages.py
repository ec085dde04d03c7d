"""What `show` and `why` print for people."""

from __future__ import annotations

import json
import shlex
import time
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from treadle.app.ending import Rest, advice_of, rest_of
from treadle.app.history import RoundRecord, TurnRecord
from treadle.app.under_way import left_behind
from treadle.app.views import bar, budgets
from treadle.core.spoken import count, duration, map_words, money, one_line, plain
from treadle.kernel.outcomes import outcome_of
from treadle.kernel.plan_standing import completed_count, gated, verified_count
from treadle.kernel.plan_words import step_line

from .listing import moment, status_words
from .output import STYLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from treadle.core.messages import ToolCall, ToolResult
    from treadle.kernel.states import LoopState
    from treadle.kernel.workflow_states import WorkflowState
    from treadle.ports.ledger import ExecutionRow

SHOWN_LINES, SHOWN_WIDTH = 20, 400
FIRST_LINES = 5  # of those, where the end says more
VERDICTS = {"accepted": ("✓", "green"), "rejected": ("✗", "red"), "": ("…", "bright_black")}


def _console() -> Console:
    return Console(highlight=False, emoji=False)


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True)


def _block(
    console: Console, text: str, style: str = "", *, whole: bool = False, indent: str = "  ", ends: bool = False
) -> None:
    """Foreign text, indented; shortened unless it is wanted whole. With `ends`, to its beginning and, rather, its end."""
    lines = plain(text).splitlines()
    most = len(lines) if whole else SHOWN_LINES
    head = min(most, FIRST_LINES) if ends else most
    left = max(0, len(lines) - most)
    for number, line in enumerate(lines):
        if number == head and left:
            _say(console, f"{indent}… {count(left, 'line')} more", "bright_black")
        if number < head or number >= head + left:
            short = one_line(line, SHOWN_WIDTH) if len(line) > SHOWN_WIDTH and not whole else line
            _say(console, f"{indent}{short}", style)


def _head(console: Console, row: ExecutionRow, rest: Rest, where: str, parent: str) -> None:
    age = duration(max(0, time.time_ns() // 1000 - row.created_us))
    orphaned = rest.label == "running" and not row.owner_alive
    label = f"{rest.label} (owner gone: resume)" if orphaned else rest.label
    console.print(Text.assemble((row.execution_id, "bold"), "  ", (label, f"bold {STYLES[rest.colour]}")))
    if rest.why:
        _say(console, rest.why)
    _say(console, f"{rest.accounts} · started {age} ago · {where}", "bright_black")
    if parent:
        _say(console, f"inside {parent}", "bright_black")


def print_workflow(
    row: ExecutionRow,
    state: WorkflowState,
    children: Mapping[str, str],
    store: str,
    parent: str = "",
    waits: Sequence[dict[str, Any]] = (),
) -> None:
    """The page of a workflow: its graph, and what is asked."""
    from treadle.runtime.workflow_document import document

    from .graph import drawn

    console = _console()
    rest = rest_of(row.execution_id, state, store=store, owned=row.owner_alive)
    _head(
        console,
        row,
        rest,
        f"{one_line(state.settings.name, 80)}, version {one_line(state.settings.version, 40)}",
        parent,
    )
    pending = document(row.execution_id, state)["pending"]
    if pending and pending["until_us"] is not None:
        _say(console, f"goes on at {moment(pending['until_us'])}")
    _waits(console, waits)
    _say(console, "\nTasks", "bold")
    table, left_out = drawn(state, children, alive=row.owner_alive)
    console.print(table)
    if left_out:
        _say(console, f"  and {left_out:,} more, all in show --json", "bright_black")
    _say(console, f"\nNext: {rest.next}")


def _waits(console: Console, waits: Sequence[dict[str, Any]]) -> None:
    """What it waits for although it runs."""
    from treadle.app.waits import sentence

    for one in waits:
        inside = f" (in {one['child']})" if one["child"] else ""
        _say(console, f"{sentence(one, moment)}{inside}")
        if one["prompt"]:
            _block(console, one_line(one["prompt"], SHOWN_WIDTH))


def print_why_workflow(
    state: WorkflowState, rest: Rest, artifact: str | None, waits: Sequence[dict[str, Any]] = ()
) -> None:
    """Outcome, evidence, what is asked, which tasks failed, next command."""
    from treadle.runtime.workflow_document import questions

    console = _console()
    _say(console, rest.label, f"bold {STYLES[rest.colour]}")
    if state.outcome:
        _say(console, f"outcome  {state.outcome}")
    _waits(console, waits)
    if state.quota is not None and not waits:
        until_us = state.quota.reset_at_us
        _say(console, f"waits    quota{'' if until_us is None else f' until {moment(until_us)}'}")
        _block(console, state.quota.message)
    for asked in [] if waits else questions(state):
        _say(console, f"waits    {asked['kind']} {asked['request_id']}")
        _block(console, asked["prompt"])
    for key, failed in state.failed.items():
        _say(console, f"failed   {key}")
        _block(console, failed.message, ends=True)
    if state.evidence:
        _say(console, "evidence")
        _block(console, state.evidence, ends=True)
    _say(console, f"next     {rest.next}")
    if artifact:
        _say(console, f"artifact {artifact}", "bright_black")


def print_execution(
    row: ExecutionRow,
    state: LoopState,
    rounds: list[RoundRecord],
    store: str,
    parent: str = "",
    children: Mapping[str, dict[str, Any]] | None = None,
    answered: str = "",
) -> None:
    """The page of one execution. `children`: the documents of those that it has forked. `answered`: by whom, to its parent."""
    console = _console()
    rest = rest_of(row.execution_id, state, store=store, owned=row.owner_alive)
    _head(console, row, rest, state.workspace or "no workspace", parent)
    _say(console, "\nTask", "bold")
    _block(console, state.task)
    if state.plan.steps:
        _say(console, "")
        _plan(console, state)
    _accounts(console, state)
    _say(console, "\nLimits", "bold")
    console.print(_limits(state))
    if (guarded := _guarded(state)) or state.rung or state.evaluate_rung:
        _say(console, "\nGuards and models", "bold")
        for line in (*guarded, *_rungs(state)):
            _say(console, f"  {line}")
    if state.children:
        _say(console, "\nChildren", "bold")
        for line in _children(state, children or {}):
            _say(console, f"  {line}")
    _say(console, "\nRounds", "bold")
    for one in rounds:
        _round_lines(console, one, whole=False)
    if answered:
        flag = f" --store {shlex.quote(store)}" if store else ""
        by = f"Answered by {answered}, to the one that forked it"
        _say(console, f"\n{by}; treadle resume {parent}{flag} goes on with both.")
    else:
        _say(console, f"\nNext: {rest.next}")


PLAN_MARKS = {"pending": ("·", ""), "in-progress": ("▶", "blue"), "done": ("✓", "green"), "failed": ("✗", "red")}


def print_plan(state: LoopState) -> None:
    """The plan alone."""
    _plan(_console(), state)


def _plan(console: Console, state: LoopState) -> None:
    """Steps with status and check; how many are done, and how many of these by their check."""
    plan = state.plan
    head = f"Plan  {completed_count(plan)} of {len(plan.steps)} done, {verified_count(plan)} verified"
    if gated(state):
        head += " · not approved"
    elif state.settings.plan_mode:
        head += f" · approved by {one_line(plan.approved_by, 40)}"
    _say(console, head, "bold")
    for step in plan.steps:
        mark, style = PLAN_MARKS[step.status]
        _say(console, f"  {mark} {step_line(step).partition('] ')[2]}", style)


def _accounts(console: Console, state: LoopState) -> None:
    """Total, and act's share of it."""
    _say(console, "\nAccounts", "bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bright_black")
    table.add_column("")
    for name in ("turns", "cost", "in doubt", "tokens in", "cached", "out", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, one in (("  total", state.total), ("  act", state.act)):
        usage = one.usage
        table.add_row(
            name,
            f"{one.turns:,}",
            money(usage.cost_usd),
            money(one.in_doubt.cost_usd),
            f"{usage.input_tokens:,}",
            f"{usage.cache_read_tokens:,}",
            f"{usage.output_tokens:,}",
            duration(one.us),
        )
    console.print(table)


def _guarded(state: LoopState) -> list[str]:
    """Each guard that has tripped, with its threshold and how to move that."""
    limits = state.settings.guards
    return [
        f"guard {name} tripped {count(times, 'time')}, threshold {getattr(limits, name.replace('-', '_'))}"
        f" (--guard {name}=N on resume or extend)"
        for name, times in state.fires
    ]


def _children(state: LoopState, documents: Mapping[str, dict[str, Any]]) -> list[str]:
    """All that its agent has forked: how each stands, what it has used, and for whom the one at work waits."""
    found: list[str] = []
    for child, name in state.children:
        line = f"{child}  {name}"
        if (document := documents.get(child)) is not None:
            spent = money(document["cost_usd"] + document["in_doubt_usd"])
            line += f"  {status_words(document)[0]}, {count(document['turns_taken'], 'turn')}, at most {spent}"
        if state.child is not None and state.child.child == child:
            waits = "this agent" if state.child.asks else f"a person ({state.pending.kind})" if state.pending else ""
            if state.pending is not None and state.pending.kind == "quota":
                waits = "its quota"
            line += f"  waits for {waits}" if waits else "  at work"
        found.append(line)
    return found


def _rungs(state: LoopState) -> list[str]:
    """The models that were escalated to."""
    found: list[str] = []
    for who, rung, agent in (
        ("act", state.rung, state.settings.act_agent),
        ("evaluate", state.evaluate_rung, state.settings.evaluate_agent),
    ):
        if rung:
            found.append(
                f"{who} escalated to {agent.ladder[min(rung, len(agent.ladder) - 1)]}, rung {rung} of {len(agent.ladder) - 1}"
            )
    return found


def _limits(state: LoopState) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=8)
    table.add_column(width=24)
    table.add_column(no_wrap=True)
    for name, used, cap, words in budgets(state):
        table.add_row(f"  {name}", bar(used / cap, 24) if cap else Text("no limit", "bright_black"), words)
    return table


def print_round(one: RoundRecord) -> None:
    """One round, feedback and evidence whole."""
    console = _console()
    _round_lines(console, one, whole=True)
    if one.evidence:
        _say(console, "    evidence", "bright_black")
        _block(console, one.evidence, whole=True, indent="    ")
    if one.output_json != "null":
        _say(console, "    output", "bright_black")
        _block(console, one.output_json, indent="    ")


def print_task(found: Mapping[str, Any]) -> None:
    """One task of a workflow: how it stands, its rounds, what it was answered, and what it gave."""
    console = _console()
    _say(console, f"{found['task']} · {found['kind']} · {found['status']}", "bold")
    attempts = count(found.get("attempts", 0), "attempt")
    _say(console, f"{attempts} · after {', '.join(found['after']) or 'nothing'}", "bright_black")
    if message := found.get("message"):
        _block(console, message, "red", whole=True)
    for one in found["history"]:
        mark, style = VERDICTS[one["verdict"]]
        _say(console, f"  {mark} round {one['round']}: {one['verdict']}", style)
        for said in (one["feedback"], one["evidence"]):
            if said:
                _block(console, said, "bright_black", whole=True, indent="    ")
    for one in found["answers"]:
        _say(console, f"  {one['decision']} by {one['actor']} ({one['request_id']})")
        if one["text"]:
            _block(console, one["text"], "bright_black", whole=True, indent="    ")
    if found["status"] == "done":
        _say(console, "output", "bright_black")
        _block(console, json.dumps(found["output"], indent=2, ensure_ascii=False), whole=True)


def _round_lines(console: Console, one: RoundRecord, *, whole: bool) -> None:
    mark, style = VERDICTS[one.verdict]
    _say(console, f"  {mark} round {one.round}: {one.verdict or 'no verdict yet'}, {count(one.turns, 'turn')}", style)
    if one.map is not None:
        _say(console, f"    map {map_words(one.map)}", "bright_black")
    if one.failure:
        _say(console, f"    act did not finish: {one_line(one.failure)}")
    if one.changed:
        _say(console, f"    changed {one_line(', '.join(one.changed), 400)}")
    if one.feedback:
        _block(console, one.feedback, "bright_black", whole=whole, indent="    ", ends=True)


def print_turn(one: TurnRecord) -> None:
    """One turn: what was asked, what came back, what was done with it."""
    console = _console()
    usage = one.usage
    _say(console, f"turn {one.turn} · round {one.round}, {one.phase} · {one.model} · {one.at}", "bold")
    _say(console, f"request  {one.request}  {one.call}, at most {money(one.reserve.cost_usd)}", "bright_black")
    _say(console, f"response {one.response}  {one.finish}, {duration(one.elapsed_us)}", "bright_black")
    spent = f"{usage.input_tokens:,} in ({usage.cache_read_tokens:,} cached), {usage.output_tokens:,} out"
    _say(console, f"usage    {spent}, {money(usage.cost_usd)}", "bright_black")
    if one.text.strip():
        _block(console, one.text)
    for index, call in enumerate(one.calls):
        _call_lines(console, call, one.results[index] if index < len(one.results) else None)
    if one.changed:
        _say(console, f"changed {one_line(', '.join(one.changed), 400)}")
    _say(console, f"decision {one.decision}", "bold")


def _call_lines(console: Console, call: ToolCall, result: ToolResult | None) -> None:
    args = call.args if isinstance(call.args, str) else msgspec.json.encode(call.args).decode()
    _say(console, f"{call.name} {one_line(args, 400)}  ({call.kind}, {call.id})", "cyan")
    if call.problem:
        _say(console, f"  {one_line(call.problem, 400)}", "red")
    if result is None:
        _say(console, "  no result yet", "bright_black")
        return
    kept = f", all that was kept of it: treadle last EXEC --call {call.id}" if result.blob else ""
    _say(console, f"  {result.status}{kept}", "bright_black")
    _block(console, result.content, ends=True)


def print_why(state: LoopState, rest: Rest, artifact: str | None) -> None:
    """Outcome, evidence, advice, next command."""
    console = _console()
    _say(console, rest.label, f"bold {STYLES[rest.colour]}")
    if state.status == "running":
        _say(console, f"now      {rest.why or left_behind(state)}")
    if state.outcome:
        _say(console, f"outcome  {state.outcome}: {outcome_of(state.outcome).means}")
    if state.pending is not None:
        until_us = state.pending.until_us
        until = "" if until_us is None else f" until {moment(until_us)}"
        _say(console, f"waits    {state.pending.kind} {state.pending.id}{until}")
        _block(console, state.pending.prompt)
    if state.evidence:
        _say(console, "evidence")
        _block(console, state.evidence, ends=True)
    if advice := advice_of(state):
        _say(console, f"advice   {plain(advice)}")
    for line in (*_guarded(state), *_rungs(state)):
        _say(console, f"also     {line}")
    _say(console, f"next     {rest.next}")
    if artifact:
        _say(console, f"artifact {artifact}", "bright_black")
