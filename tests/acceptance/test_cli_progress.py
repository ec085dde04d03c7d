"""What a person sees of a running loop: the live view at a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import json
import os
import threading
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from rich.console import Console

from support.commandline import InProcess
from treadle.app.views import progress_view
from treadle.core import events as ev
from treadle.core.codec import encode
from treadle.core.messages import ModelResponded, Prompted, ToolCall, ToolResult, ToolsFinished
from treadle.core.plans import PlanStep
from treadle.core.redaction import Redactor
from treadle.core.settings import Limits, LoopSettings, Policy
from treadle.core.usage import Usage
from treadle.kernel.loop import advance
from treadle.kernel.states import LoopState, ScopeState
from treadle.ports.observer import Observer, Progress
from treadle.telemetry.behind import Behind
from treadle.telemetry.live import LiveView, render
from treadle.telemetry.progress import Line, PlainView, noteworthy
from treadle.telemetry.sinks import Aside, JsonLines, Recording

SETTINGS = LoopSettings(
    loop_id="run",
    role_key="run.act",
    act_policy=Policy(max_turns=8),
    limits=Limits(max_cost_usd=Decimal("2.00"), max_duration_us=600_000_000),
)
READ = ToolCall(id="c0", name="read_file", args={"path": "src/parser.py"})
TEST = ToolCall(id="c1", name="run_command", args={"command": "pytest -q tests/test_parser.py"}, kind="mutating")


class Story:
    """A loop that is told to observers, event by event."""

    def __init__(self, *observers: Observer) -> None:
        self.observers, self.state = observers, LoopState()
        self.emit(
            ev.LoopStarted(
                settings=SETTINGS, step_exec_id="3f9k2cabcdef", input_json='""', task="Fix \x1b[31mthe\nparser", fingerprint={}, at_us=0
            )
        )  # fmt: skip
        self.emit(ev.BaselineTaken(tree="a" * 40))
        self.emit(Prompted(parent=None, text="Fix the parser"))

    def emit(self, event: Any) -> None:
        self.state = advance(self.state, event)
        self.tell(encode(event)[0], event, self.state.seq)

    def tell(self, kind: str, data: Any, seq: int = 0) -> None:
        for observer in self.observers:
            observer.notify(Progress("3f9k2cabcdef", seq, kind, data, self.state, 0))

    def turn(self, *calls: ToolCall, text: str = "") -> None:
        call = f"r{self.state.round}.act.t{self.state.agent.turn}.0"
        self.emit(ev.ModelIntended(call=call, reserve=Usage(requests=1), request="d", model="openai:gpt"))
        if text:
            self.tell("text.delta", text)
        usage = Usage(requests=1, input_tokens=900, output_tokens=90, cost_usd=Decimal("0.81"))
        parent = self.state.agent.leaf or 0
        self.emit(
            ModelResponded(
                parent=parent, call=call, text="", calls=calls, usage=usage, finish="tool_call", us=61_000_000
            )
        )

    def result(self, call: ToolCall, status: Any = "ok") -> None:
        self.emit(
            ToolsFinished(
                parent=self.state.agent.leaf or 0, results=(ToolResult(id=call.id, content="", status=status),), us=0
            )
        )


def live(width: int) -> LiveView:
    view = LiveView(
        Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, record=True, highlight=False)
    )
    view.board.now = lambda: 100.0
    return view


def drawn(view: LiveView) -> list[str]:
    with view.console.capture() as capture:
        view.console.print(render(view.board))
    return [line.rstrip() for line in capture.get().splitlines()]


@pytest.mark.req("AG-18")
@pytest.mark.parametrize("width", [60, 100])
def test_the_live_view_shows_where_it_is_what_is_under_way_and_how_much_is_used(width: int) -> None:
    view = live(width)
    story = Story(view)
    story.turn(READ)
    story.result(READ, "error")
    story.turn(TEST)
    story.emit(ev.ToolIntended(call="r1.act.t1.c0"))
    story.tell("tool.started", {"key": "k", "name": TEST.name, "args": TEST.args})
    view.board.now = lambda: 112.0
    lines = drawn(view)
    assert max(map(len, lines)) <= width
    assert lines[0] == "3f9k2cabcdef · round 1 · act · turn 3 · executing" or lines[0].endswith("error recovery")
    assert any("✗ read_file src/parser.py" in line for line in lines)
    assert any(line.endswith("run_command pytest -q tests/test_parser.py  12 s") for line in lines)
    bars = {line.split()[0]: line for line in lines[-4:]}
    assert bars["rounds"].endswith("1 of 10")
    assert bars["turns"].endswith("2 of 8")
    assert bars["cost"].endswith("$1.62 of $2.00")
    assert bars["time"].endswith("2 min 14 s of 10 min"), "what is under way counts"


@pytest.mark.req("AG-18")
def test_the_last_streamed_line_is_shown_while_the_model_speaks_and_cannot_steer_the_terminal() -> None:
    view = live(80)
    story = Story(view)
    story.emit(ev.ModelIntended(call="r1.act.t0.0", reserve=Usage(requests=1), request="d", model="openai:gpt"))
    story.tell("text.delta", "first line\nI see: \x1b]0;owned\x07the last token")
    lines = drawn(view)
    assert any("openai:gpt" in line for line in lines)
    assert any(line.strip() == "I see: ]0;ownedthe last token" for line in lines)
    assert not any("first line" in line for line in lines)


@pytest.mark.req("AG-18")
def test_elsewhere_each_noteworthy_event_is_one_plain_line() -> None:
    stream = io.StringIO()
    story = Story(PlainView(stream))
    story.turn(READ, text="…")
    story.result(READ)
    story.emit(
        ev.ActFailed(reason="max turns", output_json="null", scope_receipt_json="null", changed=("a.py", "b.py"))
    )
    story.emit(ev.CallbackStarted(key="r1.evaluate.1"))
    story.emit(ev.Judged(accept=False, feedback="two tests fail\nsee above", us=5))
    story.emit(ev.BaselineTaken(tree=""))
    story.emit(ev.PlanWritten(steps=(PlanStep(id="1", title="Mend it"),), by="model"))
    story.emit(ev.StepMoved(step="1", status="in-progress", by="work"))
    story.emit(ev.StepMoved(step="1", status="failed", by="check", reason="red"))
    assert stream.getvalue().splitlines() == [
        "3f9k2cabcdef: Fix [31mthe parser",
        "round 1 of 10",
        "  act ended: max turns; 2 files changed: a.py, b.py",
        "  rejected: two tests fail see above",
        "round 2 of 10",
        "  plan by model: 1 step",
        "  ✗ step 1, Mend it: red",
    ]


@pytest.mark.req("AG-18", "FR-16")
def test_a_rejection_for_a_conflict_is_told_whole_and_another_is_cut() -> None:
    isolation = ev.Isolation(origin="/o", folder="/w", branch="b", base="c1", target="main", on_accept="merge")
    judged = ev.Judged(accept=False, feedback=f"{'It is in conflict. ' * 30}Settle it.", us=5)
    for onto, whole in (("c2", True), ("", False)):
        state = LoopState(scope=ScopeState(isolation=isolation, onto=onto))
        line = noteworthy(Progress("x", 1, "judged", judged, state, 0))
        assert line is not None
        assert line.text.endswith("Settle it.") is whole


class Gone(io.StringIO):
    """A terminal that was closed."""

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


@pytest.mark.req("AG-18")
def test_a_reader_that_went_away_does_not_stop_the_loop() -> None:
    view = LiveView(Console(file=Gone(), force_terminal=True, width=80))
    Story(PlainView(Gone()), view)
    view.show()
    view.close()


def full_pipe() -> tuple[int, int]:
    """(reader, writer) of a pipe into which nothing more goes."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 512)
    os.set_blocking(writer, True)
    return reader, writer


@pytest.mark.req("AG-18")
def test_a_pipe_that_nobody_reads_delays_nobody_and_the_newest_lines_win() -> None:
    reader, writer = full_pipe()
    with os.fdopen(reader, "rb") as pipe, os.fdopen(writer, "w") as stream:
        view = Behind(PlainView(stream), size=8)
        for number in range(100):
            view.say(Line(f"line {number}"))
        read = threading.Thread(target=lambda: said.append(pipe.read()))
        said: list[bytes] = []
        read.start()
        view.close()
        stream.close()
        read.join()
    lines = said[0].decode().splitlines()
    assert lines[-1] == "line 99"
    assert any("left out: nobody read them in time" in line for line in lines)
    assert not any(line.endswith("line 50") for line in lines)


@pytest.mark.req("AG-18")
def test_a_loop_ends_though_nobody_reads_its_progress(tmp_path: Any) -> None:
    cli = InProcess(tmp_path)
    reader, writer = full_pipe()
    process = cli.start("run", "Do it", "--agent-command", "true", "--check", "true", stderr=writer)
    os.close(writer)
    for _ in range(2_000):
        if [one["status"] for one in cli.documents()] == ["done"]:
            break
    else:
        process.kill()
        raise AssertionError("the loop waits for its reader")
    assert process.poll() is None
    with os.fdopen(reader, "rb") as pipe:
        assert b"accepted" in pipe.read()
    assert process.wait() == 0
    assert process.stdout is not None
    process.stdout.close()


def test_quiet_shows_nothing() -> None:
    stream = io.StringIO()
    Story(progress_view(stream, quiet=True))
    assert stream.getvalue() == ""


@pytest.mark.req("AG-18")
def test_any_number_of_sinks_are_told_the_same() -> None:
    stream, recording, quiet = io.BytesIO(), Recording(), progress_view(io.StringIO(), quiet=True)
    story = Story(JsonLines(stream), recording, quiet)
    story.turn(READ, text="not a record")
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [one["kind"] for one in told] == [
        "loop.started",
        "baseline.taken",
        "prompted",
        "model.intended",
        "model.responded",
    ]
    assert [one["seq"] for one in told] == [1, 2, 3, 4, 5]
    assert told[-1]["data"]["usage"][-1] == 0.81
    assert [one.kind for one in recording.progress if one.seq == 0] == ["text.delta"]


@pytest.mark.req("AG-18")
def test_progress_goes_to_every_sink_that_is_named_and_stdout_carries_the_document_alone(tmp_path: Any) -> None:
    cli = InProcess(tmp_path)
    both = ("--sink", "stderr", "--sink", "json:one.jsonl", "--sink", "json:two.jsonl")
    ran = cli("run", "Do it", "--agent-command", "true", "--check", "true", "--json", *both)
    assert ran.document["code"] in ("accepted", "no-change")
    assert "round 1 of 10" in ran.err
    one, two = ((cli.workspace / name).read_text() for name in ("one.jsonl", "two.jsonl"))
    assert one == two
    told = [json.loads(line) for line in one.splitlines()]
    logged = [json.loads(line)["seq"] for line in cli("log", "last", "--json").out.splitlines()]
    assert [line["seq"] for line in told if line["seq"]] == logged, "every record is in the file, in order"


@pytest.mark.req("AG-18")
def test_sink_none_says_nothing_but_the_banner_and_a_wrong_sink_starts_nothing(tmp_path: Any) -> None:
    cli = InProcess(tmp_path)
    acts = ("--agent-command", "true", "--check", "true")
    ran = cli("run", "Do it", *acts, "--sink", "none")
    assert len(ran.err.splitlines()) == 1
    for sink, said in (
        ("jsn:x", "There is no sink 'jsn:x'"),
        ("json:no/where/x", "cannot be written"),
        ("json:-", "stdout"),
    ):
        ran = cli("run", "Do it", *acts, "--sink", sink)
        assert ran.code == 2
        assert said in ran.err
    assert len(cli.documents()) == 1


@pytest.mark.req("AG-18")
def test_secrets_of_the_environment_reach_no_file_and_the_line_stays_json() -> None:
    stream = io.BytesIO()
    story = Story(JsonLines(stream, redact=Redactor(["hunter2hunter2"]).redact))
    story.emit(ev.CallbackStarted(key="r1.evaluate.1"))
    story.tell("note", {"said": 'password is "hunter2hunter2"', "n": 3})
    assert b"hunter2" not in stream.getvalue()
    assert json.loads(stream.getvalue().splitlines()[-1])["data"] == {"said": 'password is "[redacted]"', "n": 3}


@pytest.mark.req("AG-19")
def test_a_stalled_sink_delays_nobody_and_is_told_what_it_lost() -> None:
    entered, gate = threading.Event(), threading.Event()

    class Stalled(Recording):
        def notify(self, progress: Progress) -> None:
            entered.set()
            gate.wait(20)
            super().notify(progress)

    stalled = Stalled()
    aside = Aside(stalled, size=4)
    story = Story(aside)
    assert entered.wait(20)
    for number in range(10):
        story.tell("text.delta", str(number))
    assert aside.dropped == 8
    gate.set()
    aside.close()
    kinds = [(one.kind, one.data) for one in stalled.progress if one.seq == 0]
    assert kinds == [("dropped", {"count": 8}), *(("text.delta", str(number)) for number in (6, 7, 8, 9))]
