"""The live view of one loop at a terminal, whole at 60 columns: where it is, what is in flight, how much is used."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from treadle.core.messages import ModelResponded, ToolCall, ToolsFinished
from treadle.core.spoken import duration, last_line, money
from treadle.kernel.plan_standing import completed_count, gated, next_step, verified_count
from treadle.kernel.plan_words import step_line
from treadle.kernel.states import LoopState
from treadle.ports.observer import Progress

from .bars import bar
from .progress import Line, View, noteworthy
from .said import brief

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

REFRESH_HZ = 8
TAIL = 600  # characters of streamed text that are kept
BAR_WIDTH = 20
RECENT = 3  # finished calls that are shown
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TONES = {"plain": "", "good": "green", "bad": "red", "wait": "magenta", "quiet": "bright_black"}
MARKS = {"ok": ("✓", "green"), "error": ("✗", "red"), "unknown": ("?", "yellow"), "not-run": ("-", "bright_black")}


class Flight(NamedTuple):
    """Something that is under way since `since` (monotonic seconds)."""

    what: str
    since: float


class Finished(NamedTuple):
    """A call that has its result."""

    status: str
    what: str


class Board:
    """What the live view knows. One thread writes, another renders: values are replaced, never changed in place."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.state: LoopState | None = None
        self.execution_id = ""
        self.flights: dict[str, Flight] = {}
        self.recent: deque[Finished] = deque(maxlen=RECENT)
        self.tail = ""
        self._calls: dict[str, ToolCall] = {}

    def take(self, progress: Progress) -> None:
        """Notes what happened."""
        self.execution_id, self.state = progress.execution_id, progress.state
        data: Any = progress.data
        match progress.kind:
            case "text.delta":
                self.tail = (self.tail + str(data))[-TAIL:]
            case "model.intended":
                self.flights = {"model": Flight(data.model, self.now())}
                self.tail = ""
            case "tool.started":
                what = f"{data['name']} {brief(data['args'])}".rstrip()
                self.flights = self.flights | {str(data["key"]): Flight(what, self.now())}
            case "tool.finished":
                self.flights = {key: flight for key, flight in self.flights.items() if key != data["key"]}
            case "callback.started":
                what = "the check" if progress.state.phase == "evaluate" else "the acting command"
                self.flights = {"callback": Flight(what, self.now())}
            case "waiting":
                self.flights = {"wait": Flight(f"waiting ({data['kind']})", self.now())}
            case _ if progress.seq:
                self._settle(data)
            case _:
                pass

    def _settle(self, event: object) -> None:
        """A record: whatever was in flight has ended, unless it says otherwise."""
        if isinstance(event, ModelResponded):
            self._calls = {call.id: call for call in event.calls}
        elif isinstance(event, ToolsFinished):
            for result in event.results:
                call = self._calls.get(result.id)
                what = f"{call.name} {brief(call.args)}".rstrip() if call else result.id
                self.recent.append(Finished(result.status, what))
        if type(event).__name__ not in ("ProcessStarted", "ToolIntended", "UsageReported", "ChargeIntended"):
            self.flights = {}


class LiveView(View):
    """Draws the board below the lines that stay. A terminal that has gone away is no fault of the loop's."""

    wants_text = True

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self.board, self.console = Board(), console
        self._gone = False
        self._live = Live(
            console=self.console,
            get_renderable=lambda: render(self.board),
            refresh_per_second=REFRESH_HZ,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def notify(self, progress: Progress) -> None:
        self.board.take(progress)
        if (line := noteworthy(progress)) is not None:
            self.say(line)

    def say(self, line: Line) -> None:
        from rich.text import Text

        self._try(lambda: self.console.print(Text(line.text, style=TONES[line.tone])))

    def show(self) -> None:
        self._try(self._live.start)

    def hide(self) -> None:
        self._try(self._live.stop)

    def close(self) -> None:
        self.hide()

    def _try(self, draw: Callable[[], None]) -> None:
        if self._gone:
            return
        try:
            draw()
        except OSError:
            self._gone = True


# ---- drawing


def render(board: Board) -> RenderableType:
    """The board as rich draws it; nothing before the first event."""
    from rich.console import Group
    from rich.text import Text

    state = board.state
    if state is None:
        return Text("")
    recent = [_clipped(f"    {MARKS[one.status][0]} {one.what}", MARKS[one.status][1]) for one in tuple(board.recent)]
    flights = tuple(board.flights.values())
    under_way_us = max((int((board.now() - one.since) * 1e6) for one in flights), default=0)
    return Group(_head(board, state), *_plan(state), *recent, *_flights(board, flights), _bars(state, under_way_us))


def _clipped(text: str, style: str = "") -> RenderableType:
    from rich.text import Text

    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _head(board: Board, state: LoopState) -> RenderableType:
    words = [f"round {state.round}", state.phase]
    if (state.settings.act if state.phase == "act" else state.settings.evaluate) == "agent":
        at_work = state.agent.state not in ("completed", "failed")
        words += [f"turn {state.total.turns + at_work}", state.agent.state.replace("_", " ")]
    if state.status != "running":
        words.append(f"{state.status}, {state.code}")
    return _clipped(f"{board.execution_id} · {' · '.join(words)}", "bold")


PLAN_SHOWN = 5


def _plan(state: LoopState) -> list[RenderableType]:
    """How much of the plan is done, and the step at hand with its neighbours."""
    plan = state.plan
    if not plan.steps:
        return []
    following = next_step(plan)
    at = plan.steps.index(following) if following else len(plan.steps) - 1
    first = max(0, min(at - 1, len(plan.steps) - PLAN_SHOWN))
    standing = f"  plan: {completed_count(plan)} of {len(plan.steps)} done, {verified_count(plan)} verified"
    lines = [_clipped(f"{standing}, not approved" if gated(state) else standing, "bright_black")]
    styles = {"pending": "", "in-progress": "cyan", "done": "green", "failed": "red"}
    return lines + [
        _clipped(f"    {step_line(step)}", styles[step.status]) for step in plan.steps[first : first + PLAN_SHOWN]
    ]


def _flights(board: Board, flights: tuple[Flight, ...]) -> list[RenderableType]:
    now = board.now()
    frame = FRAMES[int(now * REFRESH_HZ) % len(FRAMES)]
    lines = [_clipped(f"  {frame} {one.what}  {duration(int((now - one.since) * 1e6))}", "cyan") for one in flights]
    if "model" in board.flights and (text := last_line(board.tail, 160)):
        lines.append(_clipped(f"    {text}", "bright_black"))
    return lines or [_clipped("  …", "bright_black")]


def _bars(state: LoopState, under_way_us: int) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 1))
    table.add_column(width=8)
    table.add_column(width=BAR_WIDTH)
    table.add_column(no_wrap=True)
    for name, used, cap, words in budgets(state, under_way_us):
        table.add_row(f"  {name}", bar(used / cap, BAR_WIDTH) if cap else "", words)
    return table


def budgets(state: LoopState, under_way_us: int = 0) -> list[tuple[str, float, float, str]]:
    """(name, used, limit or 0 for none, in words) of rounds, turns, cost and time. What is in doubt counts as used."""
    settings, total = state.settings, state.total
    us = total.us + under_way_us
    cost = total.usage.cost_usd + total.in_doubt.cost_usd
    turns_cap = settings.act_policy.max_turns or settings.limits.max_turns or 0
    turns = state.act.turns if settings.act_policy.max_turns else total.turns
    cost_cap, time_cap = settings.limits.max_cost_usd, settings.limits.max_duration_us
    doubt = f", {money(total.in_doubt.cost_usd)} in doubt" if total.in_doubt.cost_usd else ""
    return [
        ("rounds", state.round, settings.max_rounds, f"{state.round} of {settings.max_rounds}"),
        ("turns", turns, turns_cap, f"{turns}{f' of {turns_cap}' if turns_cap else ''}"),
        (
            "cost",
            float(cost),
            float(cost_cap or 0),
            f"{money(cost)}{f' of {money(cost_cap)}' if cost_cap else ''}{doubt}",
        ),
        ("time", us, time_cap or 0, f"{duration(us)}{f' of {duration(time_cap)}' if time_cap else ''}"),
    ]
