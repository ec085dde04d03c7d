"""What `treadle watch` draws: one execution with its plan, budgets, last calls and what it waits for; or the fleet."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from rich import box
from rich.columns import Columns
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from treadle.app.ending import rest_of
from treadle.app.under_way import left_behind
from treadle.app.views import bar, budgets
from treadle.app.waits import sentence
from treadle.app.waits import words as waiting_words
from treadle.app.watching import Watched, plan_of
from treadle.core.spoken import count, duration, gist, money, one_line
from treadle.kernel.plan_standing import gated
from treadle.kernel.states import LoopState

from .listing import moment
from .output import STYLES

if TYPE_CHECKING:
    from rich.console import RenderableType

    from treadle.app.observing import Snapshot

DIM = "bright_black"
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
CALLS = {"ok": ("✓", "green"), "error": ("✗", "red"), "unknown": ("?", "yellow"), "not-run": ("-", DIM)}
STEPS = {"done": ("✓", "green"), "failed": ("✗", "red"), "in-progress": ("▶", "cyan"), "pending": ("·", DIM)}
SHOWN_STEPS = 8
BAR = 20  # columns of a budget
WIDE = 100  # columns from which plan and budgets stand side by side


def one(watched: Watched, now_us: int, *, store: str = "", width: int = 100) -> RenderableType:
    """The page of one execution."""
    state = watched.state
    assert state is not None
    rest = rest_of(watched.execution_id, state, store=store)
    gone = state.status == "running" and not watched.row.owner_alive
    colour = STYLES["amber" if gone else rest.colour]
    title = Text.assemble(
        (f" {watched.execution_id} ", "bold"), (f"{'owner gone' if gone else rest.label} ", f"bold {colour}")
    )
    parts: list[RenderableType] = [*_task(watched), Text("")]
    parts += _now(watched, now_us, store)
    if isinstance(state, LoopState):
        parts += [Text(""), _middle(watched, state, now_us, width), *_lately(watched)]
    else:
        from .graph import drawn

        parts.append(drawn(state, {}, alive=watched.row.owner_alive)[0])
    subtitle = Text.assemble((" next ", DIM), (f"{rest.next} ", "bold"))
    if watched.running:
        name = f"{watched.execution_id} --store {shlex.quote(store)}" if store else watched.execution_id
        subtitle = Text(f" treadle log -f {name} · treadle cancel {name} ", DIM)
    return Panel(
        Group(*parts), title=title, title_align="left", subtitle=subtitle, subtitle_align="left",
        border_style=colour, box=box.ROUNDED, padding=(0, 1),
    )  # fmt: skip


def _clip(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _task(watched: Watched) -> list[Text]:
    state = watched.state
    if not isinstance(state, LoopState):
        return [_clip(f"workflow {one_line(state.settings.name, 200)}", "bold")] if state else []
    words = [f"round {state.round} of {state.settings.max_rounds}", state.phase]
    if (state.settings.act if state.phase == "act" else state.settings.evaluate) == "agent":
        words += [f"turn {state.total.turns}", state.agent.state.replace("_", " ")]
    where = f"{watched.model or state.last_act_model}  " if watched.model or state.last_act_model else ""
    return [_clip(one_line(state.task, 300), "bold"), _clip(f"{where}{' · '.join(words)}", DIM)]


def _now(watched: Watched, now_us: int, store: str) -> list[RenderableType]:
    """What is under way, or what it waits for, or why it ended."""
    state = watched.state
    assert state is not None
    pending = state.pending if isinstance(state, LoopState) else None
    if pending is not None:
        asked = _clip(f"? {pending.kind}: {one_line(pending.prompt, 400)}", "magenta")
        choices = (
            [_clip(f"  {' / '.join(one_line(one, 40) for one in pending.choices)}", "magenta")]
            if pending.choices
            else []
        )
        command = rest_of(watched.execution_id, state, store=store).next
        return [asked, *choices, Text(f"  {command}", "bold")]
    if state.status != "running":
        rest = rest_of(watched.execution_id, state)
        said = [_clip(f"  {line}", DIM) for line in state.evidence.splitlines()[1:4]]
        return [_clip(rest.why or rest.label, STYLES[rest.colour]), *said]
    waits: list[RenderableType] = [
        _clip(sentence(one, moment), "magenta" if _of_people(one) else "cyan") for one in watched.waits
    ]
    if not watched.row.owner_alive:
        left = left_behind(state) if isinstance(state, LoopState) else "its process is gone"
        return [
            _clip(left, "yellow"),
            Text(f"  {rest_of(watched.execution_id, state, store=store).next}", "bold"),
            *waits,
        ]
    if waits:
        return waits
    said = [_clip(f"“{watched.said}”", "italic")] if watched.said else []
    flight = watched.flight()
    if flight is None:
        return [*said, _clip("…", DIM)]
    frame = FRAMES[now_us // 125_000 % len(FRAMES)]
    since = duration(max(0, now_us - flight.since_us))
    return [*said, _clip(f"{frame} {flight.what}  {since}", "cyan")]


def _of_people(wait: dict[str, Any]) -> bool:
    return wait["for"] not in ("quota", "time")


def _middle(watched: Watched, state: LoopState, now_us: int, width: int) -> RenderableType:
    """Plan and budgets, side by side where there is room."""
    under_way_us = max(0, now_us - watched.last_us) if watched.running else 0
    right = Group(_bars(watched, state, under_way_us), *_rates(watched, now_us))
    steps = plan_of(state)
    if steps is None:
        return right
    if width < WIDE:
        return Group(_plan(steps, waits=gated(state)), Text(""), right)
    return Columns([_plan(steps, waits=gated(state)), right], expand=True, equal=True, padding=(0, 2))


def _plan(steps: list[dict[str, Any]], *, waits: bool) -> RenderableType:
    done = sum(step["status"] == "done" for step in steps)
    verified = sum(step["status"] == "done" and step["by"] == "check" for step in steps)
    current = next((n for n, step in enumerate(steps) if step["status"] == "in-progress"), done)
    first = max(0, min(current - SHOWN_STEPS // 2, len(steps) - SHOWN_STEPS))
    lines = [_clip(f"Plan  {done} of {len(steps)} done, {verified} verified{', not approved' * waits}", "bold")]
    lines += [_clip(f"  … {first} before", DIM)] if first else []
    for step in steps[first : first + SHOWN_STEPS]:
        mark, style = STEPS[step["status"]]
        by_hand = " (by hand)" if step["by"] == "person" else ""
        lines.append(_clip(f"  {mark} {step['id']}. {one_line(step['title'], 100)}{by_hand}", style))
        if step["status"] == "failed" and step["reason"]:
            lines.append(_clip(f"       {one_line(step['reason'], 160)}", "red"))
        elif step["status"] == "in-progress" and step["check"]:
            lines.append(_clip(f"       until {one_line(step['check'], 160)}", DIM))
    left = len(steps) - first - SHOWN_STEPS
    return Group(*lines, *([_clip(f"  … {left} more", DIM)] if left > 0 else []))


def _bars(watched: Watched, state: LoopState, under_way_us: int) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=6)
    table.add_column(width=BAR)
    table.add_column(no_wrap=True)
    for name, used, cap, words in budgets(state, under_way_us):
        table.add_row(name, bar(used / cap, BAR) if cap else _clip("no limit", DIM), words)
    used, budget = watched.window()
    if budget:
        table.add_row("window", bar(used / budget, BAR), f"{used:,} of {budget:,} tokens")
    return table


def _rates(watched: Watched, now_us: int) -> list[Text]:
    """Tokens so far, and the pace while it runs."""
    state = watched.state
    assert isinstance(state, LoopState)
    usage = state.total.usage
    cached = (
        f" ({100 * usage.cache_read_tokens // usage.input_tokens} % cached)"
        if usage.cache_read_tokens and usage.input_tokens
        else ""
    )
    line = f"tokens {usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out"
    return [_clip(line), *([_clip(f"pace   {pace(watched.throughput(now_us))}")] if watched.running else [])]


def pace(rate: Snapshot) -> str:
    """Tokens a second, and turns a minute."""
    return f"{rate.input_tokens_s:,.0f} tokens/s in, {rate.output_tokens_s:,.0f} out, {60 * rate.turns_s:.1f} turns a minute"


def _lately(watched: Watched) -> list[RenderableType]:
    """The last calls, what rounds came to, and what else is worth knowing."""
    parts: list[RenderableType] = []
    if watched.calls:
        parts += [Text(""), Text("Last calls", "bold")]
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(width=3)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column(justify="right", style=DIM)
        for call in watched.calls:
            mark, style = CALLS[call.status] if call.status != "ok" or not call.note else ("!", "yellow")
            said = Text.assemble(call.what, (f"  {call.note}", style)) if call.note else Text(call.what)
            table.add_row(Text(f"  {mark}", style), said, duration(call.us))
        parts.append(table)
    if watched.verdicts:
        parts += [Text(""), Text("Rounds", "bold")]
        for verdict in watched.verdicts:
            mark, style = ("✓", "green") if verdict.accept else ("✗", "red")
            said = "accepted" if verdict.accept else f"rejected: {gist(verdict.feedback, 300)}"
            parts.append(_clip(f"  {mark} {verdict.round}  {said}", style))
    if watched.events:
        parts += [Text(""), *(_clip(f"! {said}", "yellow") for said in watched.events)]
    return parts


def fleet(all_of_them: list[Watched], rate: Snapshot, now_us: int, *, rows: int, width: int) -> RenderableType:
    """A line for each execution, those that run first; below, what they come to."""
    ordered = sorted(all_of_them, key=lambda one: not one.running)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=DIM, expand=True)
    names = (
        ("id", "status", "round", "turns", "at most", "tokens/s", "age") if width >= WIDE else ("id", "status", "round")
    )
    for name in names:
        table.add_column(name, no_wrap=True, justify="left" if name in ("id", "status", "round") else "right")
    table.add_column("task", no_wrap=True, overflow="ellipsis", ratio=1, min_width=12)
    for watched in ordered[:rows]:
        cells = _row(watched, now_us)
        table.add_row(*(cells[name] for name in (*names, "task")))
    running = sum(one.running for one in all_of_them)
    waiting = sum(one.state is not None and one.state.status == "waiting-input" for one in all_of_them)
    said = [f"… {len(ordered) - rows} more"] if len(ordered) > rows else []
    said.append(f"{running} at work")
    said += [f"{waiting} waiting for a person"] if waiting else []
    return Group(table, Text(""), _clip(" · ".join([*said, pace(rate)]), DIM))


def _row(watched: Watched, now_us: int) -> dict[str, RenderableType]:
    state = watched.state
    assert state is not None
    rest = rest_of(watched.execution_id, state)
    gone = state.status == "running" and not watched.row.owner_alive
    label, waits = "owner gone" if gone else rest.label, waiting_words(watched.waits, moment)
    if isinstance(state, LoopState):
        where, turns, task = (
            f"{state.round}/{state.settings.max_rounds} {state.phase}",
            f"{state.total.turns:,}",
            state.task,
        )
    else:
        turns = f"{state.total.usage.requests:,}"
        where, task = f"{len(state.done)} of {count(len(state.settings.tasks), 'task')}", state.settings.name
    return {
        "id": watched.execution_id,
        "status": Text(f"{label}, {waits}" if waits else label, STYLES["amber" if gone else rest.colour]),
        "round": where,
        "turns": turns,
        "at most": money(state.total.usage.cost_usd + state.total.in_doubt.cost_usd),
        "tokens/s": f"{watched.throughput(now_us).tokens_s:,.0f}" if watched.running else "",
        "age": duration(max(0, now_us - watched.row.created_us)),
        "task": Text(one_line(task, 200)),
    }
