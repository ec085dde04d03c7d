"""The task graph of a workflow as a person reads it in a terminal: each task below the one that it waits for longest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rich.table import Table
from rich.text import Text

from treadle.core.spoken import count, one_line
from treadle.runtime.workflow_document import questions, task_document

from .listing import moment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from treadle.kernel.workflow_states import WorkflowState

SHOWN = 200  # tasks; of a larger graph those come first that are not done
MARKS = {
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
    "stopped": ("✗", "yellow"),
    "rejected": ("✗", "bright_black"),
    "cancelled": ("✗", "bright_black"),
    "skipped": ("-", "bright_black"),
    "waiting-input": ("?", "magenta"),
    "running": ("●", "blue"),
    "retrying": ("↻", "yellow"),
    "ready": ("○", "blue"),
    "waiting": ("·", "bright_black"),
}


class Row(NamedTuple):
    """One task, with the guides that lead to it."""

    guides: str
    key: str


def rows(after: Mapping[str, tuple[str, ...]]) -> list[Row]:
    """All tasks, each after what it depends on. A chain stays in its column; where it branches, guides show it."""
    order = _ordered(after)
    depth: dict[str, int] = {}
    below: dict[str, list[str]] = {"": []}
    for key in order:
        parent = max(after[key], key=lambda one: depth[one], default="")
        depth[key] = depth[parent] + 1 if parent else 0
        below.setdefault(parent, []).append(key)
    found: list[Row] = []
    waiting = _branches("", below[""])
    while waiting:
        row, prefix = waiting.pop()
        found.append(row)
        waiting += _branches(prefix, below.get(row.key, []))
    return found


def _branches(prefix: str, keys: list[str]) -> list[tuple[Row, str]]:
    """(row, what stands before the rows below it), last first."""
    if len(keys) == 1:
        return [(Row(prefix, keys[0]), prefix)]
    *others, last = keys or [""]
    found = [(Row(f"{prefix}├ ", key), f"{prefix}│ ") for key in others]
    if last:
        found.append((Row(f"{prefix}└ ", last), f"{prefix}  "))
    return found[::-1]


def _ordered(after: Mapping[str, tuple[str, ...]]) -> list[str]:
    left = {key: len(dependencies) for key, dependencies in after.items()}
    dependents: dict[str, list[str]] = {}
    for key, dependencies in after.items():
        for one in dependencies:
            dependents.setdefault(one, []).append(key)
    free, order = [key for key, number in left.items() if not number][::-1], list[str]()
    while free:
        order.append(key := free.pop())
        for one in reversed(dependents.get(key, [])):
            left[one] -= 1
            if not left[one]:
                free.append(one)
    return order


def drawn(state: WorkflowState, children: Mapping[str, str], *, alive: bool) -> tuple[Table, int]:
    """The graph, and how many tasks of it were left out. `children`: executions inside, and in which task."""
    after = {task.key: task.after for task in state.settings.tasks}
    shown = rows(after)
    if len(shown) > SHOWN:
        notable = [row for row in shown if row.key not in state.done] + [row for row in shown if row.key in state.done]
        shown = [Row("", row.key) for row in notable[:SHOWN]]
    asked = {one["task"]: one for one in questions(state)}
    inside: dict[str, list[str]] = {}
    for child, key in children.items():
        inside.setdefault(key, []).append(child)
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in shown:
        found = task_document(state, row.key)
        mark, style = MARKS[found["status"]]
        name = Text.assemble((f"  {row.guides}", "bright_black"), (f"{mark} ", style), row.key)
        said = Text(_words(state, row.key, found, asked.get(row.key), alive=alive))
        said.append(_also(row.key, () if found["status"] == "waiting" else after[row.key], inside), "bright_black")
        table.add_row(name, Text(found["status"], style), said)
    return table, len(after) - len(shown)


def _words(state: WorkflowState, key: str, found: dict[str, Any], asked: dict[str, Any] | None, *, alive: bool) -> str:
    """What its status leaves open."""
    match found["status"]:
        case "done":
            rounds = count(found["rounds"], "round") if found["kind"] == "loop" else ""
            return ", ".join(part for part in (rounds, _attempts(found)) if part)
        case "failed" | "stopped" | "rejected" | "cancelled":
            return f"{one_line(found['message'], 200)}"
        case "waiting-input" if asked is not None:
            may = f"; only {', '.join(asked['actors'])}" if asked["actors"] else ""
            choices = f" [{' / '.join(asked['choices'])}]" if asked["choices"] else ""
            return f"{one_line(asked['prompt'] or asked['kind'], 200)}{choices} ({asked['request_id']}{may})"
        case "waiting":
            left = [one for one in state.task(key).after if one not in state.done]
            return f"for {', '.join(left[:5])}{' …' if len(left) > 5 else ''}"
        case "running" | "retrying" | "ready":
            return _active(state, key, found, alive=alive)
        case _:
            return f"because of {found['because']}" if found.get("because") else "its condition said no"


def _active(state: WorkflowState, key: str, found: dict[str, Any], *, alive: bool) -> str:
    parts = (
        [f"round {found['round']} of {state.task(key).max_rounds}, {found['phase']}"] if found["kind"] == "loop" else []
    )
    parts += [words] if (words := _attempts(found)) else []
    if key in state.timers:
        parts.append(f"goes on at {moment(state.timers[key])}")
    elif found["status"] == "running" and not alive:
        parts.append("interrupted: its phase is repeated")
    return ", ".join(parts)


def _attempts(found: dict[str, Any]) -> str:
    number = found["attempts"]
    return count(number, "attempt") if number > max(1, found.get("rounds", found.get("round", 1))) else ""


def _also(key: str, after: tuple[str, ...], inside: Mapping[str, list[str]]) -> str:
    more = f"  after {', '.join(after[:4])}{' …' if len(after) > 4 else ''}" if after else ""
    names = inside.get(key, [])
    return more + (f"  runs {', '.join(names[:4])}{' …' if len(names) > 4 else ''}" if names else "")
