"""What happens in a loop, in lines for people: which events are worth one, and an observer that writes just these."""

from __future__ import annotations

import os
import select
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TextIO

import msgspec

from treadle.core import events as ev
from treadle.core import lesson_events as le
from treadle.core.child_events import ChildIntended
from treadle.core.messages import MapGiven, Prompted
from treadle.core.spoken import count, gist, map_words, one_line
from treadle.kernel.states import LoopState
from treadle.ports.observer import Observer, Progress

Tone = Literal["plain", "good", "bad", "wait", "quiet"]
SHOWN_PATHS = 6


class Line(NamedTuple):
    """One line of progress."""

    text: str
    tone: Tone = "plain"


class View(Observer):
    """An observer that shows progress at a terminal or in a log."""

    @abstractmethod
    def say(self, line: Line) -> None:
        """A line that stays."""

    def hide(self) -> None:
        """Gives the terminal up, so that a person can be asked something."""

    def show(self) -> None:
        """Takes it again."""


class NoView(View):
    """Shows nothing (-q)."""

    def notify(self, progress: Progress) -> None:
        return

    def say(self, line: Line) -> None:
        return


# None of them is worth a line: said once, so that a turn costs next to nothing where nobody looks.
OF_EACH_TURN = frozenset(
    "model.intended model.responded tool.intended tool.started tool.finished tools.finished text.delta".split()
)


class PlainView(View):
    """One plain line for each event worth one, for logs and pipes. A reader that went away is no fault of the loop."""

    ignores = OF_EACH_TURN

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream

    def notify(self, progress: Progress) -> None:
        if (line := noteworthy(progress)) is not None:
            self.say(line)

    def say(self, line: Line) -> None:
        if self._stream is None:
            return
        try:
            _write(self._stream, line.text + "\n")
        except OSError:
            self._stream = None


def _write(stream: TextIO, text: str) -> None:
    """To the file itself where there is one: a thread that waits for a reader must not hold a lock that the whole process needs."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        stream.write(text)
        stream.flush()
        return
    stream.flush()
    left = text.encode(stream.encoding or "utf-8", "backslashreplace")
    while left:
        try:
            left = left[os.write(number, left) :]
        except BlockingIOError:
            select.select((), (number,), ())


def noteworthy(progress: Progress) -> Line | None:
    """The line that an event deserves; None for most. The end itself has its banner."""
    data: Any = progress.data
    if progress.kind == "refused":
        return Line(f"  a request from outside was refused: {one_line(str(data), 160)}", "wait")
    return _of_round(data, progress.state) or _of_people(data) or _of_plan(data, progress.state) or _of_lessons(data)


def _of_round(event: ev.Event, state: LoopState) -> Line | None:
    match event:
        case ev.LoopStarted():
            return Line(f"{event.step_exec_id}: {one_line(event.task, 100)}")
        case ev.BaselineTaken():
            left_out = f", {one_line(event.note, 160)}" if event.tree and event.note else ""
            return Line(f"round {state.round} of {state.settings.max_rounds}{left_out}")
        case Prompted(map=MapGiven() as given) if not given.none:
            return Line(f"  map: {map_words(given)}", "quiet")
        case ev.ActFinished():
            return Line(f"  act finished{said(event.output_json)}; {changes(event.changed)}", "quiet")
        case ev.ActFailed():
            return Line(f"  act ended: {one_line(event.reason, 120)}; {changes(event.changed)}", "bad")
        case ev.Judged() if event.accept:
            return Line("  accepted", "good")
        case ev.Judged():
            in_conflict = state.scope is not None and state.scope.onto  # whole: the paths, and what to do
            feedback = one_line(event.feedback, 2_000) if in_conflict else gist(event.feedback, 160)
            return Line(f"  rejected: {feedback}", "bad")
        case ev.ModelFailed():
            again = "" if event.retry_at_us is None else "; trying again"
            return Line(f"  model: {event.kind}: {one_line(event.message, 120)}{again}", "wait")
        case ev.CallbackRaised():
            return Line(f"  {one_line(event.message, 160)}", "bad")
        case _:
            return None


def _of_people(event: ev.Event) -> Line | None:
    """What came from outside the loop. A question is asked at the terminal or told by the banner."""
    match event:
        case ChildIntended():
            return Line(f"  {one_line(event.name, 40)} is at work: {event.child}", "quiet")
        case ev.Suspended() if event.kind == "quota":
            return Line(f"  {one_line(event.prompt, 160)}", "wait")
        case ev.Answered():
            return Line(f"  {event.decision} by {one_line(event.actor, 40)}", "wait")
        case ev.Extended():
            return Line(f"  limits extended by {one_line(event.actor, 40)}", "wait")
        case ev.WorkspaceChanged():
            return Line(
                f"  changed after the last record, by an interrupted command or by somebody else; {changes(event.paths)}",
                "wait",
            )
        case ev.Interrupted() if event.reason == "taken-over":
            return Line("  going on where it was", "quiet")
        case _:
            return None


def _of_plan(event: ev.Event, state: LoopState) -> Line | None:
    """What becomes of the plan. That a step begins is seen at the call that begins it."""
    match event:
        case ev.PlanWritten():
            return Line(
                f"  plan by {one_line(event.actor or event.by, 40)}: {count(len(event.steps), 'step')}", "plain"
            )
        case ev.StepMoved() if event.status in ("done", "failed"):
            step = next((one.step.title for one in state.plan.steps if one.step.id == event.step), event.step)
            mark, tone = ("✓", "good") if event.status == "done" else ("✗", "bad")
            whose = f", by {one_line(event.actor, 40)}" if event.by == "person" else ""
            reason = f": {one_line(event.reason, 100)}" if event.reason else ""
            return Line(f"  {mark} step {one_line(event.step, 40)}, {one_line(step, 80)}{whose}{reason}", tone)
        case _:
            return None


def _of_lessons(event: ev.Event) -> Line | None:
    """What was told and learnt; a store of lessons that fails costs the run its lessons, and that is not kept quiet."""
    match event:
        case le.LessonsRecalled() | le.LessonsVoted() | le.LessonsDistilled() if event.note:
            return Line(f"  lessons: {one_line(event.note, 240)}", "wait")
        case le.LessonsRecalled() if event.lessons:
            return Line(f"  lessons: {', '.join(one.lesson_id for one in event.lessons)} told", "quiet")
        case le.LessonsDistilled() if event.lessons:
            return Line(
                f"  lessons: {', '.join(f'{one.lesson_id} ({one.state})' for one in event.lessons)} learnt", "quiet"
            )
        case _:
            return None


def said(output_json: str) -> str:
    """What act says that it did, where it says so in words."""
    output: Any = msgspec.json.decode(output_json)
    return f": {one_line(output, 120)}" if isinstance(output, str) and output.strip() else ""


def changes(paths: Iterable[str]) -> str:
    """changed a.py, b.py; nothing changed."""
    names = [one_line(path, 60) for path in paths]
    if not names:
        return "nothing changed"
    more = f" and {len(names) - SHOWN_PATHS} more" if len(names) > SHOWN_PATHS else ""
    return f"{count(len(names), 'file')} changed: {', '.join(names[:SHOWN_PATHS])}{more}"
