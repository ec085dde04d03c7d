"""Progress of a workflow in calm lines; what is no workflow's goes to the view of loops."""

from __future__ import annotations

from treadle.app.views import Line, View
from treadle.core import workflow_events as ev
from treadle.core.spoken import count, gist, one_line
from treadle.kernel.workflow_states import WorkflowState
from treadle.ports.observer import Observer, Progress


class WorkflowView(Observer):
    """Says through a view what happens in workflows, and hands it everything else. What runs inside is the workflow's affair."""

    hears_children = False

    def __init__(self, view: View) -> None:
        self._view, self.wants_text = view, view.wants_text

    def notify(self, progress: Progress) -> None:
        """A line for each event worth one."""
        if not isinstance(progress.state, WorkflowState):
            self._view.notify(progress)
        elif progress.kind == "refused":
            self._view.say(Line(f"  a request from outside was refused: {one_line(str(progress.data), 160)}", "wait"))
        elif (line := _line(progress.execution_id, progress.data, progress.state)) is not None:
            self._view.say(line)


def _line(execution_id: str, event: object, state: WorkflowState) -> Line | None:
    match event:
        case ev.WorkflowStarted():
            return Line(
                f"{execution_id}: {one_line(state.settings.name, 80)}, {count(len(state.settings.tasks), 'task')}"
            )
        case ev.WorkflowInterrupted() if event.reason == "taken-over":
            return Line("  going on where it was", "quiet")
        case ev.PhaseStarted() if event.phase != "check":
            again = f", round {event.round}" if event.round > 1 else ""
            again += f", attempt {event.attempt}" if event.attempt > event.round else ""
            return Line(f"  {event.task}: begins{again}", "quiet")
        case ev.RoundJudged() if not event.accept:
            return Line(f"  {event.task}: rejected: {gist(event.feedback, 160)}", "bad")
        case ev.TaskFinished():
            return Line(f"  {event.task}: done", "good")
        case ev.TaskFailed():
            return Line(f"  {event.task}: failed: {one_line(event.message, 160)}", "bad")
        case ev.TaskSkipped():
            return Line(f"  {event.task}: skipped", "quiet")
        case ev.RetryScheduled():
            return Line(f"  {event.task}: is tried again", "wait")
        case _:
            return _of_people(event)


def _of_people(event: object) -> Line | None:
    match event:
        case ev.QuotaPaused():
            return Line(f"  {event.task}: {one_line(event.message, 160)}", "wait")
        case ev.TaskAnswered():
            return Line(f"  {event.task}: {event.decision} by {one_line(event.actor, 40)}", "wait")
        case ev.WorkflowExtended():
            return Line(f"  limits extended by {one_line(event.actor, 40)}", "wait")
        case _:
            return None
